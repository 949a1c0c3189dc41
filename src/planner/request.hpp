// Requests to the planner.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "benchmark/buffers.hpp"
#include "kernels/kernel.hpp"
#include "optimizer/policy.hpp"
#include "plan/plan.hpp"
#include "problem/problem.hpp"
#include "support/settings.hpp"
#include "support/workspace_room.hpp"

namespace ucudnn {

class FrozenPlans;

/// How much may be done to find an answer.
enum class Measuring {
  kNever,       ///< nothing, not even read a file: the stream is being captured
  kIfKnown,     ///< only look into the database: for a query that names no limit
  kWhenItPays,  ///< for a call: it is counted, and the problem measured once that pays
  kNow,         ///< for a query that names a limit, Find, a diagnosis, a network under one total
};

/// How a plan's calls run.
enum class Replay {
  kNever,          ///< each micro-batch is enqueued
  kWhereRepeated,  ///< enqueued at first, as a CUDA graph once a call repeats
  kSamePlan,       ///< likewise, by one plan: a repeated call must have the first one's result
};

/// A question about a problem. Another question decides anew which kernels are worth timing.
struct QuestionKey {
  int miniBatch = 0;
  BatchSizePolicy policy = BatchSizePolicy::kUndivided;
  Kernels kernels = Kernels::kLegacy;
  Tuning tuning = Tuning::kExhaustive;
  bool errors = false;   ///< kernels' errors count, whatever the largest allowed error
  bool borrows = false;  ///< micro-batches may have more workspace than the limit, in the output

  bool operator==(const QuestionKey& other) const noexcept {
    return miniBatch == other.miniBatch && policy == other.policy && kernels == other.kernels &&
           tuning == other.tuning && errors == other.errors && borrows == other.borrows;
  }
};

/// The text under which the database keeps a question, after the problem's own text and a space.
std::string toText(const QuestionKey& question);

/// The micro-batch sizes that the policy tries for a problem, ascending; the last is the
/// mini-batch. A filter gradient in half or bfloat16 is not split, because each micro-batch would
/// round what it adds.
std::vector<int> sizesFor(const Problem& problem, BatchSizePolicy policy);

/// The kernel that a client's call runs without μ-cuDNN, and its workspace for the mini-batch.
struct OwnKernel {
  Kernel kernel;
  std::size_t workspaceBytes = 0;
};

/// Who asks, and for what. A Snapshot makes it from what is known of a call; the functions below
/// derive requests for something else about the same convolution.
struct PlanRequest {
  cudnnHandle_t handle = nullptr;
  int device = 0;
  int machine = 0;  ///< of Machines
  Problem problem;
  std::size_t limitBytes = 0;
  bool deterministic = false;  ///< only deterministic kernels
  /// The calls that the plan's own steps must run; for other calls another plan is requested.
  /// kOther: only kernels that run whatever the call's factors and pointers are.
  CallKind calls = CallKind::kAdding;
  bool undivided = false;  ///< only at the mini-batch itself, whatever the policy
  /// The calls are known to suit engines, so the plan may lack a second plan for others.
  bool suitsEngines = false;
  bool lacksWorkspace = false;   ///< the call's own kernel needs more than the call has
  std::optional<OwnKernel> own;  ///< that kernel, where it is known
  /// Whether the workspace is only asked for: a plan that needs less of it then saves memory.
  bool mayTellLess = false;
  std::uint32_t callsSince = 1;  ///< calls that were made since the planner was asked last
  const Settings* settings = nullptr;
  const std::vector<int>* benchmarkDevices = nullptr;  ///< beside the handle's own
  FrozenPlans* frozen = nullptr;                       ///< null: no file of plans
  /// The caller's buffers, whose output may be overwritten; null: scratch memory.
  const TensorBuffers* buffers = nullptr;
  bool mayAllocate = true;  ///< false: FindEx, of which clients know that it takes no memory

  PlanRequest within(std::size_t bytes) const {
    PlanRequest other = *this;
    other.limitBytes = bytes;
    return other;
  }
  /// For building a plan that has been chosen already.
  PlanRequest unlimitedFor(CallKind itsCalls) const {
    PlanRequest other = within(std::numeric_limits<std::size_t>::max());
    other.calls = itsCalls;
    return other;
  }
  PlanRequest forAnyCall() const {
    PlanRequest other = *this;
    other.calls = CallKind::kOther;
    return other;
  }
  /// Undivided and without a limit. The caller's buffers lack the workspace for that.
  PlanRequest unlimited() const {
    PlanRequest other = within(std::numeric_limits<std::size_t>::max());
    other.undivided = true;
    other.buffers = nullptr;
    return other;
  }

  BatchSizePolicy policy() const noexcept {
    return undivided ? BatchSizePolicy::kUndivided : settings->batchSizePolicy;
  }
  std::vector<int> sizes() const { return sizesFor(problem, policy()); }
  /// Whether the client's own kernel runs within the limit. If it does, a plan has to be faster.
  bool runsOwn() const noexcept { return own && own->workspaceBytes <= limitBytes; }
  /// The calls that kernels are timed for. Calls that are known to suit engines also overwrite.
  Calls timedCalls() const noexcept { return suitsEngines ? callsOf(calls) : Calls::kAll; }
  /// The calls that a kernel must be ready for at a size. A filter gradient's micro-batches add up.
  Calls callsAt(int batch) const noexcept {
    const bool addsUp = problem.operation == Operation::kBackwardFilter && batch < problem.batch();
    return addsUp ? Calls::kAll : callsOf(calls);
  }
  /// Whether another thread may make the plan while calls do without it. A large problem's own
  /// kernel is slow, so its calls wait.
  bool mayPlanInBackground() const noexcept {
    return settings->backgroundPlanning && settings->benchmarkShare != kMeasureAlways &&
           frozen == nullptr && !problem.isLarge();
  }
  bool withEngines() const noexcept { return settings->kernels != Kernels::kLegacy; }
  bool withErrors() const noexcept { return settings->maxError > 0; }
  /// Bytes of an output sample that a plan may borrow; 0: none. Whatever the request's calls,
  /// kernels are measured for those that overwrite the output.
  std::size_t borrowedSampleBytes() const noexcept {
    return settings->borrowOutput ? problem.overwrittenSampleBytes() : 0;
  }
  /// The workspace of a plan's micro-batches.
  WorkspaceRoom room() const noexcept {
    return {limitBytes, calls == CallKind::kOverwriting ? borrowedSampleBytes() : 0};
  }
  bool mayBorrow() const noexcept { return room().sampleBytes > 0; }
  QuestionKey question() const noexcept {
    return {problem.batch(),
            policy(),
            settings->kernels,
            settings->tuning,
            withErrors(),
            borrowedSampleBytes() > 0};
  }
  Replay replay() const noexcept {
    if (settings->graphMemoryBytes == 0 || settings->equivalenceTest) return Replay::kNever;
    return settings->deterministic ? Replay::kSamePlan : Replay::kWhereRepeated;
  }
};

}  // namespace ucudnn
