#include "simulator/runtime/accounting.hpp"

#include <cstdio>
#include <cstdlib>

#include "simulator/runtime/host_costs.hpp"
#include "simulator/runtime/memory.hpp"
#include "simulator/runtime/settings.hpp"

namespace ucudnn::simulator {

namespace {

template <typename Map>
std::int64_t& entry(Map& map, std::string_view key) {
  auto found = map.find(key);
  if (found == map.end()) found = map.emplace(std::string(key), 0).first;
  return found->second;
}

/// Runs after the static destructors of everything that is linked with the runtime.
__attribute__((destructor)) void reportAtExit() {
  Memory::instance().checkGuards();
  Memory::instance().checkFreed();
  if (!settings().reportLeaks) return;
  const std::string leaks = Accounting::instance().leaks();
  if (!leaks.empty()) std::fprintf(stderr, "CUDA simulator: leaked at exit: %s\n", leaks.c_str());
}

}  // namespace

Accounting& Accounting::instance() {
  static Accounting* const accounting = new Accounting;
  return *accounting;
}

Accounting::Accounting() : failingCall_(settings().failCall) {}

bool Accounting::callFails(std::string_view function) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++entry(calls_, function);
  return ++callTotal_ == failingCall_;
}

void Accounting::failCall(std::int64_t callsFromNow) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failingCall_ = callsFromNow == 0 ? 0 : callTotal_ + callsFromNow;
}

std::int64_t Accounting::callCount(const char* functionOrNull) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return functionOrNull == nullptr ? callTotal_ : entry(calls_, functionOrNull);
}

void Accounting::countHandle(std::string_view kind, int change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entry(handles_, kind) += change;
}

std::int64_t Accounting::liveHandles(const char* kindOrNull) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (kindOrNull != nullptr) return entry(handles_, kindOrNull);
  std::int64_t sum = 0;
  for (const auto& [kind, count] : handles_) sum += count;
  return sum;
}

void Accounting::reportViolation(const std::string& message) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++violations_;
  }
  std::fprintf(stderr, "CUDA simulator: violation: %s\n", message.c_str());
  if (settings().abortOnViolation) std::abort();
}

std::int64_t Accounting::violationCount() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return violations_;
}

std::string Accounting::leaks() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (const auto& [kind, count] : handles_) {
    if (count != 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  }
  return text;
}

bool callFails(const char* function) {
  hostCalls(function);
  return Accounting::instance().callFails(function);
}

void countHandle(const char* kind, int change) {
  Accounting::instance().countHandle(kind, change);
}

void reportViolation(const std::string& message) {
  Accounting::instance().reportViolation(message);
}

}  // namespace ucudnn::simulator
