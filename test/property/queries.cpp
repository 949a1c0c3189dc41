// How an actor asks, and what must hold of each answer.
#include <algorithm>
#include <limits>

#include "actor.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kGranularity = 512;
constexpr int kPreferFastest = 1;  // of the removed queries

ucudnnOperation_t asked(const Site& site) {
  return site.operation() == UCUDNN_BIAS_ACTIVATION_FORWARD ? UCUDNN_FORWARD : site.operation();
}

std::string limitKey(Site& site) {
  return toText(asked(site)) + site.convolution().parameters().serialized();
}

/// Whether plain cuDNN has an algorithm to name within the limit.
bool hasAnswer(const Site& site, std::size_t limit, bool deterministic) {
  return std::any_of(
      site.queried().begin(), site.queried().end(), [&](const Site::Algorithm& plain) {
        return plain.status == CUDNN_STATUS_SUCCESS && plain.bytes <= limit &&
               (plain.deterministic || !deterministic);
      });
}

int algorithmCount(const Site& site) {
  return static_cast<int>(site.queried().size());
}

/// The current device for a while: a query on a handle needs none in particular.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    cudaGetDevice(&former_);
    cudaSetDevice(device);
  }
  ~CurrentDevice() { cudaSetDevice(former_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int former_ = 0;
};

}  // namespace

Actor::Choice Actor::choose(Site& site) {
  if (random_.chance(0.15)) lookAtPlan(site);
  switch (random_.between(0, 5)) {
    case 0:
    case 1:
      return followQuery(site);
    case 2:
      return followPreference(site);
    case 3:
      return followSize(site, random_.between(0, algorithmCount(site) - 1), *part_.runner);
    default:
      return chooseFreely(site);
  }
}

/// As clients do that never ask, or that grant what they have.
Actor::Choice Actor::chooseFreely(Site& site) {
  Choice choice;
  choice.algorithm = random_.between(0, algorithmCount(site) - 1);
  const std::size_t need = site.queried()[static_cast<std::size_t>(choice.algorithm)].bytes;
  if (random_.chance(0.3))
    choice.bytes = need;
  else if (random_.chance(0.7))
    choice.bytes = site.interestingBytes(random_);
  choice.nullMemory = random_.chance(0.1);
  return choice;
}

/// GetWorkspaceSize of any algorithm, then exactly that.
Actor::Choice Actor::followSize(Site& site, int algorithm, ClientHandle& handle) {
  Choice choice;
  choice.algorithm = algorithm;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  {
    const CurrentDevice current(random_.chance(0.2) ? random_.between(0, scenario_.devices - 1)
                                                    : handle.device);
    status = site.convolution().workspaceSize(handle.handle, asked(site), algorithm, &choice.bytes);
  }
  const Site::Algorithm& plain = site.queried()[static_cast<std::size_t>(algorithm)];
  trace(site,
        "algorithm " + std::to_string(algorithm) + " wants " + std::to_string(choice.bytes) +
            " bytes, cuDNN's " + std::to_string(plain.bytes));
  if (status != CUDNN_STATUS_SUCCESS) {
    if (plain.status == CUDNN_STATUS_SUCCESS)
      fail(site,
           std::string("GetWorkspaceSize failed with ") + cudnnGetErrorString(status) +
               ", algorithm " + std::to_string(algorithm));
    return chooseFreely(site);
  }
  choice.followed = true;
  // Bias and activation IDENTITY needs this algorithm's own workspace, and has no query of its own.
  const bool mayExceed =
      asked(site) == UCUDNN_FORWARD &&
      algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM &&
      choice.bytes <= (plain.bytes + kGranularity - 1) / kGranularity * kGranularity;
  const std::optional<std::size_t> limit = limitOf(site, handle);
  if (site.mayBePlanned() && limit && choice.bytes > *limit && !mayExceed)
    fail(site,
         "GetWorkspaceSize names " + std::to_string(choice.bytes) + " bytes for algorithm " +
             std::to_string(algorithm) + ", the limit was " + std::to_string(*limit));
  return choice;
}

/// The most that GetWorkspaceSize may name: the limit that was stated; else the setting, if there
/// is one and anything runs within it. Under a total only a stated limit holds.
std::optional<std::size_t> Actor::limitOf(Site& site, ClientHandle& handle) const {
  const auto stated = handle.limits.find(limitKey(site));
  if (stated != handle.limits.end()) return stated->second;
  const bool holds = scenario_.defaultLimit && scenario_.totalBytes == 0 &&
                     hasAnswer(site, *scenario_.defaultLimit, scenario_.deterministic);
  return holds ? scenario_.defaultLimit : std::nullopt;
}

void Actor::checkEntry(const Site& site, const Performance& entry, std::size_t limit) {
  const auto say = [&](const std::string& what) {
    fail(site,
         what + ", algorithm " + std::to_string(entry.algorithm) + " in " +
             std::to_string(entry.memory) + " bytes");
  };
  if (entry.algorithm < 0 || entry.algorithm >= algorithmCount(site))
    return say("an answer names no algorithm");
  const Site::Algorithm& plain = site.queried()[static_cast<std::size_t>(entry.algorithm)];
  if (plain.status != CUDNN_STATUS_SUCCESS) return say("an answer that cuDNN refuses");
  if (entry.memory > limit) say("an answer beyond its limit of " + std::to_string(limit));
  // In a workspace of the library's own the client's is of no use.
  if (plain.bytes > entry.memory && scenario_.totalBytes == 0)
    say("an answer that cuDNN needs " + std::to_string(plain.bytes) + " bytes for");
  // An unplanned convolution gets cuDNN's own answer.
  if (entry.memory % kGranularity != 0 && entry.memory != plain.bytes)
    say("an answer's memory is no multiple of 512");
  if (scenario_.deterministic && !plain.deterministic) say("an answer is not deterministic");
}

Actor::Choice Actor::followQuery(Site& site) {
  const bool restricted = part_.othersCapture || part_.captures;
  const Query how =
      restricted ? Query::kGet : random_.pick({Query::kGet, Query::kFind, Query::kFindEx});
  const int requested = random_.pick({1, 3, algorithmCount(site)});
  std::size_t limit = kNoLimit;
  std::unique_ptr<Granted> memory;
  if (how == Query::kFindEx) {
    memory = std::make_unique<Granted>(site.interestingBytes(random_));
    limit = memory->workspace().bytes;
  }
  trace(site,
        "query " + std::to_string(static_cast<int>(how)) + " within " + std::to_string(limit));
  std::vector<Performance> results;
  const Workspace workspace = memory ? memory->workspace() : Workspace{};
  const cudnnStatus_t status = site.convolution().query(
      part_.asker->handle, asked(site), how, requested, &results, workspace);
  part_.asker->limits.erase(limitKey(site));
  if (how == Query::kFindEx) {
    site.restore();  // the output is the query's to overwrite
    if (status == CUDNN_STATUS_SUCCESS) part_.asker->limits[limitKey(site)] = limit;
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    // Find allocates, and may find no memory. cuDNN has no setting that leaves it without an
    // answer.
    const bool excused =
        (how == Query::kFind && scenario_.limitsMemory) ||
        (scenario_.deterministic && !hasAnswer(site, limit, scenario_.deterministic));
    if (site.runsAtAll() && !excused)
      fail(site, std::string("a query failed with ") + cudnnGetErrorString(status));
    return chooseFreely(site);
  }
  std::vector<Performance> usable;
  for (const Performance& entry : results)
    if (entry.status == CUDNN_STATUS_SUCCESS) usable.push_back(entry);
  for (const Performance& entry : usable) checkEntry(site, entry, limit);
  if (usable.empty()) {
    if (hasAnswer(site, limit, scenario_.deterministic) && !scenario_.limitsMemory)
      fail(site, "a query has no answer within its limit");
    return chooseFreely(site);
  }
  const Performance& chosen = random_.chance(0.7) ? usable.front() : random_.pick(usable);
  ClientHandle& sizer = random_.chance(0.5) ? *part_.asker : *part_.runner;
  if (random_.chance(0.4)) return followSize(site, chosen.algorithm, sizer);
  Choice choice;
  choice.algorithm = chosen.algorithm;
  choice.bytes = chosen.memory;
  choice.followed = true;
  return choice;
}

/// The queries that cuDNN 8 removed: an algorithm for a named limit.
Actor::Choice Actor::followPreference(Site& site) {
  const int preference = random_.between(0, 2);
  std::size_t limit = kNoLimit;
  if (preference == 0) limit = 0;
  if (preference == 2 && random_.chance(0.8)) limit = site.interestingBytes(random_);
  trace(site, "preference " + std::to_string(preference) + " within " + std::to_string(limit));
  int algorithm = -1;
  const cudnnStatus_t status = site.convolution().queryPreferred(
      part_.asker->handle, asked(site), preference, limit, &algorithm);
  part_.asker->limits.erase(limitKey(site));
  if (status != CUDNN_STATUS_SUCCESS) {
    if (hasAnswer(site, limit, scenario_.deterministic))
      fail(site,
           std::string("a query within ") + std::to_string(limit) + " failed with " +
               cudnnGetErrorString(status));
    return chooseFreely(site);
  }
  if (algorithm < 0 || algorithm >= algorithmCount(site)) {
    fail(site, "a query names no algorithm");
    return chooseFreely(site);
  }
  // To prefer the fastest is to name none; the largest is a limit like any other.
  if (preference != kPreferFastest) part_.asker->limits[limitKey(site)] = limit;
  return followSize(site, algorithm, *part_.asker);
}

void Actor::lookAtPlan(Site& site) {
  const std::size_t limit = site.interestingBytes(random_);
  trace(site, "plan within " + std::to_string(limit));
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  const cudnnStatus_t status =
      site.convolution().plan(part_.asker->handle, asked(site), limit, &plan, &entries);
  std::vector<ucudnnParetoPoint_t> points;
  site.convolution().front(part_.asker->handle, asked(site), &points);
  if (status != CUDNN_STATUS_SUCCESS) {
    // A convolution that can't be measured now is not planned.
    if (status != CUDNN_STATUS_NOT_SUPPORTED && !scenario_.limitsMemory && !part_.captures)
      fail(site, std::string("a plan failed with ") + cudnnGetErrorString(status));
    return;
  }
  int samples = 0;
  const int batch = site.convolution().parameters().batch;
  const std::size_t sampleBytes =
      site.convolution().output(asked(site)).bytes() / static_cast<std::size_t>(batch);
  for (const ucudnnMicroBatches_t& entry : entries) {
    samples += entry.batch * entry.count;
    // Beyond the plan's it borrows, where samples are yet to be written.
    if (entry.workspaceBytes > plan.workspaceBytes &&
        (asked(site) == UCUDNN_BACKWARD_FILTER ||
         entry.workspaceBytes > sampleBytes * static_cast<std::size_t>(batch - samples)))
      fail(site, "a plan's step exceeds the plan");
    if (scenario_.deterministic && !entry.deterministic) fail(site, "a plan is not deterministic");
  }
  if (samples != batch) fail(site, "a plan covers " + std::to_string(samples) + " samples");
  if (plan.workspaceBytes > limit)
    fail(site, "a plan exceeds its limit of " + std::to_string(limit));
}

}  // namespace ucudnn::test
