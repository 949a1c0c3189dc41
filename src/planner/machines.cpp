#include "planner/machines.hpp"

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cuda/cudnn.hpp"
#include "cuda/error.hpp"
#include "support/settings.hpp"

namespace ucudnn {
namespace {

MachineKey describe(int device) {
  cudaDeviceProp properties{};
  UCUDNN_CHECK_CUDA(cudaGetDeviceProperties(&properties, device));
  MachineKey key;
  key.deviceName = properties.name;
  key.computeCapability = properties.major * 10 + properties.minor;
  key.multiprocessorCount = properties.multiProcessorCount;
  UCUDNN_CHECK_CUDA(cudaDriverGetVersion(&key.driverVersion));
  UCUDNN_CHECK_CUDA(cudaRuntimeGetVersion(&key.cudaVersion));
  key.cudnnVersion = cudnn().getVersion();
  key.simulated = key.deviceName.find("(simulated)") != std::string::npos;
  return key;
}

}  // namespace

int Machines::ofDevice(int device) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = byDevice_.find(device); known != byDevice_.end()) return known->second;
  }
  const MachineKey key = describe(device);
  const std::lock_guard lock(mutex_);
  const auto place = std::find(keys_.begin(), keys_.end(), key);
  const int machine = static_cast<int>(place - keys_.begin());
  if (place == keys_.end()) keys_.push_back(key);
  byDevice_.emplace(device, machine);
  return machine;
}

MachineKey Machines::key(int machine) const {
  const std::lock_guard lock(mutex_);
  return keys_.at(static_cast<std::size_t>(machine));
}

std::vector<int> benchmarkDevices(const std::vector<int>& ids,
                                  bool all,
                                  int device,
                                  Machines& machines) {
  if (ids.empty() && !all) return {};
  int count = 0;
  UCUDNN_CHECK_CUDA(cudaGetDeviceCount(&count));
  std::vector<int> devices = ids;
  if (all) {
    devices.resize(static_cast<std::size_t>(count));
    std::iota(devices.begin(), devices.end(), 0);
  }
  std::vector<int> others;
  for (const int id : devices) {
    if (id >= count)
      throw BadSetting(
          fmt::format("UCUDNN_BENCHMARK_DEVICES: there is no device {} (accepted: 0 to {}, or all)",
                      id,
                      count - 1));
    // Leaves out devices of another kind: handles on them measure their own times.
    if (id != device && machines.ofDevice(id) == machines.ofDevice(device)) others.push_back(id);
  }
  return others;
}

}  // namespace ucudnn
