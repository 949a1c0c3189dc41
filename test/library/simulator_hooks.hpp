// The simulator's test hooks (src/simulator/runtime.hpp), found at run time: the tests are not
// linked with the simulator, and do without it on a GPU.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ucudnn::test {

struct Simulator {
  void (*failCall)(std::int64_t n);
  std::int64_t (*callCount)(const char* functionOrNull);
  std::int64_t (*violationCount)();
  std::int64_t (*liveHandles)(const char* kindOrNull);
  std::size_t (*liveBytes)(int device);
  void (*setMemory)(int device, std::size_t bytes);
  void (*setArithmetic)(int arithmetic);

  /// Empty: this is a GPU.
  static std::optional<Simulator> find() {
    Simulator found{};
    const bool complete = load(found.failCall, "ucudnnSimulatorFailCall") &&
                          load(found.callCount, "ucudnnSimulatorCallCount") &&
                          load(found.violationCount, "ucudnnSimulatorViolationCount") &&
                          load(found.liveHandles, "ucudnnSimulatorLiveHandles") &&
                          load(found.liveBytes, "ucudnnSimulatorLiveBytes") &&
                          load(found.setMemory, "ucudnnSimulatorSetMemory") &&
                          load(found.setArithmetic, "ucudnnSimulatorSetArithmetic");
    return complete ? std::optional<Simulator>(found) : std::nullopt;
  }

 private:
  template <typename Function>
  static bool load(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
    return function != nullptr;
  }
};

}  // namespace ucudnn::test
