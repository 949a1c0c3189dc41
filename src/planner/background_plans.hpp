// Plans that another thread makes ready, while calls run the client's own kernels.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "planner/request.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// Each is made by the device's thread of HelperDevices, with its handle. What could not be made
/// there is left to the call. Thread-safe.
class BackgroundPlans {
 public:
  /// Makes a plan, where the request's handle is the thread's. May throw.
  using Make = std::function<void(const PlanRequest&)>;

  BackgroundPlans() = default;
  /// Waits for what has begun, which may use what this belongs to.
  ~BackgroundPlans();
  BackgroundPlans(const BackgroundPlans&) = delete;
  BackgroundPlans& operator=(const BackgroundPlans&) = delete;

  /// Whether a call may go on without a plan until it is ready: by its own kernel, within the
  /// workspace that the call has.
  static bool mayWait(const PlanRequest& request, Measuring measuring) noexcept;

  /// Has the plan made, unless that has begun. False: it was tried in vain. Nothing is measured for
  /// it. Throws std::bad_alloc.
  bool begin(const PlanRequest& request, Make make);
  /// Until the request's plan is not being made any more: a call that is being captured has one
  /// chance.
  void wait(const PlanRequest& request) noexcept;

 private:
  enum class State { kBegun, kFailed };
  /// What one is told apart by.
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
  /// Of those that outlive the process's end, too: a thread may be at one.
  struct Shared {
    ForkMutex mutex;
    ForkCondition changed;
    std::vector<Place> places;

    void end(const Key& key, bool isMade) noexcept;
    /// Until none that has begun `is`.
    template <typename Is>
    void waitUntilNone(Is is) noexcept;
  };

  static Key keyOf(const PlanRequest& request) noexcept;

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace ucudnn
