#include "planner/background_plans.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "benchmark/helper_devices.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// At most so many plans are under way. Calls make further ones: a program with so many convolutions
// waits for some of them.
constexpr std::size_t kMostBegun = 1024;
// Longest wait of a capture. Building takes 5 ms, compiling up to 1.5 s.
constexpr std::chrono::seconds kPatience{5};

/// A copy of a request with its settings and devices: the call that owns these may be over.
struct OwnRequest {
  explicit OwnRequest(const PlanRequest& request)
      : settings(*request.settings), devices(*request.benchmarkDevices), wanted(request) {
    wanted.settings = &settings;
    wanted.benchmarkDevices = &devices;
    wanted.buffers = nullptr;
    wanted.callsSince = 0;
  }
  OwnRequest(const OwnRequest&) = delete;
  OwnRequest& operator=(const OwnRequest&) = delete;

  Settings settings;
  std::vector<int> devices;
  PlanRequest wanted;
};

}  // namespace

bool BackgroundPlans::mayServe(const PlanRequest& request, Measuring measuring) noexcept {
  return measuring == Measuring::kWhenItPays && request.mayPlanInBackground() &&
         request.suitsEngines;
}

BackgroundPlans::Key BackgroundPlans::keyOf(const PlanRequest& request) noexcept {
  return {request.machine,
          request.device,
          request.problem,
          request.question(),
          request.limitBytes,
          request.deterministic,
          request.suitsEngines,
          request.calls,
          request.replay()};
}

void BackgroundPlans::Shared::end(const Key& key, bool isMade) noexcept {
  const std::lock_guard lock(mutex);
  const auto place = std::find_if(
      places.begin(), places.end(), [&](const Place& other) { return other.key == key; });
  if (isMade)
    places.erase(place);
  else
    place->state = State::kFailed;
  changed.notify_all();
}

template <typename Is>
void BackgroundPlans::Shared::waitUntilNone(Is is) noexcept {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, kPatience, [&] {
    return std::none_of(places.begin(), places.end(), [&](const Place& place) {
      return place.state == State::kBegun && is(place);
    });
  });
}

bool BackgroundPlans::begin(const PlanRequest& request, Make make) {
  const Key key = keyOf(request);
  // Ends when nobody holds it any more: the work is done, or nobody will do it.
  struct Task {
    Task(std::shared_ptr<Shared> all, const Key& itsKey, const PlanRequest& request)
        : shared(std::move(all)), key(itsKey), own(request) {}
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    ~Task() { shared->end(key, isMade); }

    const std::shared_ptr<Shared> shared;
    const Key key;
    OwnRequest own;
    bool isMade = false;
  };
  {
    const std::lock_guard lock(shared_->mutex);
    auto& places = shared_->places;
    for (const Place& other : places)
      if (other.key == key) return other.state == State::kBegun;
    if (places.size() >= kMostBegun) return false;
    places.push_back({key, State::kBegun});
  }
  std::shared_ptr<Task> task;
  try {
    task = std::make_shared<Task>(shared_, key, request);
  } catch (const std::bad_alloc&) {
    shared_->end(key, false);
    throw;
  }
  HelperDevices::instance().invite(
      request.device,
      std::make_shared<Invitation>(
          [task, make = std::move(make)](cudnnHandle_t handle) {
            task->own.wanted.handle = handle;
            try {
              make(task->own.wanted);
              task->isMade = true;
            } catch (const std::exception& error) {  // if the call fails there, it reports that
              logInfo("{} N={}: no plan was made in the background: {}",
                      task->own.wanted.problem.text(),
                      task->own.wanted.problem.batch(),
                      error.what());
            }
          },
          false));
  return true;
}

void BackgroundPlans::wait(const PlanRequest& request) noexcept {
  const Key key = keyOf(request);
  shared_->waitUntilNone([&](const Place& other) { return other.key == key; });
}

BackgroundPlans::~BackgroundPlans() {
  shared_->waitUntilNone([](const Place&) { return true; });
}

}  // namespace ucudnn
