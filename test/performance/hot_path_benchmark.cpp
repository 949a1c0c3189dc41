// Host time that μ-cuDNN adds to cuDNN's calls. Run: ucudnn_hot_path_benchmark, on a GPU or under
// misc/with-simulator.
//   plannedCall:  overhead_ns <= 500 (legacy kernels): a plan of one kernel that is not replayed
//                 against the bare call of the algorithm that it names, descriptors read at every
//                 call; of a first handle and of one behind eight
//   splitCall:    a split call against its micro-batches as bare calls, for one micro-batch; not
//                 with engines (UCUDNN_KERNELS=legacy), which no bare legacy call runs
//   ownedCall:    overhead_ns of a call in a workspace that μ-cuDNN owns over one in the caller's
//   besideGraph:  owned calls, device time included: bare_ns before another stream's capture,
//                 planned_ns while its graph is kept, later_ns after the graph is released
//   workspaceQuery, algorithmQuery, findQuery: answered from memory
//   create:       cudnnCreate
// Blocks of bare and of planned calls alternate, so that both meet the same machine; the counters
// are medians over the blocks. The device is waited for between blocks, outside of what is timed.
#include <memory>

#include "convolution.hpp"

namespace ucudnn::test {
namespace {

// As many blocks as give a median that repeats within a few ns.
constexpr int kBlocks = 301;
// Calls in a block: many, for the clock; but the queue of a stream holds 1024 launches, and a full
// one stops the host.
constexpr int kCalls = 200;
constexpr int kSplitCalls = 20;

/// So small that the device is done before the host: a batch of 2, 4 channels, 8x8.
struct TinyConvolution : Convolution {
  TinyConvolution() : Convolution(2, 4, 4, 8, 3, std::size_t{1} << 20) {
    CHECK(handle().setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::undivided));
    plan();  // else the first answers are cuDNN's own, and nothing is planned
    algorithm = heuristic(handle());
  }
  cudnnConvolutionFwdAlgo_t algorithm;
};

/// With so many handles made before as the argument says.
void plannedCall(benchmark::State& state) {
  std::vector<std::unique_ptr<const TinyConvolution>> earlier;
  for (int i = 0; i < state.range(0); ++i) earlier.push_back(std::make_unique<TinyConvolution>());
  const TinyConvolution tiny;
  CHECK(tiny.handle().setGraphMemory(0));
  ucudnnStatistics_t before, after;
  before.size = after.size = sizeof(ucudnnStatistics_t);
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

std::unique_ptr<const Convolution> alexnetConv2(int batch) {
  auto convolution = std::make_unique<const Convolution>(batch, 64, 192, 27, 5, 64u << 20);
  convolution->setMath(CUDNN_DEFAULT_MATH);
  return convolution;
}

/// AlexNet's second convolution at N=256 under 64 MiB, not replayed. On an H200 as on the simulator
/// legacy kernels split it (misc/results/replay_legacy_h200.json).
void splitCall(benchmark::State& state) {
  const auto whole = alexnetConv2(256);
  CHECK(whole->handle().setGraphMemory(0));
  const std::vector<ucudnnMicroBatches_t> plan = whole->plan();
  struct Part {
    std::unique_ptr<const Convolution> convolution;
    cudnnConvolutionFwdAlgo_t algorithm;
    int count;
  };
  std::vector<Part> parts;
  for (const ucudnnMicroBatches_t& step : plan) {
    const auto algorithm = algorithmOf(step);
    if (!algorithm) return state.SkipWithError("the plan has engines");
    parts.push_back({alexnetConv2(step.batch), *algorithm, step.count});
  }
  if (microBatchesOf(plan) < 2) return state.SkipWithError("the call is not split");
  state.counters["micro_batches"] = microBatchesOf(plan);
  const auto named = whole->heuristic(whole->handle());
  compare(
      state,
      kSplitCalls,
      microBatchesOf(plan),
      [&] {
        for (const Part& part : parts)
          for (int i = 0; i < part.count; ++i)
            part.convolution->forward(part.convolution->native(), part.algorithm);
      },
      [&] { whole->forward(whole->handle(), named); });
}

/// AlexNet's second convolution at N=32 with a workspace that μ-cuDNN owns; `bare_ns` is the call
/// with the caller's.
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

BENCHMARK(plannedCall)
    ->Arg(0)
    ->Arg(8)
    ->UseManualTime()
    ->Iterations(kBlocks)
    ->Unit(benchmark::kNanosecond);
BENCHMARK(splitCall)->UseManualTime()->Iterations(kBlocks)->Unit(benchmark::kNanosecond);
BENCHMARK(ownedCall)->UseManualTime()->Iterations(kBlocks)->Unit(benchmark::kNanosecond);
BENCHMARK(besideGraph)->UseManualTime()->Iterations(1)->Unit(benchmark::kNanosecond);
BENCHMARK(workspaceQuery)->UseManualTime()->Iterations(kBlocks)->Unit(benchmark::kNanosecond);
BENCHMARK(algorithmQuery)->UseManualTime()->Iterations(kBlocks)->Unit(benchmark::kNanosecond);
// Fewer: cuDNN's own take milliseconds on a GPU.
BENCHMARK(findQuery)->UseManualTime()->Iterations(11)->Unit(benchmark::kNanosecond);
BENCHMARK(create)->UseManualTime()->Iterations(11)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace ucudnn::test

int main(int argc, char** argv) {
  return ucudnn::test::runBenchmarks(argc, argv);
}
