// μ-cuDNN's description of its plan for a convolution.
#pragma once

#include <optional>
#include <vector>

#include "tool/convolution.hpp"
#include "tool/options.hpp"
#include "tool/report.hpp"

namespace ucudnn::tool {

struct PlanDescription {
  std::vector<MicroBatches> configuration;
  std::size_t workspaceBytes = 0;
  double predictedMs = 0;       ///< of the convolution by itself, back to back
  bool replayed = false;        ///< predictedMs is of one launch of a CUDA graph
  double deviceMs = 0;          ///< what the device needs of it
  std::optional<double> error;  ///< the largest of its kernels; empty: not known
  double hostPacedMs = 0;       ///< of its micro-batches that take the host longer than the device
};

/// Empty if there is none under the limit. Throws DeviceError.
std::optional<PlanDescription> describePlan(cudnnHandle_t handle,
                                            const Convolution& convolution,
                                            std::size_t limitBytes);

/// The second Pareto front: the fastest plans under the limit as the error falls that is allowed.
/// Leaves the handle with the options' largest error. Throws DeviceError.
std::vector<PlanDescription> describeAccuracy(UcudnnHandle_t handle,
                                              const Convolution& convolution,
                                              const ConvolutionOptions& options);

/// On the simulator: the arithmetic that planning needs. Errors are measured only for small layers.
Arithmetic arithmeticToPlan(const ConvolutionOptions& options, const Layer& layer);

}  // namespace ucudnn::tool
