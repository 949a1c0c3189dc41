// Replays calls as CUDA graphs: one launch in place of a call for each micro-batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

#include "cuda/captured_calls.hpp"
#include "executor/replay_key.hpp"
#include "support/bounded_map.hpp"
#include "support/fork.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// The graphs of one device. A call is captured when it comes a second time, with the same plan,
/// pointers and factors on the same stream. From then on it is launched.
///
/// 1. The graphs take at most the memory that is granted. The graph that was launched least
///    recently goes first, but never for a call that has rested longer than it. So if more calls
///    take turns than fit, some are always replayed, and nothing is captured over and over.
/// 2. A call that comes for the first time costs a look-up, and is noted.
/// 3. A call that cannot be captured is enqueued, and tried again much later.
///
/// Thread-safe; the lock is not held while something is captured or launched.
class Replays {
 public:
  Replays(int device, Statistics& statistics) : device_(device), statistics_(statistics) {}
  ~Replays();
  Replays(const Replays&) = delete;
  Replays& operator=(const Replays&) = delete;

  /// Enqueues a plan's call as one launch. Returns false if nothing has been enqueued. `mostBytes`
  /// limits all graphs of the device. REQUIRES: as for runPlan; the stream is not being captured.
  bool run(std::uint64_t owner,
           cudnnHandle_t handle,
           const Plan& plan,
           const ConvolutionCall& call,
           const CallStream& stream,
           std::size_t mostBytes) noexcept;

  /// Destroys the graphs of an owner, whose handle is about to end.
  void forget(std::uint64_t owner) noexcept;

 private:
  struct Captured {
    Captured() = default;
    ~Captured();
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;

    GraphExec exec;
    std::size_t bytes = 0;
    std::uint64_t lastUse = 0;
    std::list<const ReplayKey*>::iterator place;  ///< in byUse_
  };
  /// A call that has been seen, known by its key's hash.
  struct Seen {
    std::uint64_t hash = 0;
    std::uint64_t at = 0;  ///< use number; 0: none
  };
  using Graphs = std::unordered_map<ReplayKey, std::shared_ptr<Captured>, ReplayKey::Hash>;

  bool find(const ReplayKey& key,
            const Plan& plan,
            std::shared_ptr<Captured>* captured,
            std::uint64_t* seenAt);
  std::shared_ptr<Captured> capture(const ReplayKey& key,
                                    cudnnHandle_t handle,
                                    const Plan& plan,
                                    const ConvolutionCall& call,
                                    std::uint64_t seenAt,
                                    std::size_t mostBytes);
  bool add(const ReplayKey& key,
           const std::shared_ptr<Captured>& captured,
           std::uint64_t seenAt,
           std::size_t mostBytes);
  Seen& placeFor(std::uint64_t hash) noexcept;
  bool makeRoom(std::size_t bytes, std::uint64_t seenAt, std::size_t mostBytes);
  void rest(const ReplayKey& key, const Plan& plan) noexcept;
  std::shared_ptr<Captured> take(Graphs::iterator graph) noexcept;

  const int device_;
  Statistics& statistics_;
  ForkMutex mutex_;  ///< guards what follows
  Graphs graphs_;
  std::list<const ReplayKey*> byUse_;  ///< of graphs_, the longest rested first
  std::size_t bytes_ = 0;
  std::uint64_t uses_ = 0;
  /// As many places as eight sets of buffers for 500 convolutions need. A call may take some of
  /// them, and one of these at random if all are taken: calls that take turns in one place would
  /// never be captured.
  static constexpr std::size_t kPlaces = 4;
  std::array<std::array<Seen, kPlaces>, 1024> seen_;
  /// Calls until a plan is tried again, by plan id.
  BoundedMap<std::uint64_t, int, std::hash<std::uint64_t>> resting_{1024};
};

/// The device's graphs. They live as long as one handle holds them. Throws std::bad_alloc.
std::shared_ptr<Replays> replaysOf(int device, Statistics& statistics);

}  // namespace ucudnn
