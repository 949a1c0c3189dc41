// Host time that μ-cuDNN adds to cuDNN's calls. Run: ucudnn_hot_path_benchmark, on a GPU or under
// misc/with-simulator.
//   plannedCall:  overhead_ns <= 500: a plan of one kernel against the bare call, descriptors read
//                 at every call
//   splitCall:    planned_ns is one micro-batch of a split call, bare_ns the same cuDNN call alone
//   ownedCall:    overhead_ns of a whole split call in a workspace that μ-cuDNN owns
//   besideGraph:  owned split calls, device time included: bare_ns before another stream's capture,
//                 planned_ns while its graph is kept, later_ns after the graph is released
//   workspaceQuery, algorithmQuery, findQuery: answered from memory
//   create:       cudnnCreate
// Blocks of bare and of planned calls alternate, so that both meet the same machine; the counters
// are medians over the blocks. The device is waited for between blocks, outside of what is timed.
#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>
#include <ucudnn/ucudnn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "support/simulator.hpp"

// The legacy convolution API is marked deprecated in cuDNN 9; it is what is measured.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

// As many blocks as give a median that repeats within a few ns.
constexpr int kBlocks = 301;
// Calls in a block: many, for the clock; but the queue of a stream holds 1024 launches, and a full
// one stops the host.
constexpr int kCalls = 200;
constexpr int kSplitCalls = 20;

void check(int status, const char* call) {
  if (status == 0) return;
  std::cerr << call << " returned " << status << "\n";
  std::exit(1);
}
#define CHECK(call) check((call), #call)

/// A forward convolution that keeps the image's size, with everything that a client has for it.
class Convolution {
 public:
  Convolution(int batch, int channels, int filters, int image, int kernel, std::size_t limitBytes) {
    CHECK(cudnnCreate(&handle_));
    CHECK(cudnnCreateTensorDescriptor(&x_));
    CHECK(cudnnCreateFilterDescriptor(&w_));
    CHECK(cudnnCreateConvolutionDescriptor(&convolution_));
    CHECK(cudnnCreateTensorDescriptor(&y_));
    setBatch(batch, channels, filters, image);
    CHECK(cudnnSetFilter4dDescriptor(
        w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, filters, channels, kernel, kernel));
    const int pad = kernel / 2;
    CHECK(cudnnSetConvolution2dDescriptor(
        convolution_, pad, pad, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CHECK(cudnnSetConvolutionMathType(convolution_, CUDNN_FMA_MATH));
    const auto bytes = [](int a, int b, int c, int d) {
      return sizeof(float) * static_cast<std::size_t>(a) * static_cast<std::size_t>(b) *
             static_cast<std::size_t>(c) * static_cast<std::size_t>(d);
    };
    allocate(&xData_, bytes(batch, channels, image, image));
    allocate(&wData_, bytes(filters, channels, kernel, kernel));
    allocate(&yData_, bytes(batch, filters, image, image));
    workspaceBytes_ = limitBytes;
    allocate(&workspace_, limitBytes);
  }
  ~Convolution() {
    for (void* const data : {xData_, wData_, yData_, workspace_}) cudaFree(data);
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(convolution_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroy(handle_);
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  UcudnnHandle_t handle() const { return handle_; }
  cudnnHandle_t native() const { return handle_; }

  void setBatch(int batch, int channels, int filters, int image) {
    CHECK(cudnnSetTensor4dDescriptor(
        x_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, batch, channels, image, image));
    CHECK(cudnnSetTensor4dDescriptor(
        y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, batch, filters, image, image));
  }

  /// `Handle` decides: μ-cuDNN's overload or cuDNN's own function.
  template <typename Handle>
  void forward(Handle handle, cudnnConvolutionFwdAlgo_t algorithm) const {
    const float one = 1, zero = 0;
    CHECK(cudnnConvolutionForward(handle,
                                  &one,
                                  x_,
                                  xData_,
                                  w_,
                                  wData_,
                                  convolution_,
                                  algorithm,
                                  workspace_,
                                  workspaceBytes_,
                                  &zero,
                                  y_,
                                  yData_));
  }
  template <typename Handle>
  std::size_t workspaceSize(Handle handle, cudnnConvolutionFwdAlgo_t algorithm) const {
    std::size_t bytes = 0;
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(
        handle, x_, w_, convolution_, y_, algorithm, &bytes));
    return bytes;
  }
  template <typename Handle>
  cudnnConvolutionFwdAlgo_t heuristic(Handle handle) const {
    cudnnConvolutionFwdAlgoPerf_t first;
    int count = 0;
    CHECK(cudnnGetConvolutionForwardAlgorithm_v7(
        handle, x_, w_, convolution_, y_, 1, &count, &first));
    return first.algo;
  }
  template <typename Handle>
  cudnnConvolutionFwdAlgo_t find(Handle handle) const {
    cudnnConvolutionFwdAlgoPerf_t first;
    int count = 0;
    CHECK(
        cudnnFindConvolutionForwardAlgorithm(handle, x_, w_, convolution_, y_, 1, &count, &first));
    return first.algo;
  }

  std::vector<ucudnnMicroBatches_t> plan() const {
    ucudnnPlan_t plan;
    int count = 0;
    std::vector<ucudnnMicroBatches_t> steps(64);
    CHECK(ucudnnGetConvolutionPlan(handle_,
                                   UCUDNN_FORWARD,
                                   x_,
                                   w_,
                                   convolution_,
                                   y_,
                                   workspaceBytes_,
                                   &plan,
                                   static_cast<int>(steps.size()),
                                   &count,
                                   steps.data()));
    steps.resize(static_cast<std::size_t>(count));
    return steps;
  }

 private:
  static void allocate(void** data, std::size_t bytes) {
    CHECK(cudaMalloc(data, bytes));
    CHECK(cudaMemset(*data, 0, bytes));
  }

  UcudnnHandle_t handle_;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  void *xData_ = nullptr, *wData_ = nullptr, *yData_ = nullptr, *workspace_ = nullptr;
  std::size_t workspaceBytes_ = 0;
};

cudnnConvolutionFwdAlgo_t algorithmOf(const ucudnnMicroBatches_t& step) {
  const char* const kNames[] = {"IMPLICIT_GEMM",
                                "IMPLICIT_PRECOMP_GEMM",
                                "GEMM",
                                "DIRECT",
                                "FFT",
                                "FFT_TILING",
                                "WINOGRAD",
                                "WINOGRAD_NONFUSED"};  // cudnnConvolutionFwdAlgo_t
  const std::string kernel = step.kernel;
  const auto name =
      std::find(std::begin(kNames), std::end(kNames), kernel.substr(0, kernel.find('/')));
  return static_cast<cudnnConvolutionFwdAlgo_t>(name - std::begin(kNames));
}

/// So small that the device is done before the host: a batch of 2, 4 channels, 8x8.
struct TinyConvolution : Convolution {
  TinyConvolution() : Convolution(2, 4, 4, 8, 3, std::size_t{1} << 20) {
    CHECK(handle().setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::undivided));
    algorithm = algorithmOf(plan().front());
  }
  cudnnConvolutionFwdAlgo_t algorithm;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(),
                   values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

template <typename Call>
double nanosecondsPerCall(int calls, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
  CHECK(cudaDeviceSynchronize());
  return elapsed.count() / calls;
}

/// Alternates blocks of `bare` and `planned`; `parts`: how many bare calls a planned one stands
/// for.
template <typename Bare, typename Planned>
void compare(benchmark::State& state, int calls, int parts, Bare bare, Planned planned) {
  std::vector<double> bareNs, plannedNs;
  nanosecondsPerCall(calls, bare);  // warms up
  nanosecondsPerCall(calls, planned);
  for (auto _ : state) {
    bareNs.push_back(nanosecondsPerCall(calls, bare));
    plannedNs.push_back(nanosecondsPerCall(calls, planned) / parts);
    state.SetIterationTime(plannedNs.back() * 1e-9);
  }
  state.counters["bare_ns"] = median(bareNs);
  state.counters["planned_ns"] = median(plannedNs);
  state.counters["overhead_ns"] = median(plannedNs) - median(bareNs);
}

void plannedCall(benchmark::State& state) {
  const TinyConvolution tiny;
  ucudnnStatistics_t before, after;
  CHECK(ucudnnGetStatistics(&before));
  compare(
      state,
      kCalls,
      1,
      [&] { tiny.forward(tiny.native(), tiny.algorithm); },
      [&] { tiny.forward(tiny.handle(), tiny.algorithm); });
  CHECK(ucudnnGetStatistics(&after));
  if (after.undividedCalls - before.undividedCalls < kBlocks * kCalls)
    state.SkipWithError("the calls were not planned");
}

void workspaceQuery(benchmark::State& state) {
  const TinyConvolution tiny;
  compare(
      state,
      kCalls,
      1,
      [&] { tiny.workspaceSize(tiny.native(), tiny.algorithm); },
      [&] { tiny.workspaceSize(tiny.handle(), tiny.algorithm); });
}

void algorithmQuery(benchmark::State& state) {
  const TinyConvolution tiny;
  compare(
      state,
      kCalls,
      1,
      [&] { tiny.heuristic(tiny.native()); },
      [&] { tiny.heuristic(tiny.handle()); });
}

/// cuDNN's own measures every time: one call a block.
void findQuery(benchmark::State& state) {
  const TinyConvolution tiny;
  compare(
      state, 1, 1, [&] { tiny.find(tiny.native()); }, [&] { tiny.find(tiny.handle()); });
}

/// AlexNet's second convolution at N=32 under 32 MiB, which is split on a GPU and on the simulator.
void splitCall(benchmark::State& state) {
  constexpr int kChannels = 64, kFilters = 192, kImage = 27;
  Convolution whole(32, kChannels, kFilters, kImage, 5, std::size_t{32} << 20);
  Convolution part(32, kChannels, kFilters, kImage, 5, std::size_t{32} << 20);
  const std::vector<ucudnnMicroBatches_t> plan = whole.plan();
  if (plan.size() != 1 || plan.front().count < 2) {
    state.SkipWithError("the plan is not one of equal micro-batches");
    return;
  }
  const auto algorithm = algorithmOf(plan.front());
  part.setBatch(plan.front().batch, kChannels, kFilters, kImage);
  state.counters["micro_batches"] = plan.front().count;
  compare(
      state,
      kSplitCalls,
      plan.front().count,
      [&] { part.forward(part.native(), algorithm); },
      [&] { whole.forward(whole.handle(), algorithm); });
}

/// The same convolution with a workspace that μ-cuDNN owns; `bare_ns` is the split call with the
/// caller's.
void ownedCall(benchmark::State& state) {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  Convolution callers(32, 64, 192, 27, 5, kBytes);
  Convolution owned(32, 64, 192, 27, 5, kBytes);
  CHECK(owned.handle().setTotalWorkspaceSize(kBytes));
  const auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  compare(
      state,
      kSplitCalls,
      1,
      [&] { callers.forward(callers.handle(), algorithm); },
      [&] { owned.forward(owned.handle(), algorithm); });
}

/// A graph of the convolution on a stream of its own, with a handle of its own.
class CapturedConvolution {
 public:
  CapturedConvolution(std::size_t totalBytes, cudnnConvolutionFwdAlgo_t algorithm)
      : convolution_(32, 64, 192, 27, 5, totalBytes) {
    CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CHECK(cudnnSetStream(convolution_.handle(), stream_));
    CHECK(convolution_.handle().setTotalWorkspaceSize(totalBytes));
    CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    convolution_.forward(convolution_.handle(), algorithm);
    CHECK(cudaStreamEndCapture(stream_, &graph_));
    CHECK(cudaGraphInstantiateWithFlags(&exec_, graph_, 0));
    CHECK(cudaGraphLaunch(exec_, stream_));
    CHECK(cudaStreamSynchronize(stream_));
  }
  ~CapturedConvolution() {
    CHECK(cudaGraphExecDestroy(exec_));
    CHECK(cudaGraphDestroy(graph_));
    CHECK(convolution_.handle().releaseGraphs());
    CHECK(cudaStreamDestroy(stream_));
  }
  CapturedConvolution(const CapturedConvolution&) = delete;
  CapturedConvolution& operator=(const CapturedConvolution&) = delete;

 private:
  Convolution convolution_;
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

void besideGraph(benchmark::State& state) {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  const auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  Convolution eager(32, 64, 192, 27, 5, kBytes);
  CHECK(eager.handle().setTotalWorkspaceSize(kBytes));
  const auto call = [&] { eager.forward(eager.handle(), algorithm); };
  const auto blockNs = [&] {
    const auto begin = std::chrono::steady_clock::now();
    nanosecondsPerCall(kSplitCalls, call);
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - begin;
    return elapsed.count() / kSplitCalls;
  };
  const auto medianNs = [&] {
    blockNs();  // settles
    std::vector<double> times;
    for (int i = 0; i < kBlocks; ++i) times.push_back(blockNs());
    return median(times);
  };
  for (auto _ : state) {
    state.counters["bare_ns"] = medianNs();
    {
      const CapturedConvolution captured(kBytes, algorithm);
      state.counters["planned_ns"] = medianNs();
    }
    state.counters["later_ns"] = medianNs();
    state.SetIterationTime(state.counters["later_ns"].value * 1e-9);
  }
}

void create(benchmark::State& state) {
  const auto makeAndDestroy = [](auto handle) {
    CHECK(cudnnCreate(&handle));
    CHECK(cudnnDestroy(handle));
  };
  compare(
      state,
      1,
      1,
      [&] { makeAndDestroy(cudnnHandle_t()); },
      [&] { makeAndDestroy(UcudnnHandle_t()); });
}

BENCHMARK(plannedCall)->UseManualTime()->Iterations(kBlocks)->Unit(benchmark::kNanosecond);
BENCHMARK(splitCall)->UseManualTime()->Iterations(kBlocks)->Unit(benchmark::kNanosecond);
BENCHMARK(ownedCall)->UseManualTime()->Iterations(kBlocks)->Unit(benchmark::kNanosecond);
BENCHMARK(besideGraph)->UseManualTime()->Iterations(1)->Unit(benchmark::kNanosecond);
BENCHMARK(workspaceQuery)->UseManualTime()->Iterations(kBlocks)->Unit(benchmark::kNanosecond);
BENCHMARK(algorithmQuery)->UseManualTime()->Iterations(kBlocks)->Unit(benchmark::kNanosecond);
// Fewer: cuDNN's own take milliseconds on a GPU.
BENCHMARK(findQuery)->UseManualTime()->Iterations(11)->Unit(benchmark::kNanosecond);
BENCHMARK(create)->UseManualTime()->Iterations(11)->Unit(benchmark::kNanosecond);

}  // namespace

int main(int argc, char** argv) {
  ucudnn::test::setArithmetic(ucudnn::test::Arithmetic::kOff);  // on the simulator
  benchmark::AddCustomContext("simulated", ucudnn::test::onSimulator() ? "yes" : "no");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
