// Knowledge of problems: kernels' times, which last, and answers, which hold for one question.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "optimizer/policy.hpp"
#include "plan/plan.hpp"
#include "planner/request.hpp"
#include "problem/problem.hpp"
#include "support/bounded_map.hpp"

namespace ucudnn {

struct PlanAnswer {
  std::shared_ptr<const Plan> plan;  ///< null: left to cuDNN
  bool isFinal = false;              ///< asking again, or measuring on, would not change it
  /// There may be a better plan that uses more of the limit: KnownQuestion::answersClosely.
  bool isFromOtherLimit = false;
  bool ownIsBest = false;  ///< there is no plan, because the client's own kernel is as fast
  bool isOngoing = false;  ///< the problem's next call takes its measurement further
};

/// A plan, and the limits that it answers: all from `lowBytes` to `highBytes`.
struct KnownPlan : PlanAnswer {
  bool deterministic = false;
  Replay replay = Replay::kNever;
  double maxError = 0;
  std::size_t lowBytes = 0;
  std::size_t highBytes = 0;
  bool borrows = false;       ///< it was made for calls whose output may be borrowed
  bool suitsEngines = false;  ///< and for calls that are known to suit engines
  /// Only clients whose own kernel this is, and fits, have no plan: for calls of this kind if that
  /// kernel is best, and, if `isForQueries`, for questions for workspace.
  std::optional<Kernel> beside;
  CallKind calls = CallKind::kOverwriting;
  bool isForQueries = false;
};

/// A plan that runs until a problem is measured, and what it was made for.
struct UnmeasuredPlan {
  enum class Kind {
    kOwn,  ///< the client's own kernel on parts of the batch, or one that is faster in parts
    kAny   ///< whatever fits
  };
  Kind kind = Kind::kOwn;
  std::optional<Kernel> own;  ///< of the request
  CallKind calls = CallKind::kAdding;
  bool deterministic = false;
  Replay replay = Replay::kNever;
  std::size_t limitBytes = 0;  ///< it was made for this limit; within more, larger parts may fit
  std::shared_ptr<const Plan> plan;  ///< null: the kernel does not run so, or nothing fits

  bool serves(const PlanRequest& request) const noexcept;
};

/// The largest limit that a benchmark answers, if it answers its question.
std::size_t answeredWithin(const BenchmarkResult& result, std::size_t limitBytes) noexcept;

/// A limit that has been measured. Every kernel that could be in a best plan was tried, at the
/// mini-batch itself every kernel at all, and the largest batches that fit this limit.
struct Coverage {
  std::size_t limitBytes;
  std::size_t answeredBytes;  ///< limits up to this have the same answer; no less than limitBytes
};

/// The number of limits kept. A limit that is halved again and again makes no more.
constexpr std::size_t kMostCoverages = 128;

/// A question about a problem, and its answers. A kernel that was left out because others beat it
/// was left out for this question only.
struct KnownQuestion {
  using Clock = std::chrono::steady_clock;

  QuestionKey key;
  std::vector<Coverage> coverages;
  bool memoryWasShort = false;  ///< something was not tried for lack of memory
  bool replaysUntried = false;  ///< some kernels' replayed times are missing, for lack of memory
  bool failed = false;          ///< something failed that may work another time
  std::size_t triedBytes = 0;   ///< the largest limit at which something was left out
  /// The largest limit at which nothing was left out; a look leaves most out.
  std::optional<std::size_t> wholeBytes;
  Clock::time_point retryAt{};  ///< when to try again what could not be tried
  std::string why;              ///< the obstacle, for the log
  bool isOfLook = false;        ///< only few kernels were timed (Look)
  bool lookFailed = false;      ///< once; a look that fails again is over
  bool isOngoing = false;       ///< it is being measured, slice by slice
  double spentMs = 0;           ///< the time of that, so far
  std::uint64_t calls = 0;      ///< calls that were answered here, not by a handle's own table
  std::vector<KnownPlan> plans;
  std::vector<KnownPlan> formerPlans;  ///< before the latest measurement; equal plans are reused
  /// The latest is last. Kept when the problem is measured, because a client's graph may run them.
  std::vector<UnmeasuredPlan> unmeasured;
  Clock::time_point partsRetryAt{};  ///< after failures no candidate's parts are tried before
  int partsFailures = 0;

  bool isIncomplete() const noexcept { return memoryWasShort || replaysUntried || failed; }
  bool isAnswered() const noexcept { return !coverages.empty(); }
  /// Whether a plan within the limit can be made. If the limit is far below those asked for, there
  /// may be a better plan.
  bool answers(std::size_t limitBytes) const noexcept;
  /// Whether the answer was looked for within a similar limit, from half to double. So measuring is
  /// repeated only as often as a varying limit halves or doubles. Also true if such a search gave a
  /// plan that fits the limit, because a call mostly brings its plan's workspace.
  bool answersClosely(std::size_t limitBytes) const noexcept;
  void addCoverage(Coverage coverage);
  /// Answered, and another attempt would add nothing unless its limit is closer.
  bool isComplete(std::size_t limitBytes) const noexcept {
    return answers(limitBytes) && (!isIncomplete() || (wholeBytes && *wholeBytes >= limitBytes));
  }
  /// Notes an attempt within `limitBytes`. If it had less than an earlier attempt, it does not make
  /// up for what that one left out. `hasUndivided`: some kernel's time for the mini-batch itself is
  /// known. Then kernels that fail in two attempts running count as refused, because a cuDNN whose
  /// kernel always fails would leave the problem without a plan for ever.
  void addAttempt(const BenchmarkResult& result, std::size_t limitBytes, bool hasUndivided);
  const KnownPlan* find(const PlanRequest& request) const noexcept;
  /// The client's own kernel in parts, or another one in bands, as it runs until it is measured.
  /// Null: it does not.
  std::shared_ptr<const Plan> unmeasuredFor(const PlanRequest& request) const noexcept;
  /// Drops the plans after something has been measured.
  void dropPlans();
};

/// Kernels, each at a batch size.
using KernelSet = std::set<std::pair<int, Kernel>>;

/// A problem at any mini-batch.
struct Known {
  Measurements measurements;
  Measurements elsewhere;  ///< on another machine: tried first, but no answer
  /// The kernels among them that a file's plans for another machine have, by mini-batch.
  std::map<int, std::vector<Kernel>> hinted;
  KernelsAtSizes refused;                          ///< kernels that cuDNN names but does not run
  std::string loadedFrom;                          ///< the database that was read
  bool isLoading = false;                          ///< a thread is reading one
  KnownQuestion::Clock::time_point loadAgainAt{};  ///< set if others held it when it was read
  std::vector<KnownQuestion> questions;
  /// Client kernels that were faster than their plans when both were called in turns.
  std::set<std::pair<int, Kernel>> preferred;
  /// Mini-batches where cuDNN, without a limit, ranks an accurate kernel first. Kept because it
  /// takes cuDNN long to say so.
  std::set<int> accurateFirst;

  // Kernels that checks have found right or wrong (kernel_checks.hpp).
  KernelSet right, repeated;      ///< compute what they should; and the same bits, when asked twice
  std::set<Kernel> wrong;         ///< are barred at any batch size
  std::set<Kernel> unrepeatable;  ///< are not as deterministic as cuDNN says

  /// Drops wrong kernels from the measurements, and marks those that a check found not to be
  /// deterministic.
  void dropWrong();
  /// Whether the time of any kernel is known for this many samples.
  bool hasMeasured(int batch) const noexcept {
    const auto size = measurements.find(batch);
    return size != measurements.end() && !size->second.kernels.empty();
  }
  /// Whether the kernel has been measured at a batch size, or can't be.
  bool hasTried(int batch, Kernel kernel) const noexcept;
  bool wasLocked() const noexcept { return loadAgainAt != KnownQuestion::Clock::time_point(); }
  /// Whether to read this database now: once, unless others held it.
  bool mayLoad(const std::string& path) const noexcept;
  void dropPlans();
  KnownQuestion* find(const QuestionKey& key) noexcept;
  const KnownQuestion* find(const QuestionKey& key) const noexcept;
  /// Adds the question if it is new. If there are too many, the oldest one goes.
  KnownQuestion& question(const QuestionKey& key);
};

/// A problem on a kind of device, at batch 0.
struct KnownKey {
  int machine = 0;
  Problem problem;
  bool operator==(const KnownKey& other) const noexcept {
    return machine == other.machine && problem == other.problem;
  }
  struct Hash {
    std::size_t operator()(const KnownKey& key) const noexcept {
      return key.problem.hash() + static_cast<std::size_t>(key.machine);
    }
  };
};

/// How many problems are remembered, the latest used. A measured one takes up to 15 KiB. The
/// database keeps the measurements of the others.
constexpr std::size_t kMostProblems = 8192;
/// Questions about one problem.
constexpr std::size_t kMostQuestions = 64;
/// Plans of one question: as many as its Pareto front is long, mostly below ten.
constexpr std::size_t kMostPlans = 32;
/// Unmeasured plans of one question. A program that compares engines grants them different
/// workspaces.
constexpr std::size_t kMostUnmeasured = 16;

using Knowledge = BoundedMap<KnownKey, Known, KnownKey::Hash>;

}  // namespace ucudnn
