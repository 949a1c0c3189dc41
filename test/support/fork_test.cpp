// The state of a parent's locks in its forked child.
#include "support/fork.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "slowness.hpp"

namespace ucudnn {
namespace {

constexpr unsigned kSecondsForADeadlock = 20;

/// A child's exit status; 128 and more: a signal ended it, 142 if it hung.
template <typename Body>
int childs(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSecondsForADeadlock * test::kSlowness);
    ::_exit(body());
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Two numbers that are the same whenever nobody holds the lock.
template <typename Mutex>
struct Guarded {
  Mutex mutex;
  long first = 0, second = 0;

  void change() {
    const std::lock_guard lock(mutex);
    ++first;
    std::this_thread::yield();
    ++second;
  }
  bool isWhole() {
    const std::lock_guard lock(mutex);
    return first == second;
  }
};

TEST(ForkTest, AChildFindsLocksFreeAndWhatTheyGuardWhole) {
  std::array<Guarded<ForkMutex>, 4> all;
  Guarded<SharedForkMutex> shared;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      while (!done) {
        all[i].change();
        const std::lock_guard outer(all[i].mutex);  // one within another, as the library's
        all.back().change();
        shared.change();
      }
    });
  constexpr int kChildren = 100;
  for (int child = 0; child < kChildren; ++child)
    EXPECT_EQ(0, childs([&] {
                bool areWhole = shared.isWhole();
                for (auto& each : all) areWhole = each.isWhole() && areWhole;
                return areWhole ? 0 : 1;
              }));
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(ForkTest, ALongLockIsFreeInAChildAndHoldsUpNoFork) {
  LongForkMutex mutex;
  std::promise<void> locked, forked;
  std::thread holder([&] {
    const std::lock_guard lock(mutex);
    locked.set_value();
    forked.get_future().wait();
  });
  locked.get_future().wait();
  EXPECT_EQ(0, childs([&] { return mutex.try_lock() ? 0 : 1; }));
  EXPECT_FALSE(mutex.try_lock()) << "it is another process's";
  forked.set_value();
  holder.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

// It may need what the forking thread has.
TEST(ForkTest, AForkOutlastsAHolderThatWaitsForIt) {
  ForkMutex mutex;
  std::promise<void> locked, forked;
  std::thread holder([&] {
    const std::lock_guard lock(mutex);
    locked.set_value();
    forked.get_future().wait();
  });
  locked.get_future().wait();
  EXPECT_EQ(0, childs([&] {
              { const std::lock_guard lock(mutex); }
              return childs([&] {
                const std::lock_guard lock(mutex);
                return 0;
              });
            }));
  forked.set_value();
  holder.join();
  const std::lock_guard lock(mutex);
}

TEST(ForkTest, AChildsConditionHasNoneOfItsParentsWaiters) {
  ForkMutex mutex;
  ForkCondition condition;
  std::atomic<bool> isWaiting{false};
  bool isDone = false;
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i)
    waiters.emplace_back([&] {
      std::unique_lock lock(mutex);
      isWaiting = true;
      condition.wait(lock, [&] { return isDone; });
    });
  while (!isWaiting) std::this_thread::yield();
  for (int child = 0; child < 20; ++child)
    EXPECT_EQ(0, childs([&] {
                std::unique_lock lock(mutex);
                condition.notify_all();
                const auto isSo = [] { return false; };
                return condition.wait_for(lock, std::chrono::milliseconds(1), isSo) ? 1 : 0;
              }));
  {
    const std::lock_guard lock(mutex);
    isDone = true;
  }
  condition.notify_all();
  for (std::thread& waiter : waiters) waiter.join();
}

struct Seen {
  ForkMutex mutex;
  int before = 0, inParent = 0, inChild = 0;
};
Seen& seen() {
  static Seen& all = *new Seen;
  return all;
}

TEST(ForkTest, AHookMayHoldALockAcrossAFork) {
  onFork({[] {
            seen().mutex.lock();
            ++seen().before;
          },
          [] {
            ++seen().inParent;
            seen().mutex.unlock();
          },
          [] { ++seen().inChild; }});
  const auto isIn = [](int parent, int child) {
    const std::lock_guard lock(seen().mutex);
    return seen().before == 1 && seen().inParent == parent && seen().inChild == child;
  };
  EXPECT_EQ(0, childs([&] { return isIn(0, 1) ? 0 : 1; }));
  EXPECT_TRUE(isIn(1, 0));
}

}  // namespace
}  // namespace ucudnn
