#include "planner/measuring_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "planner_requests.hpp"

namespace ucudnn::test {
namespace {

PlanRequest of(int batch, int device = 0) {
  PlanRequest request = wanted(1 << 20);
  request.problem = request.problem.withBatch(batch);
  request.device = device;
  return request;
}

TEST(MeasuringQueueTest, TheOneThatPaysBestIsFirst) {
  MeasuringQueue queue;
  EXPECT_TRUE(queue.isNext(of(1), 2)) << "alone";
  EXPECT_TRUE(queue.isNext(of(2), 3));
  EXPECT_FALSE(queue.isNext(of(1), 2));
  EXPECT_TRUE(queue.isNext(of(1), 4)) << "its calls have gone on";
  EXPECT_FALSE(queue.isNext(of(2), 3));
  EXPECT_TRUE(queue.isNext(of(3, 1), 1)) << "on another device";
}

TEST(MeasuringQueueTest, OneThatIsMeasuredHoldsUpNone) {
  MeasuringQueue queue;
  ASSERT_TRUE(queue.isNext(of(1), 9));
  ASSERT_FALSE(queue.isNext(of(2), 3));
  queue.leave(of(1));
  EXPECT_TRUE(queue.isNext(of(2), 3));
}

TEST(MeasuringQueueTest, NeitherDoesOneThatNobodyCallsAnyMore) {
  MeasuringQueue queue;
  ASSERT_TRUE(queue.isNext(of(1), 9));
  ASSERT_FALSE(queue.isNext(of(2), 3));
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  EXPECT_TRUE(queue.isNext(of(2), 3));
}

}  // namespace
}  // namespace ucudnn::test
