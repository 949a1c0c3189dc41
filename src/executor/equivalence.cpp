#include "executor/equivalence.hpp"

#include "cuda/call_stream.hpp"
#include "cuda/cudnn.hpp"
#include "executor/distance.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/slices.hpp"
#include "support/log.hpp"

namespace ucudnn {

EquivalenceTest::EquivalenceTest(cudnnHandle_t handle,
                                 const Problem& problem,
                                 const ConvolutionCall& call)
    : handle_(handle), problem_(problem), call_(call) {
  if (call.fused != nullptr) fused_ = *call.fused;
  type_ = problem.outputType();
  bytes_ = problem.outputBytes();
  output_ = call.pointers.*outputOf(problem.operation);
  reference_ = DeviceBuffer(bytes_);
  cudaStream_t stream = nullptr;
  UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &stream));
  UCUDNN_CHECK_CUDA(
      cudaMemcpyAsync(reference_.get(), output_, bytes_, cudaMemcpyDeviceToDevice, stream));
}

/// Uses the algorithm that the client named if cuDNN has it, else any other.
void EquivalenceTest::runUndivided() {
  ConvolutionCall call = call_;
  call.execution = nullptr;  // its pack has the client's output
  call.pointers.*outputOf(problem_.operation) = reference_.get();
  if (call.fused != nullptr) {
    if (fused_.z == output_) fused_.z = reference_.get();
    call.fused = &fused_;
  }
  std::vector<int> algorithms{call.algorithm};
  for (const KernelOffer& offer : offeredAlgorithms(handle_, problem_, call.descriptors))
    algorithms.push_back(offer.kernel.id);
  for (const int algorithm : algorithms) {
    std::size_t bytes = 0;
    if (nativeWorkspaceSize(handle_, problem_.operation, call.descriptors, algorithm, &bytes) !=
        CUDNN_STATUS_SUCCESS)
      continue;
    const DeviceBuffer workspace(bytes);
    call.algorithm = algorithm;
    call.pointers.workspace = workspace.get();
    call.pointers.workspaceBytes = bytes;
    if (runNative(handle_, problem_.operation, call) == CUDNN_STATUS_SUCCESS) return;
  }
  throw Error(CUDNN_STATUS_NOT_SUPPORTED, "cuDNN has no algorithm to run it undivided");
}

double EquivalenceTest::distance() {
  runUndivided();
  return normalizedDistance(
      handle_, type_, output_, reference_.get(), bytes_ / elementBytes(type_));
}

namespace {

/// Runs `doIt` so that no other stream's capture notices it. A failure is logged.
template <typename Do>
void test(const Plan& plan, int device, Do doIt) noexcept {
  try {
    const RelaxedCapture relaxed;
    const DeviceScope scope(device);
    doIt();
  } catch (const std::exception& error) {
    logWarn("equivalence test of {} not made: {}",
            Late{[&] { return plan.problem.text(); }},
            error.what());
  }
}

}  // namespace

PlanRun runTested(cudnnHandle_t handle,
                  int device,
                  const Plan& plan,
                  const ConvolutionCall& call) noexcept {
  std::optional<EquivalenceTest> tested;
  test(plan, device, [&] {
    if (!isCapturing(handle)) tested.emplace(handle, plan.problem, call);
  });
  const PlanRun run = runPlan(handle, plan, call);
  if (!tested) return run;
  test(plan, device, [&] {
    if (run.status != CUDNN_STATUS_SUCCESS) return;
    logInfo("equivalence test of {} N={}: {}: normalized L2 distance {:.3g}",
            plan.problem.text(),
            plan.problem.batch(),
            toText(plan),
            tested->distance());
  });
  test(plan, device, [&] { tested.reset(); });  // frees memory
  return run;
}

}  // namespace ucudnn
