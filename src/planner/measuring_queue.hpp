// The problems that wait to be measured.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "planner/request.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// A measurement that no call has wanted for this long gives way: it waits for its program's next
/// phase.
inline constexpr std::chrono::seconds kWantedWithin{1};

/// On each device the one whose gain pays soonest goes first. One that no call has wanted for
/// kWantedWithin doesn't hold up the others. Thread-safe.
class MeasuringQueue {
 public:
  /// A call of the problem wants it measured, which pays so many times over. Returns whether its
  /// turn has come.
  bool isNext(const PlanRequest& request, double payback);
  /// The problem is being measured.
  void leave(const PlanRequest& request);

 private:
  using Clock = std::chrono::steady_clock;
  struct Place {
    int device;
    Problem problem;
    QuestionKey question;
    double payback = 0;
    Clock::time_point wanted{};

    bool isOf(const PlanRequest& request) const noexcept {
      return device == request.device && problem == request.problem &&
             question == request.question();
    }
  };

  ForkMutex mutex_;
  std::vector<Place> places_;
};

}  // namespace ucudnn
