// The rest of runtime.hpp: what the simulated cuDNN asks of memory, and what tests ask and set.
#include <atomic>
#include <cstdio>

#include "simulator/runtime/accounting.hpp"
#include "simulator/runtime/api.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/memory.hpp"
#include "simulator/runtime/settings.hpp"
#include "simulator/runtime/thread_state.hpp"

namespace ucudnn::simulator {

namespace {

/// The values that the environment chooses and tests set.
struct Chosen {
  std::atomic<Arithmetic> arithmetic{settings().arithmetic};
  std::atomic<Rounding> rounding{settings().rounding};
  std::atomic<OddChannels> oddChannels{OddChannels::kComputed};
  std::atomic<std::uint64_t> randomTimesSeed{settings().randomTimesSeed};
  std::atomic<Lie> lie{settings().lie};
};

Chosen& chosen() {
  static Chosen instance;
  return instance;
}

std::string describeRange(const void* pointer, std::size_t bytes, const char* what) {
  char text[160];
  std::snprintf(text, sizeof text, "%s (%zu bytes at %p)", what, bytes, pointer);
  return text;
}

}  // namespace

Arithmetic arithmetic() {
  return chosen().arithmetic;
}

OddChannels oddChannels() {
  return chosen().oddChannels;
}

Rounding rounding() {
  return chosen().rounding;
}

Lie lie() {
  return chosen().lie;
}

std::uint64_t randomTimesSeed() {
  return chosen().randomTimesSeed;
}

bool findAllocation(const void* pointer, Allocation* allocation) {
  const std::optional<Block> block = Memory::instance().find(pointer);
  if (!block) return false;
  *allocation = {block->base, block->bytes, block->device};
  return true;
}

bool checkRange(const void* pointer, std::size_t bytes, const char* what) {
  if (bytes == 0) return true;
  const std::optional<Block> block = Memory::instance().find(pointer);
  if (!block) {
    reportViolation(describeRange(pointer, bytes, what) + " is not device memory, or was freed");
    return false;
  }
  if (block->kind == MemoryKind::kHost || block->kind == MemoryKind::kRegistered) {
    reportViolation(describeRange(pointer, bytes, what) + " is host memory");
    return false;
  }
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(pointer) - block->base);
  if (bytes > block->bytes - offset) {
    reportViolation(describeRange(pointer, bytes, what) + " reaches beyond its allocation of " +
                    std::to_string(block->bytes) + " bytes");
    return false;
  }
  const int current = thisThread().device;
  if (block->kind == MemoryKind::kDevice &&
      !Machine::instance().reachesPeer(current, block->device)) {
    reportViolation(describeRange(pointer, bytes, what) + " belongs to device " +
                    std::to_string(block->device) + ", which device " + std::to_string(current) +
                    " can't reach");
    return false;
  }
  return true;
}

extern "C" {

void ucudnnSimulatorFailCall(std::int64_t n) {
  Accounting::instance().failCall(n);
}

std::int64_t ucudnnSimulatorCallCount(const char* functionOrNull) {
  return Accounting::instance().callCount(functionOrNull);
}

std::int64_t ucudnnSimulatorViolationCount() {
  return Accounting::instance().violationCount();
}

std::int64_t ucudnnSimulatorLiveHandles(const char* kindOrNull) {
  return Accounting::instance().liveHandles(kindOrNull);
}

std::int64_t ucudnnSimulatorLiveResources() {
  return Accounting::instance().liveResources();
}

std::size_t ucudnnSimulatorLiveBytes(int device) {
  return isDevice(device) ? Memory::instance().liveBytes(device) : 0;
}

std::size_t ucudnnSimulatorPeakBytes(int device) {
  return isDevice(device) ? Memory::instance().peakBytes(device) : 0;
}

void ucudnnSimulatorStartPeak(int device) {
  if (isDevice(device)) Memory::instance().startPeak(device);
}

void ucudnnSimulatorSetMemory(int device, std::size_t bytes) {
  if (isDevice(device)) Memory::instance().setFreeBytes(device, bytes);
}

void ucudnnSimulatorSetArithmetic(int arithmetic) {
  chosen().arithmetic = static_cast<Arithmetic>(arithmetic);
}

int ucudnnSimulatorComputesAll() {
  return arithmetic() == Arithmetic::kFull ? 1 : 0;
}

void ucudnnSimulatorSetLie(int lie) {
  chosen().lie = static_cast<Lie>(lie);
}

void ucudnnSimulatorSetRounding(int rounding) {
  chosen().rounding = static_cast<Rounding>(rounding);
}

void ucudnnSimulatorSetOddChannels(int channels) {
  chosen().oddChannels = static_cast<OddChannels>(channels);
}

void ucudnnSimulatorSetRandomTimes(std::uint64_t seed) {
  chosen().randomTimesSeed = seed;
}

double ucudnnSimulatorClock(cudaStream_t handle) {
  double ms = 0;
  Machine::instance().inspectStream(
      handle, [&](const Stream& stream) { ms = msFromTicks(stream.reached.time); });
  return ms;
}

}  // extern "C"

}  // namespace ucudnn::simulator
