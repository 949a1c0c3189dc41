#include "planner/measuring_queue.hpp"

#include <algorithm>

namespace ucudnn {
namespace {

// The most problems that wait. Those of a larger program wait until one of these has been measured
// or forgotten.
constexpr std::size_t kMostWaiting = 256;

}  // namespace

bool MeasuringQueue::isNext(const PlanRequest& request, double payback) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  places_.erase(
      std::remove_if(places_.begin(),
                     places_.end(),
                     [&](const Place& other) { return now - other.wanted >= kWantedWithin; }),
      places_.end());
  auto own = std::find_if(
      places_.begin(), places_.end(), [&](const Place& other) { return other.isOf(request); });
  if (own == places_.end()) {
    if (places_.size() == kMostWaiting) return false;
    own = places_.insert(own, {request.device, request.problem, request.question()});
  }
  own->payback = payback;
  own->wanted = now;
  return std::none_of(places_.begin(), places_.end(), [&](const Place& other) {
    return other.device == request.device && other.payback > payback;
  });
}

void MeasuringQueue::leave(const PlanRequest& request) {
  const std::lock_guard lock(mutex_);
  places_.erase(
      std::remove_if(
          places_.begin(), places_.end(), [&](const Place& other) { return other.isOf(request); }),
      places_.end());
}

}  // namespace ucudnn
