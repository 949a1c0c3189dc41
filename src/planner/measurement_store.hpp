// What the process knows of problems.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "planner/knowledge.hpp"
#include "planner/measurement_files.hpp"
#include "planner/neighbours.hpp"
#include "planner/request.hpp"
#include "support/fork.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// Found out here, or read from a database once. Thread-safe. The lock is held for look-ups only,
/// never while a device, a file or another thread is waited for.
class MeasurementStore {
 public:
  MeasurementStore(const Machines& machines, Statistics& statistics)
      : statistics_(statistics), files_(machines) {}

  /// Calls `update(Known&, KnownQuestion&)` under the lock; what is new is added.
  template <typename Update>
  auto update(const PlanRequest& request, Update update) {
    const std::lock_guard lock(mutex_);
    Known& known = known_[keyOf(request)];
    return update(known, known.question(request.question()));
  }
  /// Calls `read(const Known*, const KnownQuestion*)` under the lock, null where there is none.
  template <typename Read>
  auto read(const PlanRequest& request, Read read) const {
    const std::lock_guard lock(mutex_);
    const Known* const known = known_.peek(keyOf(request));
    return read(known, known == nullptr ? nullptr : known->find(request.question()));
  }
  /// Calls `read(machine, const KnownQuestion&)` for all under the lock.
  template <typename Read>
  void readAll(Read read) const {
    const std::lock_guard lock(mutex_);
    known_.forEach([&](const KnownKey& key, const Known& known) {
      for (const KnownQuestion& asked : known.questions) read(key.machine, asked);
    });
  }

  /// What plans of the nearest problem run that differs in the image's size alone, and was asked
  /// the same. Empty: there is none. REQUIRES: the lock, as within `update` or `read`.
  std::vector<Kernel> kernelsOfNeighbour(const PlanRequest& request) const;

  /// Whether a plan within the limit can be made.
  bool answers(const PlanRequest& request) const;
  /// What is known at the mini-batch and, where the policy splits, at any smaller size: another
  /// question's sizes are as good as this one's.
  Measurements measurements(const PlanRequest& request) const;

  /// Asks the request's database, once; waits for another thread that does. True: it has answered
  /// the question.
  bool load(const PlanRequest& request);
  /// Takes over what a benchmark has found for the question, here and in the database. What could
  /// not be tried for want of time is not tried again in this process; the database does not learn
  /// of it. `why`: what stood in the way.
  void addResult(const PlanRequest& request, const BenchmarkResult& result, const std::string& why);

  /// Whether cuDNN is known to rank an accurate kernel first. The database is not checked: what is
  /// wrong keeps fast kernels out of splits.
  bool ranksAccurateFirst(const PlanRequest& request) const;
  void addAccurateFirst(const PlanRequest& request);
  /// Takes over what cuDNN has said of kernels that it was `asked` about (confirmation.hpp).
  void addConfirmed(const PlanRequest& request,
                    int batch,
                    const std::vector<Kernel>& asked,
                    const SizeMeasurements& confirmed);
  /// Rows of the request's database are not so.
  void warnOfLies(const PlanRequest& request) { files_.warnOfLies(request); }
  /// What checks have found out: here, and but for determinism in the database.
  void addRight(const PlanRequest& request, const KernelSet& kernels);
  void addWrong(const PlanRequest& request, int batch, Kernel kernel);
  void addUnrepeatable(const PlanRequest& request, Kernel kernel);
  /// From now on the problem does not have the kernel at the batch size.
  void refuse(const PlanRequest& request, int batch, Kernel kernel);

 private:
  static KnownKey keyOf(const PlanRequest& request);
  bool beginLoad(const PlanRequest& request);
  void endLoad(const PlanRequest& request) noexcept;
  bool addLoaded(const PlanRequest& request, const StoredKnowledge& stored);

  Statistics& statistics_;
  MeasurementFiles files_;
  mutable ForkMutex mutex_;
  ForkCondition loadEnded_;
  Knowledge known_{kMostProblems};
  Neighbours neighbours_;  ///< some may be forgotten
};

}  // namespace ucudnn
