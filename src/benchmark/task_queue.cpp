#include "benchmark/task_queue.hpp"

#include <algorithm>
#include <iterator>

namespace ucudnn {

void TaskQueue::add(std::vector<TimingTask> timings) {
  const std::lock_guard lock(mutex_);
  std::move(timings.begin(), timings.end(), std::back_inserter(timings_));
  changed_.notify_all();
}

void TaskQueue::addSizes(const std::vector<int>& sizes) {
  const std::lock_guard lock(mutex_);
  sizes_.insert(sizes_.end(), sizes.begin(), sizes.end());
  changed_.notify_all();
}

std::optional<TaskQueue::Task> TaskQueue::take(int device) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (device != 0 && closed_) return std::nullopt;
    if (auto task = next(device)) {
      ++underWay_;
      return task;
    }
    if (device == 0 && underWay_ == 0) return std::nullopt;
    changed_.wait(lock);
  }
}

std::optional<TaskQueue::Task> TaskQueue::takeTiming(int device,
                                                     bool wanted(const TimingTask&, int)) {
  const auto found = std::find_if(timings_.begin(), timings_.end(), [&](const TimingTask& task) {
    return (device == 0 || !task.onlyOwn) && wanted(task, device);
  });
  if (found == timings_.end()) return std::nullopt;
  Task task{std::move(*found), 0};
  timings_.erase(found);
  return task;
}

/// A kernel that this device has run before comes first: another device would have to load it.
std::optional<TaskQueue::Task> TaskQueue::next(int device) {
  if (auto task = takeTiming(device, [](const auto& t, int self) { return t.device == self; }))
    return task;
  if (auto task =
          takeTiming(device, [](const auto& t, int) { return t.device == TimingTask::kAnyDevice; }))
    return task;
  if (!sizes_.empty()) {
    const Task task{std::nullopt, device == 0 ? sizes_.front() : sizes_.back()};
    device == 0 ? sizes_.pop_front() : sizes_.pop_back();
    return task;
  }
  return takeTiming(device, [](const auto&, int) { return true; });
}

void TaskQueue::done() {
  const std::lock_guard lock(mutex_);
  --underWay_;
  changed_.notify_all();
}

void TaskQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace ucudnn
