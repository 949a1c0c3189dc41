// One convolution with its tensors in pinned host memory, against tensors on the device and in
// managed memory. Run on a GPU: ucudnn_host_tensors_benchmark CASE MATH MIB [RUNS]
//   CASE: plane (1 x 2040 x 1024 x 1024, 3x3, 2040 filters), volume (1 x 64 x 256^3, 3x3x3, 64
//   filters), small (1 x 32 x 64 x 64: for the simulator); MATH: fma or tf32; MIB:
//   UCUDNN_DEVICE_MEMORY.
// Writes one JSON object: medians in ms, and what μ-cuDNN has predicted.
#include <cuda_runtime_api.h>
#include <ucudnn/ucudnn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/simulator.hpp"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

void check(bool isGood, const char* what, const char* why) {
  if (isGood) return;
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::exit(1);
}
#define CUDA(call) check((call) == cudaSuccess, #call, cudaGetErrorString(cudaPeekAtLastError()))
#define CUDNN(call)                                                            \
  do {                                                                         \
    const cudnnStatus_t status = (call);                                       \
    check(status == CUDNN_STATUS_SUCCESS, #call, cudnnGetErrorString(status)); \
  } while (false)

struct Case {
  std::vector<int> x, w;  ///< sizes
};

Case caseOf(const std::string& name) {
  if (name == "plane") return {{1, 2040, 1024, 1024}, {2040, 2040, 3, 3}};
  if (name == "volume") return {{1, 64, 256, 256, 256}, {64, 64, 3, 3, 3}};
  check(name == "small", name.c_str(), "is no case");
  return {{1, 32, 64, 64}, {32, 32, 3, 3}};
}

std::size_t bytesOf(const std::vector<int>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), sizeof(float), [](std::size_t all, int size) {
    return all * static_cast<std::size_t>(size);
  });
}

/// Where nothing is computed, large tensors are not touched: the machine may not have the memory.
bool isComputed() {
  return !ucudnn::test::onSimulator() ||
         ucudnn::test::detail::callSimulator<int>("ucudnnSimulatorComputesAll") != 0;
}

/// Random numbers, which repeat after 16 MiB.
void fill(void* to, std::size_t bytes) {
  if (!isComputed()) return;
  std::vector<float> numbers(std::size_t{4} << 20);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> between(-1, 1);
  for (float& number : numbers) number = between(random);
  for (std::size_t at = 0; at < bytes; at += numbers.size() * sizeof(float))
    std::memcpy(static_cast<char*>(to) + at,
                numbers.data(),
                std::min(bytes - at, numbers.size() * sizeof(float)));
}

/// x, w and y, all in one kind of memory.
struct Tensors {
  using Allocate = std::function<cudaError_t(void**, std::size_t)>;
  Tensors(const Case& sizes, const Allocate& allocate)
      : xBytes(bytesOf(sizes.x)), wBytes(bytesOf(sizes.w)) {
    CUDA(allocate(&x, xBytes));
    CUDA(allocate(&w, wBytes));
    CUDA(allocate(&y, xBytes));
  }
  std::size_t xBytes, wBytes;
  void *x = nullptr, *w = nullptr, *y = nullptr;
};

class Convolution {
 public:
  Convolution(const Case& sizes, bool isFma) {
    const int spatial = static_cast<int>(sizes.x.size()) - 2;
    std::vector<int> strides(sizes.x.size(), 1);
    for (std::size_t i = sizes.x.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes.x[i];
    const std::vector<int> ones(static_cast<std::size_t>(spatial), 1);
    CUDNN(cudnnCreateTensorDescriptor(&tensor_));
    CUDNN(cudnnSetTensorNdDescriptor(
        tensor_, CUDNN_DATA_FLOAT, spatial + 2, sizes.x.data(), strides.data()));
    CUDNN(cudnnCreateFilterDescriptor(&filter_));
    CUDNN(cudnnSetFilterNdDescriptor(
        filter_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, spatial + 2, sizes.w.data()));
    CUDNN(cudnnCreateConvolutionDescriptor(&convolution_));
    CUDNN(cudnnSetConvolutionNdDescriptor(convolution_,
                                          spatial,
                                          ones.data(),
                                          ones.data(),
                                          ones.data(),
                                          CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT));
    CUDNN(cudnnSetConvolutionMathType(convolution_, isFma ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH));
  }

  template <typename Handle>
  cudnnStatus_t run(Handle handle,
                    const Tensors& tensors,
                    cudnnConvolutionFwdAlgo_t algorithm,
                    void* workspace,
                    std::size_t workspaceBytes) const {
    const float one = 1, zero = 0;
    return cudnnConvolutionForward(handle,
                                   &one,
                                   tensor_,
                                   tensors.x,
                                   filter_,
                                   tensors.w,
                                   convolution_,
                                   algorithm,
                                   workspace,
                                   workspaceBytes,
                                   &zero,
                                   tensor_,
                                   tensors.y);
  }

  /// cuDNN's algorithms by its heuristics, the best first.
  std::vector<cudnnConvolutionFwdAlgoPerf_t> ranked(cudnnHandle_t handle) const {
    std::vector<cudnnConvolutionFwdAlgoPerf_t> all(8);
    int count = 0;
    CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(
        handle, tensor_, filter_, convolution_, tensor_, 8, &count, all.data()));
    all.resize(static_cast<std::size_t>(count));
    return all;
  }

 private:
  cudnnTensorDescriptor_t tensor_ = nullptr;
  cudnnFilterDescriptor_t filter_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
};

double onceMs(const std::function<void()>& call) {
  cudaEvent_t begin = nullptr, end = nullptr;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  CUDA(cudaEventRecord(begin, nullptr));
  call();
  CUDA(cudaEventRecord(end, nullptr));
  CUDA(cudaEventSynchronize(end));
  float ms = 0;
  CUDA(cudaEventElapsedTime(&ms, begin, end));
  CUDA(cudaEventDestroy(begin));
  CUDA(cudaEventDestroy(end));
  return ms;
}

double wallMs(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  CUDA(cudaDeviceSynchronize());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

template <typename Time>
double medianMs(int runs, Time time) {
  std::vector<double> all;
  for (int i = 0; i < runs; ++i) all.push_back(time());
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

void prefetch(const void* memory, std::size_t bytes, bool toDevice) {
#if CUDART_VERSION >= 13000
  cudaMemLocation place{};  // number 0 of its type
  place.type = toDevice ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost;
  CUDA(cudaMemPrefetchAsync(memory, bytes, place, 0, nullptr));
#else
  CUDA(cudaMemPrefetchAsync(memory, bytes, toDevice ? 0 : cudaCpuDeviceId, nullptr));
#endif
}

/// The largest difference at some places, over the largest value.
double difference(const Tensors& device, const Tensors& host) {
  constexpr std::size_t kBytes = 4096;
  std::vector<float> expected(kBytes / sizeof(float));
  std::mt19937_64 random(2);
  double most = 0, largest = 0;
  for (int i = 0; i < 500; ++i) {
    const std::size_t at = random() % (device.xBytes / kBytes) * kBytes;
    CUDA(cudaMemcpy(
        expected.data(), static_cast<const char*>(device.y) + at, kBytes, cudaMemcpyDeviceToHost));
    const auto* const found = reinterpret_cast<const float*>(static_cast<const char*>(host.y) + at);
    for (std::size_t j = 0; j < expected.size(); ++j) {
      most = std::max(most, std::abs(static_cast<double>(expected[j]) - found[j]));
      largest = std::max(largest, std::abs(static_cast<double>(expected[j])));
    }
  }
  return most / largest;
}

/// The log's last line about host memory.
std::string planIn(const std::string& file, double* predictedMs) {
  std::ifstream log(file);
  std::string plan;
  for (std::string line; std::getline(log, line);) {
    const std::size_t at = line.find(" on host memory: ");
    if (at == std::string::npos || line.find(" bytes, ") == std::string::npos) continue;
    plan = line.substr(at + std::strlen(" on host memory: "));
    const std::size_t number = plan.rfind("bytes, ");
    *predictedMs = std::strtod(plan.c_str() + number + std::strlen("bytes, "), nullptr);
  }
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  check(argc >= 4, "usage", "ucudnn_host_tensors_benchmark CASE MATH MIB [RUNS]");
  const std::string name = argv[1], math = argv[2];
  const std::size_t budget = std::strtoull(argv[3], nullptr, 10) << 20;
  const int runs = argc > 4 ? std::atoi(argv[4]) : 3;
  const std::string log = "/tmp/ucudnn_host_tensors.log";
  std::remove(log.c_str());
  setenv("UCUDNN_LOG_FILE", log.c_str(), 1);
  setenv("UCUDNN_LOG_LEVEL", "info", 1);
  setenv("UCUDNN_BENCHMARK_SHARE", "always", 1);
  const Case sizes = caseOf(name);
  const Convolution convolution(sizes, math == "fma");
  UcudnnHandle_t ours;
  CUDNN(cudnnCreate(&ours));
  CUDNN(ours.setDeviceMemory(budget));
  cudnnHandle_t native = nullptr;
  CUDNN(cudnnCreate(&native));
  cudaDeviceProp properties{};
  CUDA(cudaGetDeviceProperties(&properties, 0));

  const Tensors pinned(
      sizes, [](void** memory, std::size_t bytes) { return cudaMallocHost(memory, bytes); });
  fill(pinned.x, pinned.xBytes);
  fill(pinned.w, pinned.wBytes);
  const auto runOurs = [&] {
    CUDNN(convolution.run(
        ours, pinned, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, nullptr, 0));
  };
  const double firstMs = wallMs(runOurs);
  const double oursMs = medianMs(runs, [&] { return onceMs(runOurs); });
  double predictedMs = 0;
  const std::string plan = planIn(log, &predictedMs);

  std::size_t free = 0, total = 0;
  CUDA(cudaMemGetInfo(&free, &total));
  const Tensors device(sizes,
                       [](void** memory, std::size_t bytes) { return cudaMalloc(memory, bytes); });
  const double inMs = onceMs([&] {
    CUDA(cudaMemcpyAsync(device.x, pinned.x, pinned.xBytes, cudaMemcpyHostToDevice, nullptr));
    CUDA(cudaMemcpyAsync(device.w, pinned.w, pinned.wBytes, cudaMemcpyHostToDevice, nullptr));
  });
  double inCoreMs = 0;
  cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  std::size_t workspaceBytes = 0;
  void* workspace = nullptr;
  std::size_t most = 0;
  CUDA(cudaMemGetInfo(&free, &total));
  for (const auto& entry : convolution.ranked(native))
    if (entry.status == CUDNN_STATUS_SUCCESS && entry.memory < free / 10 * 9)
      most = std::max(most, entry.memory);
  if (most > 0) CUDA(cudaMalloc(&workspace, most));
  int tried = 0;
  for (const auto& entry : convolution.ranked(native)) {
    if (entry.status != CUDNN_STATUS_SUCCESS || entry.memory > most || tried == 3) continue;
    if (convolution.run(native, device, entry.algo, workspace, entry.memory) !=
        CUDNN_STATUS_SUCCESS)
      continue;
    ++tried;
    const double ms = onceMs(
        [&] { CUDNN(convolution.run(native, device, entry.algo, workspace, entry.memory)); });
    if (inCoreMs > 0 && ms >= inCoreMs) continue;
    inCoreMs = ms;
    algorithm = entry.algo;
    workspaceBytes = entry.memory;
  }
  const auto runInCore = [&] {
    CUDNN(convolution.run(native, device, algorithm, workspace, workspaceBytes));
  };
  inCoreMs = medianMs(runs, [&] { return onceMs(runInCore); });
  const double error = isComputed() ? difference(device, pinned) : 0;
  const double outMs = onceMs([&] {
    CUDA(cudaMemcpyAsync(pinned.y, device.y, pinned.xBytes, cudaMemcpyDeviceToHost, nullptr));
  });
  for (void* memory : {device.x, device.w, device.y}) CUDA(cudaFree(memory));

  const Tensors managed(sizes, [](void** memory, std::size_t bytes) {
    return cudaMallocManaged(memory, bytes, cudaMemAttachGlobal);
  });
  fill(managed.x, pinned.xBytes);
  fill(managed.w, pinned.wBytes);
  fill(managed.y, pinned.xBytes);
  const auto runManaged = [&](bool prefetches) {
    for (void* memory : {managed.x, managed.y}) prefetch(memory, managed.xBytes, false);
    prefetch(managed.w, managed.wBytes, false);
    CUDA(cudaDeviceSynchronize());
    return wallMs([&] {
      if (prefetches) {
        prefetch(managed.x, managed.xBytes, true);
        prefetch(managed.w, managed.wBytes, true);
        prefetch(managed.y, managed.xBytes, true);
      }
      CUDNN(convolution.run(native, managed, algorithm, workspace, workspaceBytes));
      prefetch(managed.y, managed.xBytes, false);
    });
  };
  const double prefetchedMs = medianMs(runs, [&] { return runManaged(true); });
  const double managedMs = medianMs(runs, [&] { return runManaged(false); });

  std::printf(
      "{\"case\": \"%s\", \"math\": \"%s\", \"device\": \"%s\", \"cudnn\": %zu,\n"
      " \"device_memory_bytes\": %zu, \"plan\": \"%s\",\n"
      " \"first_call_ms\": %.3f, \"host_tensors_ms\": %.3f, \"predicted_ms\": %.3f,\n"
      " \"in_core_ms\": %.3f, \"in_core_algorithm\": %d, \"in_core_workspace_bytes\": %zu,\n"
      " \"copy_in_ms\": %.3f, \"copy_out_ms\": %.3f, \"difference\": %.3g,\n"
      " \"managed_prefetched_ms\": %.3f, \"managed_ms\": %.3f}\n",
      name.c_str(),
      math.c_str(),
      properties.name,
      cudnnGetVersion(),
      budget,
      plan.c_str(),
      firstMs,
      oursMs,
      predictedMs,
      inCoreMs,
      static_cast<int>(algorithm),
      workspaceBytes,
      inMs,
      outMs,
      error,
      prefetchedMs,
      managedMs);
  return error < 1e-2 ? 0 : 1;
}
