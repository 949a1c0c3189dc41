#include "tool/placement_bound.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <ostream>

#include "support/sizes.hpp"
#include "tool/timing.hpp"

namespace ucudnn::tool {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{64} << 20;

double bytesOf(const std::vector<int>& sizes, std::size_t elementBytes) {
  return std::accumulate(
      sizes.begin(), sizes.end(), static_cast<double>(elementBytes), std::multiplies<>());
}

}  // namespace

PlacementProblem trainingStep(const std::vector<Layer>& layers,
                              const std::vector<LayerTimes>& times,
                              std::size_t elementBytes,
                              std::size_t deviceBytes,
                              const std::array<double, 2>& bytesPerMs) {
  PlacementProblem step;
  step.deviceBytes = static_cast<double>(deviceBytes);
  step.bytesPerMs = bytesPerMs;
  const auto add = [&](const std::vector<int>& sizes) {
    step.tensorBytes.push_back(bytesOf(sizes, elementBytes));
    return step.tensorBytes.size() - 1;
  };
  std::vector<PlacementProblem::Call> backward;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool isNext = i > 0 && layers[i - 1].outputSizes() == layers[i].inputSizes();
    const std::size_t x = add(layers[i].inputSizes());
    if (isNext) step.calls.back().writes = {x};
    const std::size_t w = add(layers[i].filterSizes());
    step.calls.push_back({times[i].forwardMs, {x, w}, {}});
    backward.push_back({times[i].backwardFilterMs, {x}, {}});
    backward.push_back({times[i].backwardDataMs, {w}, {}});
  }
  step.calls.insert(step.calls.end(), backward.begin(), backward.end());
  return step;
}

std::array<double, 2> measureLink(cudaStream_t stream) {
  const HostMemory host = makeHostMemory(kCopyBytes);
  const DeviceBuffer device(kCopyBytes);
  const auto rate = [&](void* to, const void* from) {
    const auto copy = [&] {
      check(cudaMemcpyAsync(to, from, kCopyBytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
    };
    return static_cast<double>(kCopyBytes) / timeOnceMs(stream, copy);
  };
  return {rate(device.get(), host.get()), rate(host.get(), device.get())};
}

PlacementReport describePlacement(const PlacementProblem& problem) {
  PlacementReport report;
  report.deviceBytes = static_cast<std::size_t>(problem.deviceBytes);
  report.bytesPerMs = problem.bytesPerMs;
  report.tensorBytes = std::accumulate(problem.tensorBytes.begin(), problem.tensorBytes.end(), 0.0);
  const std::size_t tensors = problem.tensorBytes.size();
  report.onDeviceMs = problem.ms(std::vector<double>(tensors, 1));
  report.inHostMemoryMs = problem.ms(std::vector<double>(tensors, 0));
  report.leastMs = boundPlacement(problem).leastMs;
  return report;
}

nlohmann::ordered_json toJson(const PlacementReport& report) {
  return {{"device_memory_bytes", report.deviceBytes},
          {"to_device_bytes_per_ms", report.bytesPerMs[0]},
          {"to_host_bytes_per_ms", report.bytesPerMs[1]},
          {"tensor_bytes", report.tensorBytes},
          {"on_device_ms", report.onDeviceMs},
          {"in_host_memory_ms", report.inHostMemoryMs},
          {"least_ms", report.leastMs}};
}

void print(std::ostream& stream, const PlacementReport& report) {
  stream << fmt::format("A training step within {} of device memory, its tensors {}\n",
                        formatSize(report.deviceBytes),
                        formatSize(static_cast<std::size_t>(report.tensorBytes)))
         << fmt::format("  all on the device    {:.4f} ms\n", report.onDeviceMs)
         << fmt::format("  any placement        {:.4f} ms at least\n", report.leastMs)
         << fmt::format("  all in host memory   {:.4f} ms at least\n", report.inHostMemoryMs)
         << fmt::format(
                "  link                 {:.1f} GB/s to the device, {:.1f} GB/s to the host\n\n",
                report.bytesPerMs[0] / 1e6,
                report.bytesPerMs[1] / 1e6);
}

}  // namespace ucudnn::tool
