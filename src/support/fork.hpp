// Locks that a forked child can take, whatever its parent's threads were doing.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <thread>

namespace ucudnn {

/// How a fork is made safe. A child has only the thread that forked. Locks that other threads held
/// stay locked in the child, and their data stays half written.
///
/// 1. A fork waits until no thread holds a ForkMutex, and lets none be taken until it is done. So
///    the guarded data is whole in the child. No lock order is needed: a thread that holds one lock
///    takes others without waiting for the fork.
/// 2. A fork waits no longer than kPatience, because it must not hang.
/// 3. Every lock is made anew in the child before its first use there. So a lock that was still
///    held is free.
/// 4. A fork doesn't wait for a LongForkMutex, which is held while its thread waits for a device,
///    cuDNN or a measurement. Its data must make sense in a child wherever the holder was.
///
/// Hooks (onFork) do what a lock can't do itself.
namespace fork_gate {

void enter() noexcept;  ///< waits while a thread forks, unless this one has entered already
void leave() noexcept;

/// How many forks lead from the process that loaded the library to this one.
std::uint64_t generation() noexcept;

}  // namespace fork_gate

/// Functions to call around a fork; null: none.
struct ForkHooks {
  /// Called before the fork waits for other threads' locks. `inParent` unlocks the locks that it
  /// takes; in the child they are free.
  void (*before)() = nullptr;
  void (*inParent)() = nullptr;
  void (*inChild)() = nullptr;
};
/// Registers hooks for all later forks. Throws std::bad_alloc, std::system_error.
void onFork(const ForkHooks& hooks);

/// A value that is made anew in each child. Thread-safe.
template <typename Value>
class AnewInChild {
 public:
  AnewInChild() : state_(ready(fork_gate::generation())) { new (&memory_) Value; }
  ~AnewInChild() { value()->~Value(); }
  AnewInChild(const AnewInChild&) = delete;
  AnewInChild& operator=(const AnewInChild&) = delete;

  /// Throws the exceptions of the value's constructor.
  Value& get() {
    const std::uint64_t wanted = ready(fork_gate::generation());
    if (state_.load(std::memory_order_acquire) != wanted) renew(wanted);
    return *value();
  }

 private:
  static std::uint64_t ready(std::uint64_t generation) noexcept { return 2 * generation; }
  Value* value() noexcept { return std::launder(reinterpret_cast<Value*>(&memory_)); }

  void renew(std::uint64_t wanted) {
    const std::uint64_t underWay = wanted + 1;
    std::uint64_t known = state_.load(std::memory_order_acquire);
    while (known != wanted) {
      if (known == underWay) {  // another thread of the child does it
        std::this_thread::yield();
        known = state_.load(std::memory_order_acquire);
      } else if (state_.compare_exchange_weak(known, underWay, std::memory_order_acquire)) {
        try {
          new (&memory_) Value;  // the former one has owners or waiters that don't exist here
        } catch (...) {
          state_.store(known, std::memory_order_release);
          throw;
        }
        return state_.store(wanted, std::memory_order_release);
      }
    }
  }

  alignas(Value) unsigned char memory_[sizeof(Value)];
  std::atomic<std::uint64_t> state_;
};

template <typename Inner, bool kIsWaitedFor>
class BasicForkMutex {
 public:
  void lock() {
    enter();
    inner_.get().lock();
  }
  bool try_lock() {
    enter();
    const bool isTaken = inner_.get().try_lock();
    if (!isTaken) leave();
    return isTaken;
  }
  void unlock() {
    inner_.get().unlock();
    leave();
  }
  void lock_shared() {
    enter();
    inner_.get().lock_shared();
  }
  void unlock_shared() {
    inner_.get().unlock_shared();
    leave();
  }

 private:
  static void enter() noexcept {
    if (kIsWaitedFor) fork_gate::enter();
  }
  static void leave() noexcept {
    if (kIsWaitedFor) fork_gate::leave();
  }
  AnewInChild<Inner> inner_;
};

/// Like std::mutex. The holder must be done in no time to speak of.
using ForkMutex = BasicForkMutex<std::mutex, true>;
/// Like std::shared_mutex.
using SharedForkMutex = BasicForkMutex<std::shared_mutex, true>;
/// Like std::mutex, but may be held for any time.
using LongForkMutex = BasicForkMutex<std::mutex, false>;

/// Like std::condition_variable, with a ForkMutex. A waiting thread delays no fork. A child has
/// none of its parent's threads, so a wait for something that they were to do never ends there.
class ForkCondition {
 public:
  template <typename Lock>
  void wait(Lock& lock) {
    condition_.get().wait(lock);
  }
  template <typename Lock, typename Predicate>
  void wait(Lock& lock, Predicate isSo) {
    condition_.get().wait(lock, isSo);
  }
  template <typename Lock, typename Duration, typename Predicate>
  bool wait_for(Lock& lock, Duration most, Predicate isSo) {
    return condition_.get().wait_for(lock, most, isSo);
  }
  void notify_one() noexcept { condition_.get().notify_one(); }
  void notify_all() noexcept { condition_.get().notify_all(); }

 private:
  AnewInChild<std::condition_variable_any> condition_;
};

}  // namespace ucudnn
