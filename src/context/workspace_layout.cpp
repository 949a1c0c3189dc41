// How the owner lays out its memory: a segment for each convolution, or an arena for each stream.
#include <algorithm>

#include "context/workspace_owner.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

#ifdef UCUDNN_DEBUG_GLPK_PRINT
constexpr const char* kDiagnosisDirectory = ".";  // as published
#else
constexpr const char* kDiagnosisDirectory = "";
#endif

// A stream is idle when for so many uses by all streams, counted in networks, none was its own:
// two iterations of forward and backward passes that evaluate on other streams in between.
constexpr std::uint64_t kIdleNetworks = 4;

/// The time of the fastest configuration within the limit; the least workspace's where none is.
double timeWithin(const std::vector<Configuration>& front, std::size_t limitBytes) {
  const auto above = std::find_if(front.begin(), front.end(), [&](const Configuration& point) {
    return point.workspaceBytes > limitBytes;
  });
  return above == front.begin() ? front.front().timeMs : std::prev(above)->timeMs;
}

std::size_t arenaBytes(std::size_t totalBytes, std::size_t streams) {
  const std::size_t each = totalBytes / std::max<std::size_t>(streams, 1);
  return each / kWorkspaceGranularity * kWorkspaceGranularity;
}

}  // namespace

/// On one stream sharing serves each convolution with the whole total: no division is faster.
bool WorkspaceOwner::mayDivide() const noexcept {
  if (!workspaceDivisionAvailable()) return false;
  return key_.policy == TotalWorkspacePolicy::kDivide ||
         (key_.policy == TotalWorkspacePolicy::kAuto && streams_.size() > 1);
}

void WorkspaceOwner::solve(const PlanRequest& request) {
  const bool frozen = isFrozen();
  if (layout_ == Layout::kShared && !frozen) forgetIdleStreams();
  const std::vector<Convolution*> convolutions = network();
  std::optional<Chosen> chosen;
  if (mayDivide() && !frozen) {
    chosen = divide(request, convolutions);
    if (chosen && key_.policy == TotalWorkspacePolicy::kAuto && !isDivisionFaster(*chosen))
      chosen.reset();
  }
  unsettled_ = false;
  epoch_.fetch_add(1, std::memory_order_release);
  if (!clearLayout()) {
    if (layout_ == Layout::kShared) layOutArenas();
    return;
  }
  if (chosen)
    layOutSegments(request, *chosen);
  else
    layOutArenas();
  for (Convolution* const convolution : convolutions) convolution->placed = true;
  report(request, convolutions);
}

/// At first all that were asked about; later those that have run.
std::vector<WorkspaceOwner::Convolution*> WorkspaceOwner::network() const {
  std::vector<Convolution*> network;
  for (const auto& convolution : convolutions_)
    if (layout_ == Layout::kNone || convolution->called) network.push_back(convolution.get());
  return network;
}

void WorkspaceOwner::findFront(const PlanRequest& request, Convolution& convolution) const {
  if (convolution.hasFront) return;
  convolution.hasFront = true;
  convolution.front.clear();
  try {
    convolution.front = planner().front(requestFor(request, convolution));
  } catch (const std::exception& error) {
    logWarn("{} takes no part in the division: {}", convolution.key.problem.text(), error.what());
  }
}

/// Empty where there is no division, which is logged.
std::optional<WorkspaceOwner::Chosen> WorkspaceOwner::divide(
    const PlanRequest& request, const std::vector<Convolution*>& convolutions) const {
  try {
    Chosen chosen;
    std::vector<DivisionItem> items;
    for (Convolution* const convolution : convolutions) {
      findFront(request, *convolution);
      if (convolution->front.empty()) continue;
      DivisionItem& item = items.emplace_back();
      for (const Configuration& point : convolution->front)
        item.options.push_back({point.timeMs, point.workspaceBytes});
      chosen.convolutions.push_back(convolution);
    }
    DivisionSettings settings;
    settings.totalBytes = totalBytes_;
    settings.alignmentBytes = kWorkspaceGranularity;
    settings.diagnosisDirectory = kDiagnosisDirectory;
    auto division = divideWorkspace(items, settings);
    if (!division) {
      logWarn("{} of workspace cannot be divided among {} convolutions: they share it",
              formatSize(totalBytes_),
              items.size());
      return std::nullopt;
    }
    if (!division->optimal)
      logWarn("the division of {} of workspace is not proven to be the best: time was short",
              formatSize(totalBytes_));
    chosen.division = std::move(*division);
    return chosen;
  } catch (const std::exception& error) {
    logWarn("the workspace is shared, not divided: {}", error.what());
    return std::nullopt;
  }
}

bool WorkspaceOwner::isDivisionFaster(const Chosen& chosen) const {
  const std::size_t each = arenaBytes(totalBytes_, streams_.size());
  double sharedMs = 0;
  for (const Convolution* const convolution : chosen.convolutions)
    sharedMs += timeWithin(convolution->front, each);
  return chosen.division.timeMs < sharedMs;
}

bool WorkspaceOwner::isFrozen() const {
  return std::any_of(
      regions_.begin(), regions_.end(), [](const auto& region) { return region->isBound(); });
}

/// False: a captured region keeps the layout as it is.
bool WorkspaceOwner::clearLayout() {
  if (!WorkspaceRegion::retire(regions_)) return false;
  busy_.insert(busy_.end(), regions_.begin(), regions_.end());
  busy_.erase(std::remove_if(
                  busy_.begin(), busy_.end(), [](const auto& region) { return !region->isBusy(); }),
              busy_.end());
  regions_.clear();
  usedBytes_ = 0;
  for (auto& [id, arena] : streams_) arena = nullptr;
  for (const auto& convolution : convolutions_) {
    convolution->placed = false;
    convolution->share = {};
  }
  layout_ = Layout::kNone;
  return true;
}

void WorkspaceOwner::layOutSegments(const PlanRequest& request, const Chosen& chosen) {
  layout_ = Layout::kDivided;
  for (std::size_t i = 0; i < chosen.convolutions.size(); ++i) {
    Convolution& convolution = *chosen.convolutions[i];
    const std::size_t bytes = convolution.front[chosen.division.chosen[i]].workspaceBytes;
    convolution.share.plan = planWithin(requestFor(request, convolution), bytes, false);
    if (bytes > 0) convolution.share.region = takeRegion(roundUpWorkspace(bytes));
  }
}

/// Streams that have one keep it.
void WorkspaceOwner::layOutArenas() {
  const bool frozen = layout_ == Layout::kShared;
  layout_ = Layout::kShared;
  const std::size_t each = frozen ? leftBytes() : arenaBytes(totalBytes_, streams_.size());
  for (auto& [id, arena] : streams_)
    if (!arena && each > 0 && each <= leftBytes()) arena = takeRegion(each);
}

/// REQUIRES: bytes <= leftBytes().
std::shared_ptr<WorkspaceRegion> WorkspaceOwner::takeRegion(std::size_t bytes) {
  char* const begin = memory_ + usedBytes_;
  std::vector<std::shared_ptr<WorkspaceRegion>> predecessors;
  for (const auto& region : busy_)
    if (region->overlaps(begin, bytes)) predecessors.push_back(region);
  regions_.push_back(
      std::make_shared<WorkspaceRegion>(begin, bytes, uses_, std::move(predecessors)));
  usedBytes_ += bytes;
  return regions_.back();
}

void WorkspaceOwner::forgetIdleStreams() {
  const std::uint64_t idle = kIdleNetworks * convolutions_.size() * streams_.size();
  const std::uint64_t now = uses_.load(std::memory_order_relaxed);
  for (auto stream = streams_.begin(); stream != streams_.end();)
    if (stream->second && stream->second->lastUse() + idle < now)
      stream = streams_.erase(stream);
    else
      ++stream;
}

/// A line for each convolution, then the totals against cuDNN's own.
void WorkspaceOwner::report(const PlanRequest& request,
                            const std::vector<Convolution*>& convolutions) {
  if (!Log::instance().enabled(LogLevel::kInfo)) return;
  reported_ = {};
  const bool divided = layout_ == Layout::kDivided;
  const std::size_t arena = arenaBytes(totalBytes_, streams_.size());
  for (const Convolution* const convolution : convolutions) {
    const PlanRequest own = requestFor(request, *convolution);
    reportPlan(
        own, *convolution, divided ? convolution->share.plan : planWithin(own, arena, false));
  }
  logInfo("{} convolutions {} {} of {}: {:.3f} ms; cuDNN's own, undivided: {:.3f} ms in {}",
          reported_.convolutions,
          divided ? "divide" : "share",
          formatSize(usedBytes_),
          formatSize(totalBytes_),
          reported_.timeMs,
          reported_.nativeMs,
          formatSize(reported_.nativeBytes));
}

void WorkspaceOwner::reportNewcomer(const PlanRequest& request,
                                    const Convolution& convolution,
                                    const std::shared_ptr<const Plan>& plan) {
  if (!plan || !Log::instance().enabled(LogLevel::kInfo)) return;
  reportPlan(request, convolution, plan);
  logInfo("  came later: {} of them now take {:.3f} ms; cuDNN's own {:.3f} ms in {}",
          reported_.convolutions,
          reported_.timeMs,
          reported_.nativeMs,
          formatSize(reported_.nativeBytes));
}

void WorkspaceOwner::reportPlan(const PlanRequest& request,
                                const Convolution& convolution,
                                const std::shared_ptr<const Plan>& plan) {
  if (!plan) return;
  logInfo("layer {} {} N={}: {}, {:.3f} ms in {}, {:.1f} % of the total",
          convolution.key.layer,
          convolution.key.problem.text(),
          convolution.key.problem.batch(),
          toText(*plan),
          plan->predictedMs,
          formatSize(plan->workspaceBytes),
          100.0 * static_cast<double>(plan->workspaceBytes) / static_cast<double>(totalBytes_));
  ++reported_.convolutions;
  reported_.timeMs += plan->predictedMs;
  const Measurements measured = planner().measurements(request);
  const auto undivided = measured.find(convolution.key.problem.batch());
  if (undivided == measured.end()) return;
  const Measurement* const fastest = fastestOf(undivided->second.kernels);
  if (fastest == nullptr) return;
  reported_.nativeMs += fastest->timeMs;
  reported_.nativeBytes += fastest->workspaceBytes;
}

}  // namespace ucudnn
