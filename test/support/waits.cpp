#include "waits.hpp"

#include <dlfcn.h>

#include <atomic>
#include <ctime>

namespace {

std::atomic<long long> waitedNs{0};

std::chrono::nanoseconds durationOf(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

/// Stands before libc's, and counts.
extern "C" int nanosleep(const timespec* time, timespec* rest) {
  waitedNs += durationOf(*time).count();
  using Sleep = int (*)(const timespec*, timespec*);
  static const auto sleep = reinterpret_cast<Sleep>(dlsym(RTLD_NEXT, "nanosleep"));
  return sleep(time, rest);
}

namespace ucudnn::test {

std::chrono::nanoseconds waited() {
  return std::chrono::nanoseconds(waitedNs);
}

std::chrono::nanoseconds spent() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return durationOf(now) + waited();
}

}  // namespace ucudnn::test
