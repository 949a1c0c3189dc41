// Which threads use a device.
#include "cuda/calling_threads.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "support/slowness.hpp"

namespace ucudnn {
namespace {

constexpr unsigned kSecondsForADeadlock = 20;

// A data loader may be forked whenever another thread is in a call.
TEST(CallingThreadsTest, AForkedChildWaitsForNoCaptureOfItsParent) {
  std::promise<void> began, forked;
  std::thread capturing([&] {
    const CallingThreads::Capture capture(callingThreads(0));
    EXPECT_TRUE(capture.isAllowed());
    began.set_value();
    forked.get_future().wait();
  });
  began.get_future().wait();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSecondsForADeadlock * test::kSlowness);
    CallingThreads& threads = callingThreads(0);
    threads.beginWait();
    threads.endWait();
    ::_exit(CallingThreads::Capture(threads).isAllowed() ? 0 : 1);
  }
  forked.set_value();
  capturing.join();
  ASSERT_GE(child, 0);
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_EQ(0, status) << "exit status or signal of the child";
}

TEST(CallingThreadsTest, ItBeginsWithNoWaitOfItsParent) {
  callingThreads(1).beginWait();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSecondsForADeadlock * test::kSlowness);
    ::_exit(callingThreads(1).mayCapture() ? 0 : 1);
  }
  EXPECT_FALSE(callingThreads(1).mayCapture());
  callingThreads(1).endWait();
  ASSERT_GE(child, 0);
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
}

}  // namespace
}  // namespace ucudnn
