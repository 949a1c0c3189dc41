// The plan for a problem under a limit: measurements (remembered, else from the database, else from
// the benchmark), then the optimizer. One planner serves the whole process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "cache/database.hpp"
#include "optimizer/configuration.hpp"
#include "planner/machines.hpp"
#include "planner/plan.hpp"
#include "support/settings.hpp"

namespace ucudnn {

/// Who asks, and for what.
struct PlanRequest {
  cudnnHandle_t handle = nullptr;
  int machine = 0;  ///< of Machines
  Problem problem;
  std::size_t limitBytes = 0;
  bool deterministic = false;  ///< only deterministic kernels
  const Settings* settings = nullptr;
  const std::vector<int>* benchmarkDevices = nullptr;  ///< beside the handle's own
  const TensorBuffers* buffers = nullptr;              ///< FindEx's; null: scratch memory
};

/// Counters for ucudnnGetStatistics; each is exact, together they are no snapshot.
struct Statistics {
  std::atomic<long long> kernelsMeasured{0}, kernelsLoaded{0}, plans{0};
  std::atomic<long long> splitCalls{0}, undividedCalls{0}, bypassedCalls{0};
  std::atomic<long long> planningMicroseconds{0};
};

/// Thread-safe. Two locks, always taken in this order: `measuring_` is held while kernels are
/// timed, so that threads do not disturb each other's timings; `mutex_` guards the tables and is
/// held for look-ups only.
class Planner {
 public:
  Planner() = default;
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// The fastest plan within the limit. Null where cuDNN offers nothing within it, or nothing could
  /// be measured; that is remembered as well, and has been warned of. Throws Error.
  std::shared_ptr<const Plan> plan(const PlanRequest& request);

  /// The same from measurements already taken: runs nothing on a device. Empty: something has to be
  /// measured.
  std::optional<std::shared_ptr<const Plan>> planWithoutMeasuring(const PlanRequest& request);

  /// The kernels known at the mini-batch itself that need no more than the limit. Measures nothing.
  std::vector<Measurement> undivided(const PlanRequest& request) const;

  /// Every kernel measured at the sizes of the policy. Measures what is missing. Throws Error.
  Measurements measurements(const PlanRequest& request);

  /// The Pareto front under the limit. Measures what is missing. Throws Error.
  std::vector<Configuration> front(const PlanRequest& request);

  /// The limit of the latest query for a problem: later calls run within it.
  void setLimit(int machine, const Problem& problem, std::size_t limitBytes);
  std::optional<std::size_t> limit(int machine, const Problem& problem) const;

  /// Changes whenever an answer of `limit` may have: what was looked up before must be looked up
  /// again.
  std::uint64_t epoch() const noexcept { return epoch_.load(std::memory_order_acquire); }

  Machines& machines() noexcept { return machines_; }
  Statistics& statistics() noexcept { return statistics_; }

 private:
  struct ProblemKey {
    int machine;
    Problem problem;
    bool operator==(const ProblemKey& other) const noexcept {
      return machine == other.machine && problem == other.problem;
    }
  };
  struct PlanKey {
    ProblemKey problem;
    std::size_t limitBytes;
    BatchSizePolicy policy;
    bool deterministic;
    bool operator==(const PlanKey& other) const noexcept {
      return problem == other.problem && limitBytes == other.limitBytes && policy == other.policy &&
             deterministic == other.deterministic;
    }
  };
  struct Hash {
    std::size_t operator()(const ProblemKey& key) const noexcept;
    std::size_t operator()(const PlanKey& key) const noexcept;
  };
  /// What is known of a problem at all batch sizes.
  struct Known {
    Measurements measurements;
    std::string loadedFrom;  ///< the database that was asked
    std::string failure;     ///< why the last benchmark measured nothing; empty: it did
  };

  static PlanKey planKey(const PlanRequest& request);
  static ProblemKey measurementKey(const PlanRequest& request);

  /// Measurements for the policy's sizes under the limit; makes them where they are missing.
  Measurements require(const PlanRequest& request);
  Measurements lookUp(const PlanRequest& request) const;
  void load(const PlanRequest& request);
  void measure(const PlanRequest& request, const std::vector<int>& sizes);
  std::string failure(const PlanRequest& request) const;
  Database* database(const std::string& path);
  std::optional<std::shared_ptr<const Plan>> knownPlan(const PlanRequest& request) const;
  enum class MayMeasure { kNo, kYes };
  std::shared_ptr<const Plan> makePlan(const PlanRequest& request,
                                       const Measurements& measurements,
                                       MayMeasure mayMeasure);
  CandidateTable accurateCandidates(const PlanRequest& request,
                                    const Measurements& measurements,
                                    MayMeasure mayMeasure);
  /// Whether cuDNN runs an inaccurate kernel when it may use any workspace: its heuristics put one
  /// first, or one is the fastest. Measuring that takes more than the limit, for as long as it
  /// lasts.
  bool picksInaccurate(const PlanRequest& request, MayMeasure mayMeasure);

  std::mutex measuring_;
  mutable std::mutex mutex_;
  std::unordered_map<ProblemKey, Known, Hash> known_;
  std::unordered_map<PlanKey, std::shared_ptr<const Plan>, Hash> plans_;
  std::unordered_map<ProblemKey, std::size_t, Hash> limits_;
  std::map<std::string, std::unique_ptr<Database>> databases_;
  std::atomic<std::uint64_t> epoch_{1};
  Machines machines_;
  Statistics statistics_;
};

/// The process's planner: never destroyed, since handles are used in static destructors.
Planner& planner() noexcept;

}  // namespace ucudnn
