#include "simulator/runtime/host_costs.hpp"

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "simulator/runtime.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/settings.hpp"
#include "simulator/runtime/thread_state.hpp"

namespace ucudnn::simulator {

namespace {

struct Rule {
  std::string_view prefix;
  double microseconds;
};

// Rounded from what was seen on an H200 with cuDNN 9.19 and CUDA 13.0: 0.3 ms for cudaMalloc and
// for cudaFree, 2 us for a call that reaches the driver; three convolutions of a new shape took 120
// ms to plan, 12 cudaMalloc and cudaFree among them. A planned call's whole overhead is 0.5 us
// (misc/results/hot_path_h200.json), several descriptors read: those can't take more than 0.1 us
// each. The others are rough. The first prefix that fits counts.
constexpr Rule kRules[] = {
    {"cudaMallocAsync", 2},
    {"cudaFreeAsync", 2},
    {"cudaMalloc", 300},
    {"cudaHostAlloc", 300},
    {"cudaFree", 300},
    {"cudaStreamCreate", 20},
    {"cudaStreamDestroy", 20},
    {"cudaMemGetInfo", 10},
    {"cudaGetDeviceProperties", 100},
    {"cudaGraphInstantiate", 30},  // what each kernel of a graph costs: graphs.cpp
    {"cudaGraphLaunch", 3},
    {"cudaGraphUpload", 3},
    {"cudaGraphExecDestroy", 10},
    {"cudaGetDevice", 0.1},
    {"cudaDeviceGetAttribute", 0.1},
    {"cudaSetDevice", 0.1},
    {"cudaStreamIsCapturing", 0.1},
    {"cudaStreamGet", 0.1},
    {"cudaPointerGetAttributes", 0.1},
    {"cudaThreadExchangeStreamCaptureMode", 0.1},
    {"cuda", 2},
    {"cudnnGetConvolutionForwardAlgorithm_v7", 50},
    {"cudnnGetConvolutionBackwardDataAlgorithm_v7", 50},
    {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", 50},
    {"cudnnGetConvolutionForwardWorkspaceSize", 10},
    {"cudnnGetConvolutionBackwardDataWorkspaceSize", 10},
    {"cudnnGetConvolutionBackwardFilterWorkspaceSize", 10},
    {"cudnn", 0.1},  // descriptors; what enqueues spends more itself
};
// cudnnCreate and cudnnDestroy begin the names of all descriptors' functions.
constexpr double kHandleMicroseconds = 1000;

constexpr double kMicrosecondsPerGib = 500;
// The share of a launch's time, measured on an H200, 2026-11-22.
constexpr double kCapturedShare = 0.6;
constexpr double kKernelLoadMicroseconds = 2000;
// 60 to 100 ms on an H200, cuDNN 9.19: cuBLASLt makes tables of its kernels for the type.
constexpr double kTablesMicroseconds = 80e3;

double costOf(std::string_view function) {
  if (function == "cudnnCreate" || function == "cudnnDestroy") return kHandleMicroseconds;
  for (const Rule& rule : kRules) {
    if (function.substr(0, rule.prefix.size()) == rule.prefix) return rule.microseconds;
  }
  return 0;
}

std::atomic<bool>& measuringCost() {
  static std::atomic<bool> on{settings().measuringCost};
  return on;
}

// Never torn down: clients launch kernels from static destructors.
struct Loaded {
  static Loaded& instance() {
    static Loaded* const loaded = new Loaded;
    return *loaded;
  }
  bool addKernel(int device, std::uint64_t kernel) {
    const std::lock_guard<std::mutex> lock(mutex);
    return kernels.emplace(device, kernel).second;
  }
  bool addTables(int dataType) {
    const std::lock_guard<std::mutex> lock(mutex);
    return tables.insert(dataType).second;
  }
  void clearKernels() {
    const std::lock_guard<std::mutex> lock(mutex);
    kernels.clear();
  }

  std::mutex mutex;
  std::set<std::pair<int, std::uint64_t>> kernels;
  std::set<int> tables;  ///< by type
};

}  // namespace

void hostSpends(double microseconds) {
  if (measuringCost()) thisThread().now += ticksFromMs(1e-3 * microseconds);
}

void hostLaunches(cudaStream_t stream, double microseconds) {
  if (!measuringCost()) return;
  bool captured = false;
  Machine::instance().inspectStream(
      stream, [&](const Stream& found) { captured = found.capturing.has_value(); });
  hostSpends(captured ? kCapturedShare * microseconds : microseconds);
}

void hostCalls(std::string_view function) {
  if (measuringCost()) hostSpends(costOf(function));
}

void hostMaps(std::size_t bytes) {
  hostSpends(kMicrosecondsPerGib * static_cast<double>(bytes) / (1 << 30));
}

void hostLoadsKernel(int device, std::uint64_t kernel) {
  if (measuringCost() && Loaded::instance().addKernel(device, kernel)) {
    hostSpends(kKernelLoadMicroseconds);
  }
}

void hostLoadsTables(int dataType) {
  if (Loaded::instance().addTables(dataType)) hostSpends(kTablesMicroseconds);
}

extern "C" {

void ucudnnSimulatorSetMeasuringCost(int on) {
  measuringCost() = on != 0;
  if (on != 0) Loaded::instance().clearKernels();
}

double ucudnnSimulatorHostClockMs() {
  return msFromTicks(thisThread().now);
}

}  // extern "C"

}  // namespace ucudnn::simulator
