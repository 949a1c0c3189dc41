// Plans from a file: exactly these configurations, nothing measured. Those of another machine may
// be taken for hints instead: their kernels are timed before all others.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "optimizer/configuration.hpp"
#include "plan/plan.hpp"
#include "planner/frozen_format.hpp"
#include "planner/knowledge.hpp"
#include "planner/machines.hpp"
#include "planner/request.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// The plans of one file. Only their configurations and times are used: cuDNN is asked about
/// workspace, support and determinism when a plan is built. Thread-safe; the lock is not held while
/// cuDNN is asked.
class FrozenPlans {
 public:
  struct Found {
    std::shared_ptr<const Plan> plan;  ///< null: none can be had
    bool isNew = false;                ///< built just now
  };

  /// `name` is the file's name, for messages.
  FrozenPlans(std::string name, std::vector<FrozenPlan> plans);

  /// The plan for the request, else null, with one warning for each problem and mini-batch. If
  /// several fit the limit, one that was made for such a machine and question is taken: for the
  /// least limit that is no less than the request's, or else the largest. If it was made for
  /// another machine, one warning says so. Throws std::bad_alloc.
  Found plan(const PlanRequest& request, const Machines& machines);

  /// Whether there are plans for the request's problem, and all were made for another machine.
  bool areOfAnother(const PlanRequest& request, const Machines& machines);
  /// The kernels of those plans with the times that they had there, and one warning. cuDNN is not
  /// asked about them.
  Measurements hints(const PlanRequest& request, const Machines& machines);

  /// Times and workspaces of the plans within the request's limit, by ascending workspace.
  std::vector<Configuration> front(const PlanRequest& request, const Machines& machines);

  /// The plans that have been used so far, as they were read.
  std::vector<FrozenPlan> used() const;

 private:
  /// A plan is built anew if one of these differs: its index in plans_, the machine, whether it
  /// must be deterministic, and the replay.
  using BuiltKey = std::tuple<std::size_t, int, bool, Replay>;
  struct Built {
    std::shared_ptr<const Plan> plan;  ///< null: it can't be had
    std::string why;
    std::size_t neededBytes = 0;
  };

  void keepMostSimilar(std::vector<std::size_t>& indices, const MachineKey& machine) const;
  std::vector<std::size_t> ranked(const PlanRequest& request, const Machines& machines);
  /// Second: whether it was built just now.
  std::pair<Built, bool> built(const PlanRequest& request, std::size_t index);
  void warn(const PlanRequest& request, const std::string& why);
  void warnOfOther(const FrozenPlan& plan, const MachineKey& machine, const char* use);

  const std::string name_;
  const std::vector<FrozenPlan> plans_;
  /// Indices in plans_, by problem and mini-batch.
  std::map<std::pair<std::string, int>, std::vector<std::size_t>> places_;
  mutable ForkMutex mutex_;
  std::map<BuiltKey, Built> built_;
  /// Indices in plans_ for problems that were asked about; only those for the most similar machine.
  BoundedMap<KnownKey, std::vector<std::size_t>, KnownKey::Hash> found_{kMostProblems};
  BoundedMap<KnownKey, bool, KnownKey::Hash> warned_{kMostProblems};
  bool hasWarnedOfOther_ = false;
};

/// The plans of a file; equal contents are read once. Throws BadSetting.
std::shared_ptr<FrozenPlans> frozenPlans(const std::string& path);

/// The used plans of all files that were read lately.
std::vector<FrozenPlan> usedFrozenPlans();

/// Converts a plan to a file's form, with the limit that it answers.
FrozenPlan toFrozen(const KnownPlan& known, const QuestionKey& question, const MachineKey& machine);

/// Replaces the file in one step. Throws BadSetting.
void writeFrozenPlans(const std::string& path, const std::vector<FrozenPlan>& plans);

}  // namespace ucudnn
