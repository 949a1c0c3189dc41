// The equivalence test (UCUDNN_EQUIVALENCE_TEST) compares a split call's output with plain cuDNN's.
// For debugging: it allocates, and waits for the device.
#pragma once

#include <optional>

#include "cuda/owners.hpp"
#include "executor/executor.hpp"

namespace ucudnn {

/// Copies the output before the split call. Afterwards it lets cuDNN compute the same undivided.
class EquivalenceTest {
 public:
  /// Copies the output, because beta may read it. Throws Error.
  EquivalenceTest(cudnnHandle_t handle, const Problem& problem, const ConvolutionCall& call);

  /// The normalized L2 distance ||split - undivided|| / ||undivided||. Throws Error if cuDNN has
  /// nothing to run undivided, or memory is short.
  double distance();

 private:
  void runUndivided();

  cudnnHandle_t handle_;
  Problem problem_;
  ConvolutionCall call_;
  BiasActivation fused_;
  std::int32_t type_ = 0;  ///< of the output's elements
  std::size_t bytes_ = 0;  ///< bytes that the output spans
  const void* output_ = nullptr;
  DeviceBuffer reference_;
};

/// Calls runPlan with the test around it, and logs the distance at level info. A call that is being
/// captured is not tested, and no other stream's capture is disturbed. `device` is the handle's.
PlanRun runTested(cudnnHandle_t handle,
                  int device,
                  const Plan& plan,
                  const ConvolutionCall& call) noexcept;

}  // namespace ucudnn
