// `ucudnn plan --device-memory`: what no placement of a network's tensors can beat.
#pragma once

#include <array>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <vector>

#include "optimizer/placement.hpp"
#include "tool/device.hpp"
#include "tool/layer_list.hpp"

namespace ucudnn::tool {

/// Kernels' times of one layer in ms.
struct LayerTimes {
  double forwardMs = 0, backwardDataMs = 0, backwardFilterMs = 0;
};

/// A training step of the layers. Inputs and filters live from forward to backward; what lives
/// shorter is taken for free. A layer's output is the next one's input where it has its sizes.
/// `bytesPerMs`: of the link, to the device and to the host.
PlacementProblem trainingStep(const std::vector<Layer>& layers,
                              const std::vector<LayerTimes>& times,
                              std::size_t elementBytes,
                              std::size_t deviceBytes,
                              const std::array<double, 2>& bytesPerMs);

/// Measures the link of the current device by pinned memory. Throws DeviceError.
std::array<double, 2> measureLink(cudaStream_t stream);

struct PlacementReport {
  std::size_t deviceBytes = 0;
  std::array<double, 2> bytesPerMs{};
  double tensorBytes = 0;     ///< that live from forward to backward
  double onDeviceMs = 0;      ///< with all of them on the device
  double inHostMemoryMs = 0;  ///< with none
  double leastMs = 0;         ///< of any placement within the device memory
};
PlacementReport describePlacement(const PlacementProblem& problem);

nlohmann::ordered_json toJson(const PlacementReport& report);
void print(std::ostream& stream, const PlacementReport& report);

}  // namespace ucudnn::tool
