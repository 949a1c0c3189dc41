// The time of a step's convolutions on the current device, as planned.
#pragma once

#include <map>
#include <vector>

#include "optimizer/share_search.hpp"
#include "tool/network.hpp"

namespace ucudnn::tool {

/// The layers as they are with so many samples.
std::vector<Layer> withBatch(std::vector<Layer> layers, int samples);

/// The mini-batch that all layers have. Throws BadInput where they differ.
int commonBatch(const std::vector<Layer>& layers);

/// Plans all layers as one network on one stream, each convolution within the limit. Measures what
/// is not known yet. Throws DeviceError.
StepPlan planStep(cudnnHandle_t handle,
                  const std::vector<Layer>& layers,
                  const ConvolutionOptions& options,
                  std::size_t limitBytes,
                  int samples);

}  // namespace ucudnn::tool
