// Lets a test ask and steer the simulator it runs on, if it does: the same binary also runs on a
// real GPU, where the functions below answer 0 and change nothing. (src/simulator/runtime.hpp says
// what each one does.)
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace ucudnn::test {

namespace detail {

template <typename Result, typename... Arguments>
Result callSimulator(const char* name, Arguments... arguments) {
  using Function = Result (*)(Arguments...);
  // Not linked: NVIDIA's runtime has no such symbol, and the loader decides which of the two is
  // there.
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr ? function(arguments...) : Result();
}

}  // namespace detail

inline bool onSimulator() {
  return dlsym(RTLD_DEFAULT, "ucudnnSimulatorCallCount") != nullptr;
}

/// Makes the n-th CUDA or cuDNN call from now fail; 0: none.
inline void failCall(std::int64_t n) {
  detail::callSimulator<void>("ucudnnSimulatorFailCall", n);
}

/// Calls so far, of all functions or of one.
inline std::int64_t callCount(const char* functionOrNull = nullptr) {
  return detail::callSimulator<std::int64_t>("ucudnnSimulatorCallCount", functionOrNull);
}

inline std::int64_t violationCount() {
  return detail::callSimulator<std::int64_t>("ucudnnSimulatorViolationCount");
}

/// Live "stream", "event", "graph", "graphExec", "device memory", "host memory", ..., or all
/// together.
inline std::int64_t liveHandles(const char* kindOrNull = nullptr) {
  return detail::callSimulator<std::int64_t>("ucudnnSimulatorLiveHandles", kindOrNull);
}

/// All that is live but descriptors, which process-wide plans keep: memory, streams, events,
/// graphs, cuDNN handles.
inline std::int64_t liveResources() {
  return detail::callSimulator<std::int64_t>("ucudnnSimulatorLiveResources");
}

inline std::size_t liveBytes(int device = 0) {
  return detail::callSimulator<std::size_t>("ucudnnSimulatorLiveBytes", device);
}

/// The most that was live at once since `startPeak`.
inline std::size_t peakBytes(int device = 0) {
  return detail::callSimulator<std::size_t>("ucudnnSimulatorPeakBytes", device);
}
inline void startPeak(int device = 0) {
  detail::callSimulator<void>("ucudnnSimulatorStartPeak", device);
}

/// Limits what is still free on a device.
inline void setMemory(int device, std::size_t bytes) {
  detail::callSimulator<void>("ucudnnSimulatorSetMemory", device, bytes);
}

enum class Arithmetic { kFull, kSampled, kOff, kTimed };  // as ucudnn::simulator::Arithmetic

inline void setArithmetic(Arithmetic arithmetic) {
  detail::callSimulator<void>("ucudnnSimulatorSetArithmetic", static_cast<int>(arithmetic));
}

/// The fault that engines of odd numbers have; none at first.
enum class Lie {  // as ucudnn::simulator::Lie
  kNone,
  kChannel,
  kRow,
  kOdd,
  kGroups,
  kOutput,
  kWorkspace,
  kMore,
  kBits,
  kUnwritten,
  kFails
};

inline void setLie(Lie lie) {
  detail::callSimulator<void>("ucudnnSimulatorSetLie", static_cast<int>(lie));
}

/// Whether kernels round as a GPU's do, each method with an error of its own; off at first.
inline void setRounding(bool on) {
  detail::callSimulator<void>("ucudnnSimulatorSetRounding", static_cast<int>(on));
}

enum class OddChannels { kComputed, kPadded, kRefused };  // as ucudnn::simulator::OddChannels

/// What algorithms do with numbers of channels that are no multiple of 8.
inline void setOddChannels(OddChannels channels) {
  detail::callSimulator<void>("ucudnnSimulatorSetOddChannels", static_cast<int>(channels));
}

/// Kernel times at random, the same at every run with the same seed; 0: off. Earlier measurements
/// of the library don't have them.
inline void setRandomTimes(std::uint64_t seed) {
  detail::callSimulator<void>("ucudnnSimulatorSetRandomTimes", seed);
}

/// Scales the time of a finalized engine configuration with its graph.
inline void scaleTime(void* configuration, double factor) {
  detail::callSimulator<void>("ucudnnSimulatorScaleTime", configuration, factor);
}

enum class Compiling { kWorks, kHeld, kFails };  // as ucudnn::simulator::Compiling

/// Sets what becomes of engines that cuDNN compiles: they are compiled, wait until this changes, or
/// can't be compiled.
inline void setCompiling(Compiling compiling) {
  detail::callSimulator<void>("ucudnnSimulatorSetCompiling", static_cast<int>(compiling));
}
/// How many wait.
inline int heldCompilations() {
  return detail::callSimulator<int>("ucudnnSimulatorHeldCompilations");
}

/// Makes calls cost the host's virtual time, as on an H200. Switching it on also forgets which
/// kernels are loaded.
inline void setMeasuringCost(bool on) {
  detail::callSimulator<void>("ucudnnSimulatorSetMeasuringCost", static_cast<int>(on));
}

/// The calling thread's virtual clock: each thread has its own, which begins at 0. It moves when
/// the thread waits, and with setMeasuringCost at each call.
inline double hostClockMs() {
  return detail::callSimulator<double>("ucudnnSimulatorHostClockMs");
}

/// A stream's virtual clock.
inline double clockMs(cudaStream_t stream) {
  return detail::callSimulator<double>("ucudnnSimulatorClock", stream);
}

}  // namespace ucudnn::test
