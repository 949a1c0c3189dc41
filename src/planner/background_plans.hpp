// Plans that another thread makes ready, while calls run the client's own kernels.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "planner/request.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// The device's thread of HelperDevices makes each plan, with its own handle. If that fails, the
/// call makes the plan. Thread-safe.
class BackgroundPlans {
 public:
  /// Makes a plan; the request's handle is the thread's. May throw.
  using Make = std::function<void(const PlanRequest&)>;

  BackgroundPlans() = default;
  /// Waits for plans that have begun, because they may use the owner of this object.
  ~BackgroundPlans();
  BackgroundPlans(const BackgroundPlans&) = delete;
  BackgroundPlans& operator=(const BackgroundPlans&) = delete;

  /// Whether a plan for the call may be made beside it, if the call can run without.
  static bool mayServe(const PlanRequest& request, Measuring measuring) noexcept;

  /// Has the plan made, unless that has begun already. Returns false if that has failed before, or
  /// if too many have begun. Measures nothing. Throws std::bad_alloc.
  bool begin(const PlanRequest& request, Make make);
  /// Waits until the request's plan is not being made any more. For a call that is being captured,
  /// because it has only one chance.
  void wait(const PlanRequest& request) noexcept;

 private:
  enum class State { kBegun, kFailed };
  /// Identifies a plan.
  struct Key {
    int machine, device;
    Problem problem;
    QuestionKey question;
    std::size_t limitBytes;
    bool deterministic, suitsEngines;
    CallKind calls;
    Replay replay;

    bool operator==(const Key& other) const noexcept {
      return machine == other.machine && device == other.device && limitBytes == other.limitBytes &&
             deterministic == other.deterministic && suitsEngines == other.suitsEngines &&
             calls == other.calls && replay == other.replay && question == other.question &&
             problem == other.problem;
    }
  };
  struct Place {
    Key key;
    State state;
  };
  /// Shared with the helper threads, which may still be at work when this object is gone.
  struct Shared {
    ForkMutex mutex;
    ForkCondition changed;
    std::vector<Place> places;

    void end(const Key& key, bool isMade) noexcept;
    /// Waits until no plan that has begun satisfies `is`, at most for kPatience.
    template <typename Is>
    void waitUntilNone(Is is) noexcept;
  };

  static Key keyOf(const PlanRequest& request) noexcept;

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace ucudnn
