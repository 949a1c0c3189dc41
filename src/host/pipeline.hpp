// Runs a convolution whose tensors are in host memory: copies parts of them to the device and back,
// beside the kernels.
#pragma once

#include <functional>

#include "host/host_plan.hpp"
#include "host/staging.hpp"
#include "plan/call.hpp"

namespace ucudnn {

/// Runs a tile's call, whose pointers are of the device.
using RunTile = std::function<cudnnStatus_t(const ConvolutionCall&)>;

/// Fills the slots of the first tile, to measure its kernels on what they will read. Waits. Throws
/// Error. REQUIRES: as below.
void loadFirstTile(const HostPlan& plan,
                   const ConvolutionCall& call,
                   cudaStream_t stream,
                   Staging& staging);
/// The first tile's pointers on the device, once it is loaded, and its workspace.
ConvolutionPointers firstTile(const HostPlan& plan,
                              const ConvolutionCall& call,
                              Staging& staging) noexcept;

/// Enqueues a call by its plan: it is complete in the order of `stream`. Waits for nothing, unless
/// a tensor is pageable. Returns the status of the first tile that fails. Throws Error. REQUIRES:
/// the staging's lock is held, and it is prepared; the lane has the plan's bytes.
cudnnStatus_t runOnHostTensors(const HostPlan& plan,
                               const ConvolutionCall& call,
                               cudaStream_t stream,
                               Staging& staging,
                               Lane& lane,
                               const RunTile& runTile);

}  // namespace ucudnn
