// What is known of problems: kernels' times, which last, and what has been asked, which holds for
// that question only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
  bool isFinal = false;              ///< asked again, or measured on, it would be the same
  /// There may be a better one, in more of the limit: KnownQuestion::answersClosely.
  bool isFromOtherLimit = false;
  bool ownIsBest = false;  ///< there is none, as the client's own kernel is as fast
  bool isOngoing = false;  ///< the problem's next call takes its measurement further
};

/// A plan and the limits that it is the answer to: all from `lowBytes` to `highBytes`.
struct KnownPlan : PlanAnswer {
  bool deterministic = false;
  Replay replay = Replay::kNever;
  double maxError = 0;
  std::size_t lowBytes = 0;
  std::size_t highBytes = 0;
  bool borrows = false;       ///< it was asked for calls whose output may be borrowed
  bool suitsEngines = false;  ///< and for calls that are known to suit engines
};

/// What runs until a problem is measured, and what it was made for.
struct UnmeasuredPlan {
  enum class Kind {
    kOwn,  ///< the client's own kernel on parts of the batch
    kAny   ///< whatever fits
  };
  Kind kind = Kind::kOwn;
  std::optional<Kernel> own;  ///< that the request had
  CallKind calls = CallKind::kAdding;
  bool deterministic = false;
  Replay replay = Replay::kNever;
  std::size_t limitBytes = 0;        ///< within so much; within more, larger parts may fit
  std::shared_ptr<const Plan> plan;  ///< null: it does not run so, or nothing fits

  bool serves(const PlanRequest& request) const noexcept;
};

/// The workspace within which a benchmark answers its question, if it does.
std::size_t answeredWithin(const BenchmarkResult& result, std::size_t limitBytes) noexcept;

/// What was found out for a limit. Every kernel was tried that could be in a best plan, at the
/// mini-batch itself every one at all; and for this limit, the largest batches that fit it.
struct Coverage {
  std::size_t limitBytes;
  std::size_t answeredBytes;  ///< within so much nothing else is known; no less than the limit
};

/// A limit that halves again and again makes no more.
constexpr std::size_t kMostCoverages = 128;

/// What has been asked of a problem. A kernel that was left out because others beat it was left out
/// for this question only.
struct KnownQuestion {
  using Clock = std::chrono::steady_clock;

  QuestionKey key;
  std::vector<Coverage> coverages;
  bool memoryWasShort = false;  ///< something was not tried for want of memory
  bool replaysUntried = false;  ///< what some kernels take when they are replayed, for the same
  bool failed = false;          ///< something failed that may work another time
  std::size_t triedBytes = 0;   ///< the limit within which that was left out
  std::optional<std::size_t> wholeBytes;  ///< within so much nothing was left out
  Clock::time_point retryAt{};            ///< of what could not be tried
  std::string why;                        ///< what stood in the way, for the log
  bool isOfNeighbour = false;             ///< what is fastest was looked for among few kernels
  bool isOngoing = false;                 ///< it is being measured, slice by slice
  double spentMs = 0;                     ///< on that, so far
  std::uint64_t calls = 0;  ///< that were answered here, not from a handle's own table
  std::vector<KnownPlan> plans;
  std::vector<KnownPlan> formerPlans;  ///< before the latest measurement; equal ones are kept
  /// The latest last. Kept when the problem is measured: a graph of the client's may run them.
  std::vector<UnmeasuredPlan> unmeasured;
  Clock::time_point partsRetryAt{};  ///< no candidate's parts are tried before: one's have failed
  int partsFailures = 0;

  bool isIncomplete() const noexcept { return memoryWasShort || replaysUntried || failed; }
  bool isAnswered() const noexcept { return !coverages.empty(); }
  /// Whether a plan within the limit can be made. Of one that is far below what was asked for there
  /// may be a better one.
  bool answers(std::size_t limitBytes) const noexcept;
  /// Whether what answers the limit was looked for within about as much, half to double: so a limit
  /// that varies is measured anew as often as it halves or doubles. Or such a search gave a plan
  /// that the limit is enough for: mostly a call has its plan's workspace.
  bool answersClosely(std::size_t limitBytes) const noexcept;
  void addCoverage(Coverage coverage);
  /// Answered, and another attempt would add nothing unless it looks closer.
  bool isComplete(std::size_t limitBytes) const noexcept {
    return answers(limitBytes) && (!isIncomplete() || (wholeBytes && *wholeBytes >= limitBytes));
  }
  /// Notes an attempt within `limitBytes`. One within less than another does not make up for what
  /// that left out.
  void addAttempt(const BenchmarkResult& result, std::size_t limitBytes);
  const KnownPlan* find(const PlanRequest& request) const noexcept;
  /// Whether the client's own kernel runs in parts, or another in bands, until it is measured.
  bool runsUnmeasured(const PlanRequest& request) const noexcept;
  /// Drops the plans after something has been measured.
  void dropPlans();
};

/// Kernels, each at a batch size.
using KernelSet = std::set<std::pair<int, Kernel>>;

/// A problem at any mini-batch.
struct Known {
  Measurements measurements;
  Measurements elsewhere;  ///< with another driver or cuDNN: worth trying first, no answer
  KernelsAtSizes refused;  ///< kernels that cuDNN names but does not run
  std::string loadedFrom;  ///< the database that was asked
  bool isLoading = false;  ///< a thread is asking one
  KnownQuestion::Clock::time_point loadAgainAt{};  ///< others held it when it was asked
  std::vector<KnownQuestion> questions;
  /// Kernels of clients that were faster than plans where both were called in turns.
  std::set<std::pair<int, Kernel>> preferred;
  /// Mini-batches where cuDNN, without a limit, ranks an accurate kernel first. It takes long to
  /// say so.
  std::set<int> accurateFirst;

  // What checks have found (kernel_checks.hpp).
  KernelSet right, repeated;      ///< compute what they should; and the same bits, when asked twice
  std::set<Kernel> wrong;         ///< are barred at any batch size
  std::set<Kernel> unrepeatable;  ///< are not as deterministic as cuDNN says

  /// Drops what is wrong of the measurements, and what it has said of determinism.
  void dropWrong();
  /// Whether the kernel has been measured at a batch size, or can't be.
  bool hasTried(int batch, Kernel kernel) const noexcept;
  bool wasLocked() const noexcept { return loadAgainAt != KnownQuestion::Clock::time_point(); }
  /// Whether to ask this database now: once, unless others held it.
  bool mayLoad(const std::string& path) const noexcept;
  void dropPlans();
  KnownQuestion* find(const QuestionKey& key) noexcept;
  const KnownQuestion* find(const QuestionKey& key) const noexcept;
  /// Adds the question where it is new; of too many the one that came first goes.
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

/// So many problems are remembered, the latest used: a measured one takes up to 15 KiB. The
/// database remembers the others' measurements.
constexpr std::size_t kMostProblems = 8192;
/// Of one problem.
constexpr std::size_t kMostQuestions = 64;
/// Plans of one question: as many as its Pareto front is long, mostly below ten.
constexpr std::size_t kMostPlans = 32;
/// A program that compares engines grants them different workspaces.
constexpr std::size_t kMostUnmeasured = 16;

using Knowledge = BoundedMap<KnownKey, Known, KnownKey::Hash>;

}  // namespace ucudnn
