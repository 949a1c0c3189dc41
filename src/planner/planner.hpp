// The plan for a problem under a limit: measurements (remembered, else from the database, else from
// the benchmark), then the optimizer. One planner serves the whole process.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "cache/database.hpp"
#include "optimizer/configuration.hpp"
#include "plan/plan.hpp"
#include "planner/investment.hpp"
#include "planner/knowledge.hpp"
#include "planner/machines.hpp"
#include "planner/statistics.hpp"
#include "planner/turns.hpp"
#include "support/settings.hpp"

namespace ucudnn {

/// Who asks, and for what.
struct PlanRequest {
  cudnnHandle_t handle = nullptr;
  int device = 0;
  int machine = 0;  ///< of Machines
  Problem problem;
  std::size_t limitBytes = 0;
  bool deterministic = false;  ///< only deterministic kernels
  const Settings* settings = nullptr;
  const std::vector<int>* benchmarkDevices = nullptr;  ///< beside the handle's own
  /// The caller's, whose output may be overwritten; null: scratch memory.
  const TensorBuffers* buffers = nullptr;
};

/// What may be done to find an answer.
enum class Measuring {
  kNever,       ///< nothing, not even read a file: the stream is being captured
  kIfKnown,     ///< only look into the database: a query that names no limit
  kWhenItPays,  ///< a call: it is counted, and the problem measured once that is worth it
  kNow,         ///< a query that names a limit, Find, a diagnosis, a network under one total
};

struct PlanAnswer {
  std::shared_ptr<const Plan> plan;  ///< null: left to cuDNN
  bool lasts = false;                ///< asked again it would be the same
};

/// Thread-safe. `mutex_` guards the tables and is held for look-ups only, never while a device, a
/// file or another thread is waited for.
///
///  1. A plan has been compared with the undivided kernels that were measured at the mini-batch
///     itself within the same limit; where none could be measured there is no plan.
///  2. What was left out for one question is judged anew for another: answers do not depend on the
///     order of questions.
///  3. Of the database only times are believed, and only possible ones (belief.hpp): no plan and no
///     answer holds a kernel that cuDNN has not confirmed.
class Planner {
 public:
  Planner() = default;
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// The fastest plan within the limit that may be had so. Throws Error.
  PlanAnswer answer(const PlanRequest& request, Measuring measuring);

  /// The same, measured at once. Null where cuDNN offers nothing within the limit, or nothing could
  /// be measured, which has been warned of. Throws Error.
  std::shared_ptr<const Plan> plan(const PlanRequest& request) {
    return answer(request, Measuring::kNow).plan;
  }

  /// The same from measurements already taken: runs nothing on a device. Empty: something has to be
  /// measured.
  std::optional<std::shared_ptr<const Plan>> planWithoutMeasuring(const PlanRequest& request);

  /// The kernels known at the mini-batch itself that need no more than the limit. Measures nothing.
  /// Throws Error.
  std::vector<Measurement> undivided(const PlanRequest& request);

  /// Every kernel measured at the sizes of the policy. `measuring`: kNow measures what is missing;
  /// kNever answers only what has been asked before, else nothing. Throws Error.
  Measurements measurements(const PlanRequest& request, Measuring measuring = Measuring::kNow);

  /// The Pareto front under the limit, likewise. Throws Error.
  std::vector<Configuration> front(const PlanRequest& request,
                                   Measuring measuring = Measuring::kNow);

  /// Time in convolutions that handles ran by themselves, in ms: measuring may take a share of it.
  void addConvolutionTime(double timeMs);

  Machines& machines() noexcept { return machines_; }
  Statistics& statistics() noexcept { return statistics_; }

 private:
  static KnownKey knownKey(const PlanRequest& request);
  const KnownQuestion* findQuestion(const PlanRequest& request) const;
  KnownQuestion& question(const PlanRequest& request);

  /// Under the lock: whether to measure before answering.
  bool mustMeasure(const PlanRequest& request,
                   Measuring measuring,
                   const KnownQuestion& asked) const;
  /// Counts the call and takes what is known. Empty: something is to be measured or planned first.
  std::optional<PlanAnswer> knownAnswer(const PlanRequest& request, Measuring measuring);
  /// Finds out what the question needs, if its turn comes.
  void inquire(const PlanRequest& request, Measuring measuring);
  bool loadAnswer(const PlanRequest& request);
  /// What the database says.
  struct Loaded {
    bool isLocked = false;
    Measurements measurements;
    struct Answered {
      BatchSizePolicy policy;
      int miniBatch;
      std::size_t answeredBytes;
    };
    std::vector<Answered> answered;
  };
  Loaded load(const std::string& path, const PlanRequest& request);
  void measure(const PlanRequest& request);
  void note(const PlanRequest& request, const BenchmarkResult& result, const std::string& why);
  PlanAnswer makePlan(const PlanRequest& request, Measuring measuring);
  static bool knowsOwnChoice(const PlanRequest& request, const Measurements& measurements);
  void report(const PlanRequest& request, const Plan* plan) const;
  Measurements lookUp(const PlanRequest& request) const;
  Measurements require(const PlanRequest& request, Measuring measuring);
  Database* database(const std::string& path);
  std::shared_ptr<const Plan> choosePlan(const PlanRequest& request, Measuring measuring);
  bool confirmKernels(const PlanRequest& request,
                      const KernelsAtSizes& wanted,
                      Measurements& measurements);
  bool confirmChoice(const PlanRequest& request,
                     const std::vector<Configuration>& configurations,
                     Measurements& measurements);
  std::optional<Configuration> chooseAccurately(const PlanRequest& request,
                                                Measurements& measurements,
                                                Measuring measuring);
  CandidateTable accurateCandidates(const PlanRequest& request,
                                    const Measurements& measurements,
                                    Measuring measuring);
  /// Whether cuDNN runs an inaccurate kernel when it may use any workspace: its heuristics put one
  /// first, or one is the fastest. Measuring that takes more than the limit, for as long as it
  /// lasts.
  bool picksInaccurate(const PlanRequest& request, Measuring measuring);

  mutable std::mutex mutex_;
  Knowledge known_{kMostProblems};
  Investment investment_;
  std::map<std::string, std::unique_ptr<Database>> databases_;
  Turns turns_;
  Machines machines_;
  Statistics statistics_;
};

/// The process's planner: never destroyed, since handles are used in static destructors.
Planner& planner() noexcept;

}  // namespace ucudnn
