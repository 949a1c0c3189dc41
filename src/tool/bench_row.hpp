// One row of `ucudnn bench`: a layer's operation planned, run, timed and compared.
#pragma once

#include "tool/layer_list.hpp"
#include "tool/options.hpp"
#include "tool/report.hpp"

namespace ucudnn::tool {

/// Never throws DeviceError: what goes wrong stands in the row's `error`, beside what was found out
/// before.
Row benchRow(const Handles& handles,
             cudaStream_t stream,
             const Layer& layer,
             ucudnnOperation_t operation,
             const BenchOptions& options);

/// The plan that μ-cuDNN has for the convolution under the limit; empty where it has none.
/// `predictedMs` and `workspaceBytes` may be null. Throws DeviceError.
std::vector<MicroBatches> describePlan(cudnnHandle_t handle,
                                       const Convolution& convolution,
                                       std::size_t limitBytes,
                                       std::optional<double>* predictedMs,
                                       std::size_t* workspaceBytes = nullptr);

/// The arithmetic that a check on the simulator uses.
Arithmetic arithmeticFor(const BenchOptions& options, const Layer& layer);

}  // namespace ucudnn::tool
