// Who gets which task, and when there are no more.
#include "benchmark/task_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

namespace ucudnn {
namespace {

TimingTask timing(int algorithm, int device = TimingTask::kAnyDevice, bool onlyOwn = false) {
  TimingTask task;
  task.call.offer.kernel.id = algorithm;
  task.device = device;
  task.onlyOwn = onlyOwn;
  return task;
}

/// The algorithm to be timed; the negative size to be judged; 0: nothing.
int taken(TaskQueue& queue, int device) {
  const auto task = queue.take(device);
  if (!task) return 0;
  return task->timing ? task->timing->call.offer.kernel.id : -task->batch;
}

TEST(TaskQueueTest, ADeviceFirstGetsWhatItHasRunThenWhatNoneHas) {
  TaskQueue queue;
  queue.add({timing(1), timing(2, 1), timing(3), timing(4, 0)});
  EXPECT_EQ(2, taken(queue, 1));
  EXPECT_EQ(1, taken(queue, 1));
  EXPECT_EQ(4, taken(queue, 0));
  EXPECT_EQ(3, taken(queue, 0));
}

TEST(TaskQueueTest, ThenSizesFromEitherEndThenWhatAnotherHasRun) {
  TaskQueue queue;
  queue.addSizes({3, 5, 6, 7});
  queue.add({timing(1, 0), timing(2, 0)});
  EXPECT_EQ(1, taken(queue, 0));
  EXPECT_EQ(-7, taken(queue, 1));
  EXPECT_EQ(2, taken(queue, 0));
  EXPECT_EQ(-3, taken(queue, 0));
  queue.add({timing(4, 0)});
  EXPECT_EQ(-6, taken(queue, 1));
  EXPECT_EQ(-5, taken(queue, 1));
  EXPECT_EQ(4, taken(queue, 1));
}

TEST(TaskQueueTest, WhatAnotherDeviceCouldNotIsLeftToTheOwn) {
  TaskQueue queue;
  queue.add({timing(1, 1, true)});
  queue.add({timing(2)});
  EXPECT_EQ(2, taken(queue, 1));
  queue.done();
  EXPECT_EQ(1, taken(queue, 0));
}

TEST(TaskQueueTest, TheOwnDeviceWaitsForWhatOthersMayAdd) {
  TaskQueue queue;
  queue.addSizes({8});
  ASSERT_EQ(-8, taken(queue, 1));
  auto own = std::async(std::launch::async, [&] { return taken(queue, 0); });
  EXPECT_EQ(std::future_status::timeout, own.wait_for(std::chrono::milliseconds(20)));
  queue.add({timing(5, 1, true)});
  queue.done();
  EXPECT_EQ(5, own.get());
  queue.done();
  EXPECT_EQ(0, taken(queue, 0)) << "none is under way";
}

TEST(TaskQueueTest, OtherDevicesWaitForMoreUntilItIsClosed) {
  TaskQueue queue;
  auto other = std::async(std::launch::async, [&] { return taken(queue, 1); });
  EXPECT_EQ(std::future_status::timeout, other.wait_for(std::chrono::milliseconds(20)));
  queue.add({timing(3)});
  EXPECT_EQ(3, other.get());
  queue.done();
  other = std::async(std::launch::async, [&] { return taken(queue, 1); });
  queue.close();
  EXPECT_EQ(0, other.get());
  queue.add({timing(4)});
  EXPECT_EQ(0, taken(queue, 1)) << "closed";
  EXPECT_EQ(4, taken(queue, 0));
}

}  // namespace
}  // namespace ucudnn
