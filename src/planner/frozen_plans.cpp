#include "planner/frozen_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "kernels/algorithms.hpp"
#include "planner/measured_kernels.hpp"
#include "planner/plan_builder.hpp"
#include "support/log.hpp"
#include "support/text.hpp"
#include "support/version_text.hpp"

namespace ucudnn {
namespace {

/// The reason why a plan can't be had here.
class NotHere : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// cuDNN's answer about the kernel with this text. Throws NotHere, Error.
KernelOffer offerOf(PreparedKernels& kernels,
                    const PlanRequest& request,
                    int batch,
                    const std::string& text) {
  const Problem part = request.problem.withBatch(batch);
  const auto parsed = parseKernel(part, text);
  if (!parsed) throw NotHere(fmt::format("this build knows no kernel {}", excerpt(text)));
  const auto offer = kernels.offer(batch, parsed->kernel, Calls::kAll, nullptr);
  if (!offer)
    throw NotHere(fmt::format("cuDNN has no kernel {} here at batch {}", excerpt(text), batch));
  return *offer;
}

/// Throws NotHere, Error.
std::shared_ptr<const Plan> build(PreparedKernels& prepared,
                                  const PlanRequest& request,
                                  const FrozenConfiguration& frozen,
                                  std::shared_ptr<const Plan> enqueued = nullptr) {
  Configuration configuration;
  configuration.timeMs = frozen.predictedMs;
  Measurements measurements;
  const WorkspaceRoom room{0, request.problem.overwrittenSampleBytes()};
  int left = request.problem.batch();
  for (const FrozenMicroBatches& group : frozen.microBatches) {
    const KernelOffer offer = offerOf(prepared, request, group.batch, group.kernel);
    std::vector<Measurement>& kernels = measurements[group.batch].kernels;
    configuration.microBatches.push_back(
        {group.batch, static_cast<int>(kernels.size()), group.count, group.borrows});
    left -= group.batch * group.count;
    if (!group.borrows)
      configuration.workspaceBytes = std::max(configuration.workspaceBytes, offer.workspaceBytes);
    else if (offer.workspaceBytes > room.borrowed(left))
      throw NotHere(fmt::format("the output has no room for the workspace of {} at batch {}",
                                excerpt(group.kernel),
                                group.batch));
    kernels.push_back({offer, {group.timeMs, group.deviceMs}});
  }
  if (isDivided(configuration) &&
      sizesFor(request.problem, BatchSizePolicy::kPowerOfTwo).size() < 2)
    throw NotHere("a filter gradient in half or bfloat16 is not split");
  if (!frozen.algorithm.empty()) {
    const int miniBatch = request.problem.batch();
    const KernelOffer named = offerOf(prepared, request, miniBatch, frozen.algorithm);
    if (!algorithmOf(named.kernel))
      throw NotHere("\"algorithm\" names a kernel that is no algorithm of cuDNN's");
    measurements[miniBatch].kernels.push_back({named, {}});
  }
  // The file's times are those at the device's pace; the enqueued plan is built by a call of its
  // own.
  return buildPlan(
      prepared, request, configuration, Pace::kDevice, measurements, std::move(enqueued));
}

/// Builds one plan for all calls unless every call that repeats is replayed, as the planner does.
std::shared_ptr<const Plan> build(PreparedKernels& prepared,
                                  const PlanRequest& request,
                                  const FrozenPair& pair) {
  if (!pair.enqueued) return build(prepared, request, pair.repeated);
  auto enqueued = build(prepared, request, *pair.enqueued);
  if (request.replay() != Replay::kWhereRepeated) return enqueued;
  auto plan = build(prepared, request, pair.repeated, enqueued);
  return plan->replayed ? plan : enqueued;
}

std::shared_ptr<const Plan> build(const PlanRequest& asked, const FrozenPlan& frozen) {
  const PlanRequest request =
      asked.unlimitedFor(frozen.plan.borrows() ? CallKind::kOverwriting : CallKind::kAdding);
  PreparedKernels prepared(request.handle, request.problem);
  auto plan = build(prepared, request, frozen.plan);
  if (!plan->of(CallKind::kOther) && frozen.general) {
    if (frozen.general->borrows()) throw NotHere("the plan for other calls borrows");
    auto general = build(prepared, request.forAnyCall(), *frozen.general);
    if (!general->of(CallKind::kOther)) throw NotHere("the plan for other calls has engines");
    plan = withGeneral(*plan, std::move(general));
  }
  if (request.deterministic && !plan->isDeterministic()) throw NotHere("it is not deterministic");
  return plan;
}

/// The plan with the lowest rank is taken first.
auto rankOf(const FrozenPlan& plan, const PlanRequest& request) {
  const QuestionKey question = request.question();
  const bool isLess = plan.limitBytes < request.limitBytes;
  return std::make_tuple(
      plan.deterministic != request.deterministic,
      plan.policy != question.policy || plan.kernels != question.kernels,
      plan.plan.borrows() && !request.mayBorrow(),
      isLess,
      isLess ? request.limitBytes - plan.limitBytes : plan.limitBytes - request.limitBytes);
}

/// How far the machine that a plan was made for is from this one. 0: it is such a machine.
int differencesOf(const FrozenPlan& plan, const MachineKey& machine) {
  const auto differs = [](auto recorded, auto here) { return recorded != 0 && recorded != here; };
  return (plan.device != printable(machine.deviceName) ? 4 : 0) +
         (differs(plan.cudnnVersion, machine.cudnnVersion) ? 2 : 0) +
         (differs(plan.cudaVersion, machine.cudaVersion) ? 1 : 0);
}

}  // namespace

FrozenPlans::FrozenPlans(std::string name, std::vector<FrozenPlan> plans)
    : name_(std::move(name)), plans_(std::move(plans)) {
  for (std::size_t i = 0; i < plans_.size(); ++i)
    places_[{plans_[i].problem, plans_[i].miniBatch}].push_back(i);
}

void FrozenPlans::keepMostSimilar(std::vector<std::size_t>& indices,
                                  const MachineKey& machine) const {
  int least = std::numeric_limits<int>::max();
  for (const std::size_t index : indices)
    least = std::min(least, differencesOf(plans_[index], machine));
  const auto isFarther = [&](std::size_t index) {
    return differencesOf(plans_[index], machine) > least;
  };
  indices.erase(std::remove_if(indices.begin(), indices.end(), isFarther), indices.end());
}

std::vector<std::size_t> FrozenPlans::ranked(const PlanRequest& request, const Machines& machines) {
  const KnownKey key{request.machine, request.problem};
  std::vector<std::size_t> indices;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t>* known = found_.find(key);
    if (known == nullptr) {
      known = &found_[key];
      const auto place = places_.find({request.problem.text(), request.problem.batch()});
      if (place != places_.end()) *known = place->second;
      keepMostSimilar(*known, machines.key(request.machine));
    }
    indices = *known;
  }
  std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
    return rankOf(plans_[a], request) < rankOf(plans_[b], request);
  });
  return indices;
}

std::pair<FrozenPlans::Built, bool> FrozenPlans::built(const PlanRequest& request,
                                                       std::size_t index) {
  const BuiltKey key{index, request.machine, request.deterministic, request.replay()};
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = built_.find(key); known != built_.end()) return {known->second, false};
  }
  Built made;
  try {
    made.plan = build(request, plans_[index]);
    made.neededBytes = std::max(made.plan->workspaceBytes, made.plan->algorithmBytes);
  } catch (const NotHere& error) {
    made.why = error.what();
  } catch (const Error& error) {
    made.why = error.what();
  }
  const std::lock_guard lock(mutex_);
  const auto [place, isNew] = built_.try_emplace(key, std::move(made));
  return {place->second, isNew};
}

FrozenPlans::Found FrozenPlans::plan(const PlanRequest& request, const Machines& machines) {
  const std::vector<std::size_t> indices = ranked(request, machines);
  std::string why;
  for (const std::size_t index : indices) {
    auto [made, isNew] = built(request, index);
    if (made.plan && made.plan->borrows() && !request.mayBorrow()) made.plan = made.plan->general;
    if (made.plan && !request.suitsEngines && !made.plan->of(CallKind::kOther)) made.plan = nullptr;
    if (made.plan && made.neededBytes <= request.limitBytes) {
      warnOfOther(plans_[index], machines.key(request.machine), "used as it is");
      return {std::move(made.plan), isNew};
    }
    if (!why.empty()) continue;
    why = made.plan ? fmt::format("it needs more workspace: the limit is {} bytes, and its need {}",
                                  request.limitBytes,
                                  made.neededBytes)
          : made.why.empty() ? "it has no plan for other calls, which no engine can run"
                             : std::move(made.why);
  }
  warn(request, indices.empty() ? "the file has none" : why);
  return {};
}

bool FrozenPlans::areOfAnother(const PlanRequest& request, const Machines& machines) {
  const std::vector<std::size_t> indices = ranked(request, machines);  // all equally far
  return !indices.empty() &&
         differencesOf(plans_[indices.front()], machines.key(request.machine)) > 0;
}

Measurements FrozenPlans::hints(const PlanRequest& request, const Machines& machines) {
  Measurements found;
  const auto add = [&](const FrozenConfiguration& configuration) {
    for (const FrozenMicroBatches& group : configuration.microBatches)
      if (const auto offer = parseKernel(request.problem.withBatch(group.batch), group.kernel)) {
        SizeMeasurements one;
        one.kernels.push_back({*offer, {group.timeMs, group.deviceMs}});
        addMeasurements(found[group.batch], one);
      }
  };
  const auto addPair = [&](const FrozenPair& pair) {
    add(pair.repeated);
    if (pair.enqueued) add(*pair.enqueued);
  };
  for (const std::size_t index : ranked(request, machines)) {
    addPair(plans_[index].plan);
    if (plans_[index].general) addPair(*plans_[index].general);
    warnOfOther(plans_[index], machines.key(request.machine), "timed before it is used");
  }
  return found;
}

std::vector<Configuration> FrozenPlans::front(const PlanRequest& request,
                                              const Machines& machines) {
  std::vector<Configuration> points;
  for (const std::size_t index : ranked(request, machines)) {
    const Built made = built(request, index).first;
    if (!made.plan || made.neededBytes > request.limitBytes || !made.plan->of(CallKind::kOther))
      continue;
    Configuration& point = points.emplace_back();
    point.timeMs = made.plan->predictedMs;
    point.workspaceBytes = made.neededBytes;
  }
  std::sort(points.begin(), points.end(), [](const Configuration& a, const Configuration& b) {
    return std::tie(a.workspaceBytes, a.timeMs) < std::tie(b.workspaceBytes, b.timeMs);
  });
  return points;
}

std::vector<FrozenPlan> FrozenPlans::used() const {
  const std::lock_guard lock(mutex_);
  std::vector<FrozenPlan> plans;
  std::size_t last = plans_.size();
  for (const auto& [key, made] : built_)  // by index
    if (const std::size_t index = std::get<0>(key);
        made.plan && std::exchange(last, index) != index)
      plans.push_back(plans_[index]);
  return plans;
}

void FrozenPlans::warn(const PlanRequest& request, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(warned_[{request.machine, request.problem}], true)) return;
  }
  logWarn("{}: no plan for {} N={}: {}: {}",
          excerpt(name_),
          request.problem.text(),
          request.problem.batch(),
          why,
          request.settings->plansStrict ? "left to cuDNN" : "planned as usual");
}

void FrozenPlans::warnOfOther(const FrozenPlan& plan, const MachineKey& machine, const char* use) {
  if (differencesOf(plan, machine) == 0) return;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(hasWarnedOfOther_, true)) return;
  }
  const auto textOf = [](const std::string& device, int cuda, std::size_t cudnn) {
    return fmt::format("{}{}{}",
                       excerpt(device),
                       cuda == 0 ? "" : ", CUDA " + cudaVersionText(cuda),
                       cudnn == 0 ? "" : ", cuDNN " + cudnnVersionText(cudnn));
  };
  logWarn("{}: made for {}, and {} on {}",
          excerpt(name_),
          textOf(plan.device, plan.cudaVersion, plan.cudnnVersion),
          use,
          textOf(printable(machine.deviceName), machine.cudaVersion, machine.cudnnVersion));
}

}  // namespace ucudnn
