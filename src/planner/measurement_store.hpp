// What the process knows of problems: in memory, and in the database.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "cache/database.hpp"
#include "planner/knowledge.hpp"
#include "planner/machines.hpp"
#include "planner/request.hpp"
#include "support/fork.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// Thread-safe. The lock is held for look-ups only, never while a device, a file or another thread
/// is waited for. Of the database only times and errors are believed, and only possible
/// ones (measurement_rows.hpp).
class MeasurementStore {
 public:
  MeasurementStore(const Machines& machines, Statistics& statistics)
      : machines_(machines), statistics_(statistics) {}

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

  /// Whether anything was asked about a problem, at any mini-batch.
  bool knows(int machine, const Problem& problem) const;
  /// Whether a plan within the limit can be made.
  bool answers(const PlanRequest& request) const;
  /// What is known at the mini-batch and, where the policy splits, at any smaller size: another
  /// question's sizes are as good as this one's.
  Measurements measurements(const PlanRequest& request) const;
  /// What is known at the mini-batch itself and needs no more than the limit. Throws Error.
  std::vector<Measurement> undivided(const PlanRequest& request);

  /// Asks the request's database, once; waits for another thread that does. True: it has answered
  /// the question.
  bool load(const PlanRequest& request);
  /// Takes over what a benchmark has found for the question, here and in the database. What could
  /// not be tried for want of time is not tried again in this process; the database does not learn
  /// of it. `why`: what stood in the way.
  void addResult(const PlanRequest& request, const BenchmarkResult& result, const std::string& why);

  enum class Asking {
    kAll,
    kOfOnePlan,  ///< not what a larger size of the plan covers
  };
  /// Asks cuDNN about the wanted kernels among the measurements, and takes over what it says. Only
  /// what a plan uses is asked about: cuDNN takes 30 to 300 us to answer, and a lie that makes a
  /// kernel look worse than it is makes a plan slow at worst. False: something was not as stored or
  /// assumed, and the measurements have changed. Throws Error.
  bool confirm(const PlanRequest& request,
               PreparedKernels& prepared,
               const KernelsAtSizes& wanted,
               Measurements& measurements,
               Asking asking = Asking::kAll);
  bool confirmAll(const PlanRequest& request,
                  PreparedKernels& prepared,
                  Measurements& measurements);
  /// Whether cuDNN is known to rank an accurate kernel first. The database is believed: a lie keeps
  /// fast kernels out of splits.
  bool ranksAccurateFirst(const PlanRequest& request) const;
  void addAccurateFirst(const PlanRequest& request);
  /// From now on the problem does not have the kernel at the batch size.
  void refuse(const PlanRequest& request, int batch, Kernel kernel);

 private:
  /// What a database says.
  struct Loaded {
    bool isLocked = false;
    Measurements measurements;
    struct Answered {
      QuestionKey question;
      Coverage coverage;
    };
    std::vector<Answered> answered;
    std::set<int> accurateFirst;
  };

  static KnownKey keyOf(const PlanRequest& request);
  Database& database(const std::string& path);
  bool beginLoad(const PlanRequest& request);
  void endLoad(const PlanRequest& request) noexcept;
  Loaded readFile(const PlanRequest& request);
  bool addLoaded(const PlanRequest& request, const Loaded& loaded);

  const Machines& machines_;
  Statistics& statistics_;
  mutable ForkMutex mutex_;
  ForkCondition loadEnded_;
  Knowledge known_{kMostProblems};
  std::map<std::string, std::unique_ptr<Database>> databases_;
};

}  // namespace ucudnn
