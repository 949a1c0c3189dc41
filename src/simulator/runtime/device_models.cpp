#include "simulator/runtime/device_models.hpp"

#include <cstdio>
#include <cstring>

#include "simulator/runtime/settings.hpp"

namespace ucudnn::simulator {

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

// Peaks from NVIDIA's data sheets (dense, boost clock): "Tesla P100", "Tesla V100", "A100 80GB",
// "H100" and "H200 Tensor Core GPU". Memory is what nvidia-smi reports on such a board. Only Ampere
// and later have TF32. launchMs is the gap that back-to-back small kernels show on a stream: 5 us
// on Pascal and 2.5 us on Hopper, those between in order. The link is PCIe x16, of generation 3, 4
// and 5, as pinned copies reach it.
const DeviceModel kModels[] = {
    // name, capability, SMs, memory, FMA TF/s, TF32 TF/s, GB/s, launch, link
    {"P100-SXM2", 60, 56, 16280 * kMib, 10.6, 0, 732, 0.005, 12},
    {"V100-SXM2", 70, 80, 16160 * kMib, 15.7, 0, 900, 0.004, 12},
    {"A100-SXM4-80GB", 80, 108, 81920 * kMib, 19.5, 156, 2039, 0.003, 25},
    {"H100-SXM", 90, 132, 81559 * kMib, 66.9, 494.7, 3350, 0.0025, 55},
    {"H200", 90, 132, 143771 * kMib, 66.9, 494.7, 4800, 0.0025, 55},
    // Not NVIDIA's: so slow that images of a test's size are cut in bands.
    {"Tiny", 90, 1, 16384 * kMib, 0.02, 0.1, 0.05, 0.0025, 1, false},
};

DeviceModel findModel(const std::string& name) {
  std::string known;
  for (const DeviceModel& model : kModels) {
    if (model.name == name) return model;
    known += " " + model.name;
  }
  refuseSetting("UCUDNN_SIMULATOR_DEVICES: no model '" + name + "'; there are:" + known);
}

}  // namespace

const std::vector<DeviceModel>& devices() {
  static const std::vector<DeviceModel>* const all = [] {
    auto* models = new std::vector<DeviceModel>;
    for (const std::string& name : settings().deviceNames) models->push_back(findModel(name));
    return models;
  }();
  return *all;
}

const DeviceModel& deviceModel(int device) {
  return devices().at(static_cast<std::size_t>(device));
}

cudaDeviceProp deviceProperties(int device) {
  const DeviceModel& model = deviceModel(device);
  cudaDeviceProp properties = {};
  std::snprintf(
      properties.name, sizeof properties.name, "NVIDIA %s (simulated)", model.name.c_str());
  // Distinct and stable, as a UUID must be: the simulator's mark and the device's number.
  std::memcpy(properties.uuid.bytes, "ucudnn-simulated", sizeof properties.uuid.bytes);
  properties.uuid.bytes[15] = static_cast<char>(device);
  properties.totalGlobalMem = model.memoryBytes;
  properties.major = model.computeCapability / 10;
  properties.minor = model.computeCapability % 10;
  properties.multiProcessorCount = model.multiprocessorCount;
  properties.pciBusID = device + 1;
  // The same on all of these GPUs (CUDA C++ Programming Guide, "Compute Capabilities").
  properties.sharedMemPerBlock = 48 << 10;
  properties.sharedMemPerBlockOptin = model.computeCapability >= 90 ? 227 << 10 : 48 << 10;
  properties.sharedMemPerMultiprocessor = model.computeCapability >= 90 ? 228 << 10 : 64 << 10;
  properties.regsPerBlock = properties.regsPerMultiprocessor = 65536;
  properties.warpSize = 32;
  properties.memPitch = 0x7fffffff;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsPerMultiProcessor = 2048;
  properties.maxBlocksPerMultiProcessor = 32;
  properties.maxThreadsDim[0] = properties.maxThreadsDim[1] = 1024;
  properties.maxThreadsDim[2] = 64;
  properties.maxGridSize[0] = 0x7fffffff;
  properties.maxGridSize[1] = properties.maxGridSize[2] = 65535;
  properties.totalConstMem = 64 << 10;
  properties.textureAlignment = 512;
  properties.texturePitchAlignment = 32;
  properties.concurrentKernels = 1;
  properties.asyncEngineCount = 2;
  properties.canMapHostMemory = 1;
  properties.unifiedAddressing = 1;
  properties.managedMemory = 1;
  properties.concurrentManagedAccess = 1;
  properties.streamPrioritiesSupported = 1;
  properties.memoryPoolsSupported = 1;
  properties.ECCEnabled = 1;
  return properties;
}

}  // namespace ucudnn::simulator
