#include "tool/machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <ucudnn/ucudnn.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "support/version_text.hpp"
#include "tool/device.hpp"
#include "tool/simulator_control.hpp"

namespace ucudnn::tool {
namespace {

using Json = nlohmann::ordered_json;

cudaDeviceProp propertiesOf(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties;
}

bool isSimulated(const cudaDeviceProp& properties) {
  return onSimulator() || std::string(properties.name).find("(simulated)") != std::string::npos;
}

/// The rest of the first line of a file that begins with `key`, after the colon; "" for none.
std::string lineOf(const char* file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto colon = line.find(':');
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    if (colon != std::string::npos && begin != std::string::npos) return line.substr(begin);
  }
  return {};
}

/// The driver's own version, "580.82.07"; "" if its kernel module is not loaded.
std::string nvidiaDriver() {
  std::istringstream words(lineOf("/proc/driver/nvidia/version", "NVRM version"));
  for (std::string word; words >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos &&
        word.find('.') != std::string::npos)
      return word;
  return {};
}

std::string hostCpu() {
  const std::string name = lineOf("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown" : name;
}

std::string now() {
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

}  // namespace

Json describeVersions() {
  int runtime = 0;
  int driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  // Without a driver the answer is 0, or an error that says so.
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  Json versions = {{"ucudnn", ucudnnGetVersionString()},
                   {"cudnn", cudnnVersionText(cudnnGetVersion())},
                   {"cuda", cudaVersionText(runtime)},
                   {"cuda_driver", driver == 0 ? Json(nullptr) : Json(cudaVersionText(driver))}};
  const std::string module = onSimulator() ? std::string() : nvidiaDriver();
  versions["driver"] = module.empty() ? Json(nullptr) : Json(module);
  const std::string revision = UCUDNN_GIT_REVISION;
  versions["git_revision"] = revision.empty() ? Json(nullptr) : Json(revision);
  return versions;
}

Json describeDevice(int device) {
  const cudaDeviceProp properties = propertiesOf(device);
  return {{"device", properties.name},
          {"simulated", isSimulated(properties)},
          {"compute_capability", fmt::format("{}.{}", properties.major, properties.minor)},
          {"multiprocessors", properties.multiProcessorCount},
          {"memory_bytes", properties.totalGlobalMem}};
}

Json describeMachine(int device, const std::string& command) {
  Json machine = describeDevice(device);
  machine.update(describeVersions());
  if (machine.at("simulated").get<bool>()) machine["simulator_profile"] = simulatorProfile();
  machine["date"] = now();
  machine["host_cpu"] = hostCpu();
  machine["command"] = command;
  return machine;
}

MachineKey machineKey(int device) {
  const cudaDeviceProp properties = propertiesOf(device);
  MachineKey key;
  key.deviceName = properties.name;
  key.computeCapability = properties.major * 10 + properties.minor;
  key.multiprocessorCount = properties.multiProcessorCount;
  check(cudaDriverGetVersion(&key.driverVersion), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&key.cudaVersion), "cudaRuntimeGetVersion");
  key.cudnnVersion = cudnnGetVersion();
  key.simulated = isSimulated(properties);
  return key;
}

}  // namespace ucudnn::tool
