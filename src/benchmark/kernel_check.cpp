#include "benchmark/kernel_check.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include "problem/numbers.hpp"

namespace ucudnn {
namespace {

using Kind = KernelVerdict::Kind;

/// The simulator computes outputs only where it is told to.
bool areOutputsComputed() {
  using Asks = int (*)();
  static const auto asks =
      reinterpret_cast<Asks>(dlsym(RTLD_DEFAULT, "ucudnnSimulatorComputesAll"));
  return asks == nullptr || asks() != 0;
}

cudaStream_t streamOf(cudnnHandle_t handle) {
  cudaStream_t stream = nullptr;
  UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &stream));
  return stream;
}

/// Empty: the outputs are right.
std::string whyWrong(const KernelToCheck& checked,
                     const Problem& problem,
                     const std::vector<ExactOutput>& exact,
                     const char* result) {
  const std::vector<double> values = toDoubles(result, exact.size(), problem.outputType());
  const double times = checked.adds ? 2 : 1;
  double squares = 0;
  for (const ExactOutput& output : exact) squares += std::pow(times * output.value, 2);
  const double size = std::sqrt(squares / static_cast<double>(exact.size()));
  const Tolerance tolerance = toleranceOf(problem, checked.accurate);
  std::string first;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double expected = times * exact[i].value;
    const double most = tolerance.ofItself * std::abs(expected) + tolerance.ofAll * size;
    if (std::abs(values[i] - expected) <= most) continue;  // a NaN is not
    if (++wrong == 1)
      first = fmt::format("its output {} is {:.6g}, not {:.6g} (of some {:.3g})",
                          exact[i].offset,
                          values[i],
                          expected,
                          size);
  }
  if (wrong > 1) first += fmt::format("; {} of {} are wrong", wrong, exact.size());
  return first;
}

}  // namespace

/// From the errors that kernels had on an H200 (misc/docs/ARCHITECTURE.md): TF32 3e-4, and 8e-4 of
/// a large output; the non-fused Winograd beyond 3x3 1e-3, others in float at most 2e-5. In 16 bits
/// a transform also rounds its inputs. The largest error of some hundred outputs is four times
/// their norm.
Tolerance toleranceOf(const Problem& problem, bool accurate) noexcept {
  if (problem.computeType == CUDNN_DATA_HALF || problem.reducedSums != 0) return {2e-2, 5e-2};
  if (problem.xType == CUDNN_DATA_DOUBLE) return {1e-10, 1e-9};
  // Tensor cores cut off the bits that TF32 does not have: less than 2^-10 of each factor.
  const bool isTf32 = problem.xType == CUDNN_DATA_FLOAT && problem.mathType != CUDNN_FMA_MATH;
  double ofItself = isTf32 ? 2e-3 : 1e-5;
  // Sums and tiles that are rounded to 16 bits in between are rounded more than once.
  if (problem.outputType() == CUDNN_DATA_HALF) ofItself = 4e-3;
  if (problem.outputType() == CUDNN_DATA_BFLOAT16) ofItself = 2e-2;
  const double ofAll = isRounded(problem.xType) || !accurate ? 1e-2
                       : problem.mathType == CUDNN_FMA_MATH  ? 5e-4
                                                             : 4e-3;
  return {ofItself, ofAll};
}

std::shared_ptr<const OutputsToCheck> KnownOutputs::of(const Problem& problem) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, outputs] : latest_)
      if (known == problem) return outputs;
  }
  auto made = std::make_shared<const OutputsToCheck>(outputsToCheck(problem));
  const std::lock_guard lock(mutex_);
  if (latest_.size() >= kMostKnown) latest_.pop_front();
  latest_.emplace_back(problem, made);
  return made;
}

KernelChecker::KernelChecker(cudnnHandle_t handle,
                             const Problem& problem,
                             const ScratchBound& bound,
                             KnownOutputs& known)
    : problem_(problem),
      known_(known),
      canCheck_(hasExactOutputs(problem) && areOutputsComputed()),
      memory_(bound, streamOf(handle)),
      timer_(handle, problem) {}

void KernelChecker::reserve(const KernelToCheck& checked) {
  if (canCheck_)
    memory_.reserve(problem_.withBatch(checked.batch), checked.workspaceBytes, checked.mustRepeat);
}

/// The host computes what is expected while the kernel runs.
KernelVerdict KernelChecker::check(const KernelToCheck& checked) {
  using Run = CheckMemory::Run;
  if (!canCheck_) return {};
  const Problem problem = problem_.withBatch(checked.batch);
  if (!memory_.prepare(problem, checked.workspaceBytes, windowsOf(problem), checked.mustRepeat))
    return {};
  if (!run(checked)) return {};
  const std::shared_ptr<const OutputsToCheck> outputs = known_.of(problem);
  memory_.keepOutputs(*outputs, Run::kFirst);
  if (checked.mustRepeat) {
    memory_.prepareSecondRun();
    if (!run(checked)) return {};
    memory_.keepOutputs(*outputs, Run::kSecond);
  }
  memory_.read();
  const char* const first = memory_.outputs(Run::kFirst);
  std::string why = whyWrong(checked, problem, outputs->outputs, first);
  const std::string whyElsewhere = memory_.whyElsewhere();
  if (why.empty()) why = whyElsewhere;
  if (!why.empty()) return {Kind::kWrong, why};
  const std::size_t bytes = outputs->outputs.size() * elementBytes(problem.outputType());
  if (checked.mustRepeat && std::memcmp(first, memory_.outputs(Run::kSecond), bytes) != 0)
    return {Kind::kUnrepeatable, "two runs differ"};
  return {Kind::kRight, {}};
}

/// False: the kernel refuses.
bool KernelChecker::run(const KernelToCheck& checked) {
  const PlacedCall call{checked.kernel, checked.batch, checked.workspaceBytes, memory_.place()};
  return timer_.run(call, false) == CUDNN_STATUS_SUCCESS &&
         (!checked.adds || timer_.run(call, true) == CUDNN_STATUS_SUCCESS);
}

}  // namespace ucudnn
