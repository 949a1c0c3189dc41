// `ucudnn info`: what only cuDNN and CUDA can say.
#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "kernels/errata.hpp"
#include "support/settings.hpp"
#include "support/sizes.hpp"
#include "support/text.hpp"
#include "tool/columns.hpp"
#include "tool/commands.hpp"
#include "tool/device.hpp"
#include "tool/machine.hpp"

namespace ucudnn::tool {
namespace {

void printVersions() {
  const nlohmann::ordered_json versions = describeVersions();
  const auto text = [&](const char* key) {
    return versions.at(key).is_null() ? std::string("none") : versions.at(key).get<std::string>();
  };
  writeColumns(std::cout,
               {{"μ-cuDNN", text("ucudnn")},
                {"cuDNN", text("cudnn")},
                {"CUDA runtime", text("cuda")},
                {"CUDA driver", text("cuda_driver")},
                {"GPU driver", text("driver")},
                {"git revision", text("git_revision")}},
               1);
}

void printDevices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    std::cout << fmt::format(
        "\nno CUDA device: {}\n",
        status != cudaSuccess ? cudaGetErrorString(status) : "the driver sees none");
    return;
  }
  std::cout << '\n';
  std::vector<std::vector<std::string>> lines = {{"device", "name", "capability", "SMs", "memory"}};
  for (int device = 0; device < count; ++device) {
    const nlohmann::ordered_json properties = describeDevice(device);
    lines.push_back({fmt::format("{}", device),
                     properties.at("device").get<std::string>(),
                     properties.at("compute_capability").get<std::string>(),
                     fmt::format("{}", properties.at("multiprocessors").get<int>()),
                     formatSize(properties.at("memory_bytes").get<std::size_t>())});
  }
  writeColumns(std::cout, lines, 2);
  if (onSimulator()) std::cout << "simulated: results are computed by the CPU, times are virtual\n";
}

/// Prints the engines that are never used on some device. Prints nothing if there are none.
void printErrata() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  Errata errata;
  try {
    const std::string path = settingsFromEnvironment(Reporting::kNever).errataPath;
    errata = path.empty() ? builtInErrata() : readErrata(path);
  } catch (const BadSetting& error) {
    std::cout << '\n' << error.what() << '\n';
    return;
  }
  const char* before = "\n";
  for (const Erratum& erratum : errata)
    for (int device = 0; device < count; ++device) {
      const MachineKey machine = machineKey(device);
      if (!appliesTo(erratum, machine.cudnnVersion, machine.computeCapability)) continue;
      std::cout << fmt::format("{}never used on device {}: {}\n    {} ({})\n",
                               std::exchange(before, ""),
                               device,
                               printable(toText(erratum)),
                               machinesOf(erratum),
                               erratum.source);
    }
}

}  // namespace

int describeHere() {
  printVersions();
  printDevices();
  printErrata();
  return 0;
}

}  // namespace ucudnn::tool
