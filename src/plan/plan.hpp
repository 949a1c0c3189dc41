// A plan: the configuration chosen for a problem, ready to run.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/source.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

inline std::uint64_t nextPlanId() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// Calls by what can run them. A plan for one kind also runs the kinds before it.
enum class CallKind {
  kOverwriting,  ///< suits engines (suitsEngines), and overwrites its output
  kAdding,       ///< suits engines
  kOther,
};
/// The calls that kernels must be ready for. Calls that suit no engine need no graph that adds.
constexpr Calls callsOf(CallKind kind) noexcept {
  return kind == CallKind::kAdding ? Calls::kAll : Calls::kOverwriting;
}

/// Immutable once made; shared by every handle and thread that runs the problem.
struct Plan {
  /// `count` micro-batches of `batch` samples, one after another.
  struct Step : KernelOffer, KernelTiming {
    int batch = 0;
    int count = 0;
    std::shared_ptr<const BuiltKernel> built;  ///< at `batch` samples
    bool borrows = false;  ///< its workspace is in the output (support/workspace_room.hpp)
    /// So much of its workspace is there, for the copy of its output; the rest is the call's.
    std::size_t outputCopyBytes = 0;
  };

  // These come first, side by side, and are not looked up in `steps`: every call reads them, mostly
  // from a cold cache.
  bool divided = false;   ///< two micro-batches or more
  bool measured = true;   ///< false: its times are not known; it runs until a measured plan does
  bool replayed = false;  ///< predictedMs is the time of a call replayed as a CUDA graph
  /// The algorithm of a plan of one kernel that takes the caller's own descriptors; -1: not such a
  /// plan.
  int callersAlgorithm = -1;
  CallKind runs = CallKind::kOther;  ///< the calls that its own steps run
  double predictedMs = 0;
  /// The plan for calls that are not replayed; null: this one. It needs no more workspace.
  std::shared_ptr<const Plan> enqueued;
  /// The plan for calls that suit no engine, or do not overwrite what steps borrow. Null: no such
  /// call is expected. By the database it needs no more workspace. Few clients make such calls, so
  /// cuDNN is asked about that at the first one (executor/checked_plans.hpp).
  std::shared_ptr<const Plan> general;

  Problem problem;
  std::vector<Step> steps;         ///< in the order of Configuration's
  std::size_t workspaceBytes = 0;  ///< the largest that steps don't borrow, or `general`'s
  /// The algorithm that a query names for this plan. Undivided, it runs within `algorithmBytes`,
  /// which is workspaceBytes unless cuDNN has no undivided algorithm that needs so little. -1: no
  /// algorithm is valid by itself (only deterministic ones are asked for, and all need more than
  /// the limit undivided).
  int algorithm = 0;
  std::size_t algorithmBytes = 0;
  std::uint64_t id = nextPlanId();  ///< unlike the address, never another plan's
  /// Time and workspace of the fastest undivided kernel that was known within the limit when this
  /// was chosen; 0: not known, as in a plan from a file.
  double undividedMs = 0;
  std::size_t undividedBytes = 0;
  double ownMs = 0;  ///< of the client's own kernel, likewise; 0: not measured

  bool isDivided() const noexcept { return divided; }
  /// The plan among these that runs calls of a kind; null: none. cuDNN then runs other calls as
  /// they are, because nothing else is known within the limit.
  const Plan* of(CallKind kind) const noexcept {
    return kind <= runs ? this : kind == CallKind::kOther ? general.get() : nullptr;
  }
  /// The plan for a call that is replayed, or enqueued.
  const Plan& at(bool isReplayed) const noexcept {
    return isReplayed || !enqueued ? *this : *enqueued;
  }
  bool borrows() const noexcept {
    const auto isBorrower = [](const Step& step) {
      return step.borrows || step.outputCopyBytes > 0;
    };
    return std::any_of(steps.begin(), steps.end(), isBorrower) ||
           (enqueued != nullptr && enqueued->borrows());
  }
  std::size_t microBatches() const noexcept {
    std::size_t count = 0;
    for (const Step& step : steps) count += static_cast<std::size_t>(step.count);
    return count;
  }
  bool isDeterministic() const noexcept {
    for (const Step& step : steps)
      if (!step.deterministic) return false;
    return (enqueued == nullptr || enqueued->isDeterministic()) &&
           (general == nullptr || general->isDeterministic());
  }
};

/// "2 x 128 FFT/default + 1 x 3 GEMM/default", for a plan's steps or values with their members.
template <typename Steps>
std::string toText(Operation operation, const Steps& steps) {
  std::string text;
  for (const auto& step : steps)
    text += (text.empty() ? "" : " + ") + std::to_string(step.count) + " x " +
            std::to_string(step.batch) + " " + toText(operation, step.kernel) +
            (step.borrows ? " in its output" : "");
  return text;
}
inline std::string toText(const Plan& plan) {
  return toText(plan.problem.operation, plan.steps);
}

}  // namespace ucudnn
