// The process's knowledge of problems.
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

/// Holds what was found out here, or read from a database once. Thread-safe. The lock is held for
/// look-ups only, never while a device, a file or another thread is waited for.
class MeasurementStore {
 public:
  MeasurementStore(const Machines& machines, Statistics& statistics)
      : statistics_(statistics), files_(machines) {}

  /// Calls `update(Known&, KnownQuestion&)` under the lock. Adds what is not known yet.
  template <typename Update>
  auto update(const PlanRequest& request, Update update) {
    const std::lock_guard lock(mutex_);
    Known& known = known_[keyOf(request)];
    return update(known, known.question(request.question()));
  }
  /// Calls `read(const Known*, const KnownQuestion*)` under the lock; null for what is not known.
  template <typename Read>
  auto read(const PlanRequest& request, Read read) const {
    const std::lock_guard lock(mutex_);
    const Known* const known = known_.peek(keyOf(request));
    return read(known, known == nullptr ? nullptr : known->find(request.question()));
  }
  /// Calls `read(machine, const KnownQuestion&)` for all questions under the lock.
  template <typename Read>
  void readAll(Read read) const {
    const std::lock_guard lock(mutex_);
    known_.forEach([&](const KnownKey& key, const Known& known) {
      for (const KnownQuestion& asked : known.questions) read(key.machine, asked);
    });
  }

  /// The kernels of another machine's plans for the problem; else those of the nearest problem's
  /// plans, which differs only in the image's size, and was asked the same question. Empty if there
  /// is none. REQUIRES: the lock, as within `update` or `read`.
  std::vector<Kernel> likelyKernels(const PlanRequest& request) const;

  /// Whether a plan within the limit can be made.
  bool answers(const PlanRequest& request) const;
  /// The measurements at the mini-batch and, if the policy splits, at any smaller size. Sizes that
  /// another question measured are as good as this one's.
  Measurements measurements(const PlanRequest& request) const;

  /// Reads the request's database, once; waits for another thread that does. Returns true if the
  /// database has answered the question.
  bool load(const PlanRequest& request);
  /// Stores a benchmark's findings about the question, here and in the database. Kernels that were
  /// not tried for lack of time are not tried again in this process; the database does not learn of
  /// that. `why`: the obstacle.
  void addResult(const PlanRequest& request, const BenchmarkResult& result, const std::string& why);

  /// Stores some of a measurement that goes on, here and in the database: the process may end
  /// before it does.
  void addPart(const PlanRequest& request, Measurements measurements);

  /// Whether cuDNN is known to rank an accurate kernel first. The database's word is not checked:
  /// if it is wrong, fast kernels are kept out of splits.
  bool ranksAccurateFirst(const PlanRequest& request) const;
  void addAccurateFirst(const PlanRequest& request);
  /// Stores cuDNN's answers about the kernels that it was `asked` about (confirmation.hpp).
  void addConfirmed(const PlanRequest& request,
                    int batch,
                    const std::vector<Kernel>& asked,
                    const SizeMeasurements& confirmed);
  /// Warns that rows of the request's database are wrong.
  void warnOfLies(const PlanRequest& request) { files_.warnOfLies(request); }
  /// Notes what checks have found, here and in the database. A kernel that repeats its bits is
  /// right, too.
  void addRight(const PlanRequest& request, const KernelSet& kernels);
  void addRepeated(const PlanRequest& request, const KernelSet& kernels);
  void addWrong(const PlanRequest& request, int batch, Kernel kernel);
  void addUnrepeatable(const PlanRequest& request, int batch, Kernel kernel);
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
  Neighbours neighbours_;  ///< some of them may be forgotten in known_
};

}  // namespace ucudnn
