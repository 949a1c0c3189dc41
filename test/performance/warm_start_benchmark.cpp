// The time of planning in a process that finds everything in the database, and cuDNN's part of it.
// Run twice, on a GPU or under misc/with-simulator:
//   UCUDNN_DATABASE=FILE ucudnn_warm_start_benchmark LAYERS.csv [batch size [rest in ms]]
// Each of the list's convolutions is queried within 64 MiB, TF32, one after another, as a framework
// does that sets up a network; batch size 0: the list's. Another convolution goes before them,
// through cuDNN and then through us: with it cuDNN loads its libraries, as it does at the first
// query of any program. A rest before each query, as between the rows of `ucudnn bench`, leaves the
// caches to others.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/simulator.hpp"
#include "tool/convolution.hpp"

namespace ucudnn::test {
namespace {

using Clock = std::chrono::steady_clock;

double msSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

struct Calls {
  int count = 0;
  double ms = 0, longestMs = 0;
};
std::map<std::string, Calls> calls;
std::map<cudnnBackendDescriptor_t, cudnnBackendDescriptorType_t> types;
bool isPlanning = false;

/// Passes a call on to cuDNN, and notes what it takes.
template <typename... Arguments>
cudnnStatus_t ask(const std::string& what, const char* function, Arguments... arguments) {
  using Function = cudnnStatus_t (*)(Arguments...);
  const auto own = reinterpret_cast<Function>(dlsym(RTLD_NEXT, function));
  const auto begin = Clock::now();
  const cudnnStatus_t status = own(arguments...);
  const double ms = msSince(begin);
  if (!isPlanning) return status;
  Calls& noted = calls[what];
  ++noted.count;
  noted.ms += ms;
  noted.longestMs = std::max(noted.longestMs, ms);
  return status;
}

const char* whatIsFinalized(cudnnBackendDescriptor_t descriptor) {
  switch (types[descriptor]) {
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return "finalize: graphs";
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return "finalize: engines";
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return "finalize: configurations";
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return "finalize: execution plans";
    default:
      return "finalize: others";
  }
}

constexpr std::size_t kLimitBytes = std::size_t{64} << 20;
constexpr ucudnnOperation_t kOperations[] = {
    UCUDNN_FORWARD, UCUDNN_BACKWARD_DATA, UCUDNN_BACKWARD_FILTER};

tool::Layer otherLayer() {
  tool::Layer layer;
  layer.name = "other";
  layer.batch = 256;
  layer.inputChannels = 16;
  layer.outputChannels = 32;
  layer.size = {28, 28};
  layer.kernel = {3, 3};
  layer.pad = layer.stride = layer.dilation = {1, 1};
  return layer;
}

/// A network's convolutions, and tensors that are large enough for each.
struct Network {
  std::vector<tool::Convolution> convolutions;
  std::optional<tool::Tensors> tensors;
  tool::DeviceBuffer workspace{kLimitBytes};

  explicit Network(const std::vector<tool::Layer>& layers) {
    std::size_t xBytes = 0, wBytes = 0, yBytes = 0;
    for (const tool::Layer& layer : layers)
      for (const ucudnnOperation_t operation : kOperations) {
        const auto& added = convolutions.emplace_back(layer, operation, tool::Numerics{});
        xBytes = std::max(xBytes, added.xBytes());
        wBytes = std::max(wBytes, added.wBytes());
        yBytes = std::max(yBytes, added.yBytes());
      }
    tensors.emplace(xBytes, wBytes, yBytes, CUDNN_DATA_FLOAT);
    tool::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  /// A query; on a cudnnHandle_t it is cuDNN's own, and its heuristics' besides.
  template <typename Handle>
  double planningMs(const Handle& handle, const tool::Convolution& convolution) const {
    isPlanning = true;
    const auto begin = Clock::now();
    if constexpr (std::is_same_v<Handle, cudnnHandle_t>) tool::pickAlgorithm(handle, convolution);
    tool::findAlgorithms(handle, convolution, *tensors, workspace, 1);
    const double ms = msSince(begin);
    isPlanning = false;
    return ms;
  }
};

void planAll(const std::string& list, int batchSize, int restMs) {
  setArithmetic(Arithmetic::kOff);  // on the simulator
  const tool::Handles handles(nullptr);
  double otherMs = 0, cudnnMs = 0;
  const Network other({otherLayer()});
  for (const tool::Convolution& convolution : other.convolutions) {
    cudnnMs += other.planningMs(handles.native(), convolution);
    otherMs += other.planningMs(handles.ours(), convolution);
  }
  const Network network(tool::readLayers({list}, batchSize));
  calls.clear();
  double totalMs = 0, firstMs = 0;
  for (const tool::Convolution& convolution : network.convolutions) {
    std::this_thread::sleep_for(std::chrono::milliseconds(restMs));
    totalMs += network.planningMs(handles.ours(), convolution);
    if (firstMs == 0) firstMs = totalMs;
  }
  const ucudnnStatistics_t statistics = tool::statisticsNow();
  std::printf(
      "planning %.3f ms, the first of %zu queries %.3f; another convolution before them %.3f, by "
      "cuDNN itself %.3f; %lld kernels measured, %lld loaded%s\n",
      totalMs,
      network.convolutions.size(),
      firstMs,
      otherMs,
      cudnnMs,
      statistics.kernelsMeasured,
      statistics.kernelsLoaded,
      onSimulator() ? " (simulated)" : "");
  std::printf("%-48s %6s %9s %9s\n", "of it cuDNN's", "calls", "ms", "longest");
  for (const auto& [what, noted] : calls)
    std::printf("%-48s %6d %9.3f %9.3f\n", what.c_str(), noted.count, noted.ms, noted.longestMs);
}

}  // namespace
}  // namespace ucudnn::test

using ucudnn::test::ask;

// Before cuDNN's own in the loader's order: ucudnn's calls come here.
extern "C" {

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t x,
    cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm,
    size_t* bytes) {
  return ask(__func__, __func__, handle, x, w, convolution, y, algorithm, bytes);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle,
    cudnnFilterDescriptor_t w,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t x,
    cudnnConvolutionBwdDataAlgo_t algorithm,
    size_t* bytes) {
  return ask(__func__, __func__, handle, w, y, convolution, x, algorithm, bytes);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t x,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t convolution,
    cudnnFilterDescriptor_t w,
    cudnnConvolutionBwdFilterAlgo_t algorithm,
    size_t* bytes) {
  return ask(__func__, __func__, handle, x, y, convolution, w, algorithm, bytes);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t x,
    cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t y,
    int most,
    int* count,
    cudnnConvolutionFwdAlgoPerf_t* results) {
  return ask(__func__, __func__, handle, x, w, convolution, y, most, count, results);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle,
    cudnnFilterDescriptor_t w,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t x,
    int most,
    int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return ask(__func__, __func__, handle, w, y, convolution, x, most, count, results);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t x,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t convolution,
    cudnnFilterDescriptor_t w,
    int most,
    int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return ask(__func__, __func__, handle, x, y, convolution, w, most, count, results);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  const cudnnStatus_t status = ask(__func__, __func__, type, made);
  if (status == CUDNN_STATUS_SUCCESS) ucudnn::test::types[*made] = type;
  return status;
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnBackendFinalize(
    cudnnBackendDescriptor_t descriptor) {
  return ask(ucudnn::test::whatIsFinalized(descriptor), __func__, descriptor);
}
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s LAYERS.csv [batch size [rest in ms]]\n", argv[0]);
    return 2;
  }
  try {
    ucudnn::test::planAll(
        argv[1], argc > 2 ? std::atoi(argv[2]) : 0, argc > 3 ? std::atoi(argv[3]) : 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return 0;
}
