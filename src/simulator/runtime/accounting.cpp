#include "simulator/runtime/accounting.hpp"

#include <cstdio>
#include <cstdlib>

#include "simulator/runtime/host_costs.hpp"
#include "simulator/runtime/memory.hpp"
#include "simulator/runtime/settings.hpp"

namespace ucudnn::simulator {

namespace {

/// cuDNN's descriptors are host memory that no device knows; a library's process-wide plans keep
/// theirs for as long as the process lives, reachable to the end.
bool isDescriptor(std::string_view kind) {
  constexpr std::string_view kEnd = "Descriptor";
  return kind.size() > kEnd.size() && kind.substr(kind.size() - kEnd.size()) == kEnd;
}

/// Runs after the static destructors of everything that is linked with the runtime.
__attribute__((destructor)) void reportAtExit() {
  Memory::instance().checkGuards();
  Memory::instance().checkFreed();
  const Leaks reported = settings().leaks;
  if (reported == Leaks::kNone) return;
  const std::string leaks = Accounting::instance().leaks(reported == Leaks::kAll);
  if (!leaks.empty()) std::fprintf(stderr, "CUDA simulator: leaked at exit: %s\n", leaks.c_str());
}

}  // namespace

std::int64_t& Accounting::Counters::operator[](const char* name) {
  Known& known = byAddress_[reinterpret_cast<std::uintptr_t>(name) / 8 % byAddress_.size()];
  // A library that is loaded anew may have another name there.
  if (known.address != name || known.counter->first != name) {
    auto found = byName_.find(name);
    if (found == byName_.end()) found = byName_.emplace(name, 0).first;
    known = {name, &*found};
  }
  return known.counter->second;
}

Accounting& Accounting::instance() {
  static Accounting* const accounting = new Accounting;
  return *accounting;
}

Accounting::Accounting() : failingCall_(settings().failCall) {}

bool Accounting::callFails(const char* function) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++calls_[function];
  return ++callTotal_ == failingCall_;
}

void Accounting::failCall(std::int64_t callsFromNow) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failingCall_ = callsFromNow == 0 ? 0 : callTotal_ + callsFromNow;
}

std::int64_t Accounting::callCount(const char* functionOrNull) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return functionOrNull == nullptr ? callTotal_ : calls_[functionOrNull];
}

void Accounting::countHandle(const char* kind, int change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  handles_[kind] += change;
}

std::int64_t Accounting::liveHandles(const char* kindOrNull) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (kindOrNull != nullptr) return handles_[kindOrNull];
  std::int64_t sum = 0;
  for (const auto& [kind, count] : handles_.all()) sum += count;
  return sum;
}

std::int64_t Accounting::liveResources() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::int64_t sum = 0;
  for (const auto& [kind, count] : handles_.all()) sum += isDescriptor(kind) ? 0 : count;
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

std::string Accounting::leaks(bool descriptorsToo) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (const auto& [kind, count] : handles_.all()) {
    if (isDescriptor(kind) && !descriptorsToo) continue;
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
