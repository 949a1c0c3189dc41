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

/// How a fork is made safe. A child has one thread of its parent's; what the others had locked
/// stays locked in it, and half written.
///
///  1. A fork waits until no thread holds a ForkMutex, and lets none be taken until it is done. So
///     what they guard is whole in the child. There is no order of locks to keep: a thread that
///     holds one takes others without waiting for the fork.
///  2. It waits no longer than kPatience: a fork must not hang.
///  3. Every lock is made anew in the child before it is used there. So what was held all the same
///     is free.
///  4. A LongForkMutex isn't waited for: it is held while a device, cuDNN or a measurement takes
///     its time. What it guards must make sense in a child wherever the holder was.
///
/// What can't be a lock's own business is a hook's (onFork).
namespace fork_gate {

void enter() noexcept;  ///< waits while a thread forks, unless this one has entered already
void leave() noexcept;

/// How often this process's line of parents has forked since the library was loaded.
std::uint64_t generation() noexcept;

}  // namespace fork_gate

/// What is to be done around a fork; null: nothing.
struct ForkHooks {
  /// Before other threads' locks are waited for. What it locks is for `inParent` to unlock, and
  /// free in the child.
  void (*before)() = nullptr;
  void (*inParent)() = nullptr;
  void (*inChild)() = nullptr;
};
/// From the next fork on, and never taken back. Throws std::bad_alloc, std::system_error.
void onFork(const ForkHooks& hooks);

/// A value that a child has anew. Thread-safe.
template <typename Value>
class AnewInChild {
 public:
  AnewInChild() : state_(ready(fork_gate::generation())) { new (&memory_) Value; }
  ~AnewInChild() { value()->~Value(); }
  AnewInChild(const AnewInChild&) = delete;
  AnewInChild& operator=(const AnewInChild&) = delete;

  /// Throws what making a value does.
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
          new (&memory_) Value;  // the former one has owners or waiters that aren't here
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

/// As std::mutex. What its holder does takes no time to speak of.
using ForkMutex = BasicForkMutex<std::mutex, true>;
/// As std::shared_mutex.
using SharedForkMutex = BasicForkMutex<std::shared_mutex, true>;
/// As std::mutex, for as long as need be.
using LongForkMutex = BasicForkMutex<std::mutex, false>;

/// As std::condition_variable, with a ForkMutex. Who waits holds up no fork. A child has none of
/// its parent's threads: nobody wakes who waits for what they were to do.
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
