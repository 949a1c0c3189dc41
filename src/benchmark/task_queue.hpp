// The open tasks of a benchmark: kernels to be timed, and batch sizes whose kernels have yet to be
// judged. Dealt out to the devices one by one.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "benchmark/stop_rule.hpp"
#include "kernels/source.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// One kernel at one batch size. REQUIRES: `descriptors` are the problem's at `batch` samples.
struct KernelCall {
  std::shared_ptr<const ProblemDescriptors> descriptors;
  int batch = 0;
  KernelOffer offer;
};

/// One kernel at one batch size, and how it is timed.
struct TimingTask {
  enum class How {
    kGlance,   ///< a few calls, not replayed
    kQuick,    ///< one call
    kCareful,  ///< until `limits` are met, and its time on the device
    kAgain     ///< until `limits` are met, some time later
  };
  KernelCall call;
  How how = How::kQuick;
  double expectedMs = 0;  ///< of one call; 0: nothing leads to expect a time
  StopRule::Limits limits;
  int device = kAnyDevice;  ///< that has run the kernel, if one has
  bool onlyOwn = false;     ///< another device could not
  bool withError = false;   ///< the kernel's error is to be measured too

  static constexpr int kAnyDevice = -1;
};

/// Number 0 is the device of the handle that the benchmark was asked with, whose thread adds the
/// tasks. Thread-safe.
class TaskQueue {
 public:
  struct Task {
    std::optional<TimingTask> timing;  ///< empty: the kernels at `batch` are to be judged
    int batch = 0;
  };

  void add(std::vector<TimingTask> timings);
  void addSizes(const std::vector<int>& sizes);

  /// The next task for a device. Waits while tasks under way may add more; a further device waits
  /// for `close` as well. Empty: nothing is left.
  std::optional<Task> take(int device);
  /// Call it once for each task taken, after the tasks that follow from it have been added.
  void done();
  /// Further devices get no more tasks.
  void close();

 private:
  std::optional<Task> next(int device);
  std::optional<Task> takeTiming(int device, bool wanted(const TimingTask&, int));

  ForkMutex mutex_;
  ForkCondition changed_;
  std::deque<TimingTask> timings_;
  std::deque<int> sizes_;  ///< own device from the front, others from the back
  int underWay_ = 0;
  bool closed_ = false;
};

}  // namespace ucudnn
