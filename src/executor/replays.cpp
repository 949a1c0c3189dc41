#include "executor/replays.hpp"

#include <utility>
#include <vector>

#include "executor/executor.hpp"
#include "support/log.hpp"
#include "support/shared_by_key.hpp"

namespace ucudnn {
namespace {

// Device memory of an executable graph, rather too much. Seen on an H200 (CUDA 13.0) if every fifth
// node clears memory: 90 KB for 5 nodes, 580 KB for 160, 2.3 MB for 640. If none does, a fifth of
// it.
constexpr std::size_t kGraphBytes = std::size_t{80} << 10;
constexpr std::size_t kNodeBytes = 3600;
// A plan that could not be captured is tried again after so many of its calls. This is soon enough
// if memory was short. It is too seldom to cost 1 %, because capturing takes about as long as
// enqueueing.
constexpr int kRest = 256;

}  // namespace

/// Frees without disturbing captures of other threads. Waits for no device.
Replays::Captured::~Captured() {
  try {
    const RelaxedCapture relaxed;
    exec.reset();
  } catch (const std::exception&) {  // the process ends
  }
}

Replays::~Replays() {
  while (!graphs_.empty()) take(graphs_.begin());
}

bool Replays::run(std::uint64_t owner,
                  cudnnHandle_t handle,
                  const Plan& plan,
                  const ConvolutionCall& call,
                  const CallStream& stream,
                  std::size_t mostBytes) noexcept {
  const auto key = replayKey(owner, plan, call, stream);
  if (!key) return false;
  try {
    std::shared_ptr<Captured> captured;
    std::uint64_t seenAt = 0;
    if (!find(*key, plan, &captured, &seenAt)) return false;
    if (!captured) captured = capture(*key, handle, plan, call, seenAt, mostBytes);
    if (!captured) return false;
    if (cudaGraphLaunch(captured->exec.get(), stream.stream) == cudaSuccess) return true;
    static_cast<void>(cudaGetLastError());
  } catch (const std::exception& error) {
    logDebug("{} N={} is not replayed: {}",
             Late{[&] { return plan.problem.text(); }},
             plan.problem.batch(),
             error.what());
  }
  rest(*key, plan);
  return false;
}

/// Returns true if the call is captured, or has been seen before and may be captured.
bool Replays::find(const ReplayKey& key,
                   const Plan& plan,
                   std::shared_ptr<Captured>* captured,
                   std::uint64_t* seenAt) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = ++uses_;
  if (const auto known = graphs_.find(key); known != graphs_.end()) {
    known->second->lastUse = now;
    byUse_.splice(byUse_.end(), byUse_, known->second->place);
    *captured = known->second;
    return true;
  }
  const std::uint64_t hash = key.hash();
  const Seen before = std::exchange(placeFor(hash), Seen{hash, now});
  if (before.at == 0 || before.hash != hash) return false;
  *seenAt = before.at;
  int* const resting = resting_.find(plan.id);
  if (resting == nullptr) return true;
  if (--*resting == 0) resting_.erase(plan.id);
  return false;
}

/// The call's place, or else one that it may take. REQUIRES: the lock is held.
Replays::Seen& Replays::placeFor(std::uint64_t hash) noexcept {
  auto& places = seen_[hash % seen_.size()];
  for (const std::uint64_t wanted : {hash, std::uint64_t{0}})
    for (Seen& place : places)
      if (place.hash == wanted) return place;
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  return places[(uses_ * kMultiplier >> 32) % kPlaces];
}

/// Null if there is no room for the graph, or nothing may be captured now.
std::shared_ptr<Replays::Captured> Replays::capture(const ReplayKey& key,
                                                    cudnnHandle_t handle,
                                                    const Plan& plan,
                                                    const ConvolutionCall& call,
                                                    std::uint64_t seenAt,
                                                    std::size_t mostBytes) {
  const auto bytesOf = [](std::size_t nodes) { return kGraphBytes + nodes * kNodeBytes; };
  // The graph has a node for each micro-batch at least. If these can't fit, it is not captured.
  if (!makeRoom(bytesOf(plan.microBatches()), seenAt, mostBytes)) return nullptr;
  const DeviceScope device(device_);
  const auto calls = captureCalls(handle, [&] { return runPlan(handle, plan, call).status; });
  if (!calls) return nullptr;
  auto captured = std::make_shared<Captured>();
  captured->bytes = bytesOf(calls->nodes);
  if (!add(key, captured, seenAt, mostBytes)) {
    rest(key, plan);
    return nullptr;
  }
  captured->exec = instantiate(*calls);
  return captured;
}

/// Counts the graph before it takes memory. Returns false if there is no room.
bool Replays::add(const ReplayKey& key,
                  const std::shared_ptr<Captured>& captured,
                  std::uint64_t seenAt,
                  std::size_t mostBytes) {
  if (!makeRoom(captured->bytes, seenAt, mostBytes)) return false;
  std::list<const ReplayKey*> place{nullptr};
  const std::lock_guard lock(mutex_);
  if (bytes_ + captured->bytes > mostBytes) return false;  // another thread was first
  const auto added = graphs_.emplace(key, captured).first;
  captured->lastUse = uses_;
  captured->place = place.begin();
  place.front() = &added->first;
  byUse_.splice(byUse_.end(), place);
  bytes_ += captured->bytes;
  ++statistics_.graphs;
  statistics_.graphBytes += static_cast<long long>(captured->bytes);
  return true;
}

/// Destroys graphs that have rested for longer than the call until the graph fits. Returns false,
/// and destroys none, if it would not fit even then.
bool Replays::makeRoom(std::size_t bytes, std::uint64_t seenAt, std::size_t mostBytes) {
  std::vector<std::shared_ptr<Captured>> gone;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  auto first = byUse_.begin();  // the first that stays
  for (std::size_t left = bytes_; left + bytes > mostBytes; ++first) {
    if (first == byUse_.end()) return false;
    const Captured& rested = *graphs_.find(**first)->second;
    if (rested.lastUse >= seenAt) return false;
    left -= rested.bytes;
  }
  while (byUse_.begin() != first) gone.push_back(take(graphs_.find(*byUse_.front())));
  return true;
}

/// Destroys the key's graph, and doesn't capture the plan for a while.
void Replays::rest(const ReplayKey& key, const Plan& plan) noexcept {
  std::shared_ptr<Captured> gone;
  try {
    const std::lock_guard lock(mutex_);
    if (const auto graph = graphs_.find(key); graph != graphs_.end()) gone = take(graph);
    resting_[plan.id] = kRest;
  } catch (const std::exception&) {  // out of host memory: it is tried sooner
  }
}

void Replays::forget(std::uint64_t owner) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto graph = graphs_.begin(); graph != graphs_.end();) {
    const auto next = std::next(graph);
    if (graph->first.owner == owner) take(graph);
    graph = next;
  }
}

/// REQUIRES: the lock is held.
std::shared_ptr<Replays::Captured> Replays::take(Graphs::iterator graph) noexcept {
  std::shared_ptr<Captured> taken = std::move(graph->second);
  byUse_.erase(taken->place);
  graphs_.erase(graph);
  bytes_ -= taken->bytes;
  --statistics_.graphs;
  statistics_.graphBytes -= static_cast<long long>(taken->bytes);
  return taken;
}

std::shared_ptr<Replays> replaysOf(int device, Statistics& statistics) {
  static auto& all = *new SharedByKey<int, Replays>;
  return all.get(device, device, statistics);
}

}  // namespace ucudnn
