// A context's settings, and what they stand for on one device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "context/trace.hpp"
#include "cuda/calling_threads.hpp"
#include "executor/replays.hpp"
#include "host/staging.hpp"
#include "planner/planner.hpp"
#include "support/alignment.hpp"
#include "support/bounded_map.hpp"
#include "support/fork.hpp"
#include "support/settings.hpp"
#include "workspace/workspace_owner.hpp"

namespace ucudnn {

using Offers = std::shared_ptr<const std::vector<KernelOffer>>;

/// cuDNN's offers for problems, asked for once each. Thread-safe.
class KnownOffers {
 public:
  /// Several threads may call `ask` at a time. Throws its exceptions.
  template <typename Ask>
  Offers get(const Problem& problem, Ask ask) {
    if (Offers known = find(problem)) return known;
    auto made = std::make_shared<const std::vector<KernelOffer>>(ask());
    const std::lock_guard lock(mutex_);
    Offers& place = known_[problem];
    if (!place) place = std::move(made);
    return place;
  }

 private:
  Offers find(const Problem& problem) {
    const std::lock_guard lock(mutex_);
    const Offers* const known = known_.find(problem);
    return known != nullptr ? *known : nullptr;
  }

  ForkMutex mutex_;
  BoundedMap<Problem, Offers, ProblemHash> known_{kMostProblems};
};

/// Immutable: other settings, or another device, make another snapshot, which replaces the former
/// as a whole. So one snapshot answers a question on another thread than the handle's. Thread-safe,
/// and so is all that it holds.
class Snapshot {
 public:
  /// `former` is the same handle's; null: this is the first. `isFrozenKept`: what `former` has read
  /// of the file of plans still holds. Throws Error, BadSetting, std::bad_alloc.
  Snapshot(cudnnHandle_t handle,
           int device,
           Settings settings,
           const Snapshot* former,
           bool isFrozenKept);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  /// The client's handle. It is destroyed after all questions.
  const cudnnHandle_t handle;
  const int device;
  const int machine;
  CallingThreads& threads;  ///< the device's
  const Settings settings;
  const std::shared_ptr<FrozenPlans> frozen;  ///< null: no file of plans
  const std::vector<int> benchmarkDevices;
  const std::shared_ptr<WorkspaceOwner> owner;  ///< null: each convolution uses its caller's
  const std::shared_ptr<Replays> replays;       ///< null: nothing is replayed
  const std::shared_ptr<Staging> staging;       ///< null: tensors are on the device
  TraceFile* const trace;                       ///< null: nobody wants a trace
  const bool isRecorded;                        ///< calls are recorded, for the trace or the report
  const bool isDisabled;                        ///< every call is left to cuDNN

  PlanRequest request(const Problem& problem, std::size_t limitBytes, bool deterministic) const;
  /// A query's request. Whether the call will add to its output is not known yet, and few calls do.
  PlanRequest queryFor(const Problem& problem, std::size_t limitBytes, bool deterministic) const;

  bool isCapped() const noexcept {
    return settings.workspaceLimitBytes < std::numeric_limits<std::size_t>::max();
  }
  /// At most UCUDNN_WORKSPACE_LIMIT.
  std::size_t capped(std::size_t bytes) const noexcept {
    return isCapped() ? std::min(bytes, roundDownToAlignment(settings.workspaceLimitBytes)) : bytes;
  }
  bool ownsWorkspace() const noexcept { return owner && owner->works(); }

  /// Ordered by time.
  Offers rankedOf(const Problem& problem, const ConvolutionDescriptors& descriptors) const;
  Offers offersOf(const Problem& problem, const ConvolutionDescriptors& descriptors) const;
  /// Null if there is none.
  const KernelOffer* offerWithoutWorkspace(const std::vector<KernelOffer>& offers) const;

  /// Whose workspace a convolution runs in.
  enum class Route {
    kCallers,
    kOwned,
    kUnshared,  ///< the caller's, though there is an owned one: cuDNN has nothing without workspace
  };
  /// The route of a convolution, of which the network learns. `capturing`: the handle's stream is.
  Route routeOf(const Problem& problem,
                const ConvolutionDescriptors& descriptors,
                LayerId layer,
                bool capturing) const;

  /// All kernels that run a problem's part: algorithms, and engines if `withEngines`.
  Offers kernelsOf(const Problem& part, bool withEngines, Calls calls) const;

 private:
  /// Shared by the snapshots of a handle on one device.
  struct DeviceOffers {
    KnownOffers ranked, offered;
    KnownOffers kernels[2][2];  ///< without and with engines, for all calls and to overwrite
  };
  const std::shared_ptr<DeviceOffers> offers_;
};

/// Nothing is measured during a capture.
inline Measuring measuringFor(bool mayMeasure, bool capturing) noexcept {
  if (capturing) return Measuring::kNever;
  return mayMeasure ? Measuring::kNow : Measuring::kIfKnown;
}

}  // namespace ucudnn
