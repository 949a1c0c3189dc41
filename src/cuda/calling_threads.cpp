#include "cuda/calling_threads.hpp"

#include <pthread.h>

#include <map>

#include "support/fork.hpp"

namespace ucudnn {
namespace {

/// An ended thread's may be used again: that thread waits for nothing any more. No thread_local,
/// which costs each call of the client's a look-up.
std::uintptr_t idOfThisThread() noexcept {
  return static_cast<std::uintptr_t>(::pthread_self());
}

enum class Waits { kUntold, kKnown, kUnknown };
std::atomic<Waits> waitsOfClients{Waits::kUntold};

struct Devices {
  ForkMutex mutex;
  std::map<int, CallingThreads> threads;
};

/// Never destroyed: handles are used in static destructors. Throws std::bad_alloc.
Devices& devices() {
  static Devices& made = []() -> Devices& {
    auto* const all = new Devices;
    onFork({nullptr, nullptr, [] {
              for (auto& [device, threads] : devices().threads) threads.startAnew();
            }});
    return *all;
  }();
  return made;
}

}  // namespace

void CallingThreads::knowWaits(bool known) noexcept {
  auto before = Waits::kUntold;
  if (known)
    waitsOfClients.compare_exchange_strong(before, Waits::kKnown, std::memory_order_acq_rel);
  else
    waitsOfClients.store(Waits::kUnknown, std::memory_order_release);
}

std::uintptr_t CallingThreads::note() noexcept {
  const std::uintptr_t caller = idOfThisThread();
  if (last_.load(std::memory_order_acquire) == caller) return caller;
  const std::lock_guard lock(mutex_);
  if (last_.exchange(caller, std::memory_order_acq_rel) != 0) changedAt_ = Clock::now();
  return caller;
}

bool CallingThreads::isAllowed() const noexcept {
  if (waits_ > 0) return false;
  if (waitsOfClients.load(std::memory_order_acquire) == Waits::kKnown) return true;
  const std::uintptr_t last = last_.load(std::memory_order_acquire);
  const bool isQuiet =
      changedAt_ == Clock::time_point::min() || Clock::now() - changedAt_ >= kQuiet;
  return isQuiet && (last == 0 || last == idOfThisThread());
}

bool CallingThreads::mayCapture() noexcept {
  const std::lock_guard lock(mutex_);
  return isAllowed();
}

CallingThreads::Capture::Capture(CallingThreads& threads)
    : lock_(threads.mutex_), allowed_(threads.isAllowed()) {
  if (!allowed_) lock_.unlock();
}

void CallingThreads::beginWait() noexcept {
  const std::lock_guard lock(mutex_);
  ++waits_;
}

void CallingThreads::endWait() noexcept {
  const std::lock_guard lock(mutex_);
  --waits_;
}

void CallingThreads::startAnew() noexcept {
  last_.store(0, std::memory_order_release);
  changedAt_ = Clock::time_point::min();
  waits_ = 0;
}

CallingThreads& callingThreads(int device) {
  const std::lock_guard lock(devices().mutex);
  return devices().threads[device];
}

}  // namespace ucudnn
