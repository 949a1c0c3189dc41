// The N-th CUDA, cuDNN or SQLite call fails, for every N: the result is correct, or cuDNN's own
// error; no leak, crash or hang.
#include <regex>

#include "../support/simulator.hpp"
#include "../support/skips.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

class FaultTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (IsSkipped()) return;
    if (!onSimulator()) GTEST_SKIP() << "only the simulator makes calls fail";
  }
};

/// Objects that must be as before. Descriptors are left out: those of plans stay with the process.
struct Live {
  std::int64_t handles = liveHandles("cudnnHandle");
  std::int64_t streams = liveHandles("stream");
  std::int64_t events = liveHandles("event");
  std::int64_t graphs = liveHandles("graph") + liveHandles("graphExec");
  std::size_t bytes = liveBytes(0);

  bool operator==(const Live& other) const {
    return handles == other.handles && streams == other.streams && events == other.events &&
           graphs == other.graphs && bytes == other.bytes;
  }
};
std::ostream& operator<<(std::ostream& stream, const Live& live) {
  return stream << live.handles << " handles, " << live.streams << " streams, " << live.events
                << " events, " << live.graphs << " graphs, " << live.bytes << " bytes";
}

/// A convolution for each operation, with the right result; what they hold is made before any call
/// is made to fail.
class Tasks {
 public:
  /// `calls`: how often each is called, one after another.
  explicit Tasks(const ConvolutionCase& parameters, int calls = 1)
      : calls_(calls), workspace_(std::size_t{4} << 20) {
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    cudnnHandle_t native = nullptr;
    EXPECT_CUDNN(cudnnCreate(&native));
    for (const ucudnnOperation_t operation : kOperations) {
      convolutions_.push_back(std::make_unique<Convolution>(parameters));
      Convolution& convolution = *convolutions_.back();
      original_.push_back(convolution.output(operation).read());
      for (int i = 0; i < calls; ++i)
        convolution.output(operation).write(
            convolution.undivided(native, operation, 0, 1, kBeta).value());
      expected_.push_back(convolution.output(operation).read());
    }
    EXPECT_CUDNN(cudnnDestroy(native));
  }
  ~Tasks() { EXPECT_CUDA(cudaStreamDestroy(stream_)); }
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  /// A client's calls from the handle's creation to its end; the n-th call fails (0: none). Returns
  /// how many calls were made.
  std::int64_t run(std::int64_t n) {
    for (const ucudnnOperation_t operation : kOperations)
      convolutions_[operation]->output(operation).write(original_[operation]);
    const std::int64_t before = callCount();
    failCall(n);
    UcudnnHandle_t handle;
    const bool created = cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS;
    const bool onStream = created && cudnnSetStream(handle, stream_) == CUDNN_STATUS_SUCCESS;
    std::vector<bool> succeeded;
    for (const ucudnnOperation_t operation : kOperations) {
      succeeded.push_back(onStream && runOperation(handle, operation));
      if (!onStream || callCount() - before < n) continue;
      cudaStream_t stream = nullptr;
      EXPECT_CUDNN(cudnnGetStream(handle, &stream));
      EXPECT_EQ(stream_, stream) << "not the client's any more";
    }
    // As in CUDA, a destruction that reports an error has still taken place.
    if (created) static_cast<void>(cudnnDestroy(handle));
    const std::int64_t calls = callCount() - before;
    failCall(0);
    EXPECT_TRUE(created || handle == nullptr);
    cudaGetLastError();  // where the failed call was the client's own
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(cudaStreamCaptureModeGlobal, mode) << "the thread's mode was changed";
    for (const ucudnnOperation_t operation : kOperations) {
      EXPECT_TRUE(n != 0 || succeeded[operation]) << toText(operation);
      if (!succeeded[operation]) continue;
      const Convolution& convolution = *convolutions_[operation];
      EXPECT_LE(distance(convolution.geometry(operation),
                         convolutions_[operation]->output(operation).read(),
                         expected_[operation]),
                1e-6)
          << toText(operation);
    }
    return calls;
  }

 private:
  // Not 0: what a micro-batch has added must not be added again when a later one fails.
  static constexpr double kBeta = 1;

  /// False: a call failed, with one of cuDNN's errors.
  bool runOperation(UcudnnHandle_t handle, ucudnnOperation_t operation) {
    Convolution& convolution = *convolutions_[operation];
    setArithmetic(Arithmetic::kOff);  // only times are wanted of a benchmark
    std::vector<Performance> results;
    std::size_t bytes = 0;
    const bool answered =
        convolution.query(handle, operation, Query::kGet, 1, &results) == CUDNN_STATUS_SUCCESS &&
        convolution.workspaceSize(handle, operation, results.at(0).algorithm, &bytes) ==
            CUDNN_STATUS_SUCCESS;
    setArithmetic(Arithmetic::kFull);
    if (!answered) return false;
    EXPECT_LE(bytes, workspace_.bytes());
    for (int i = 0; i < calls_; ++i)
      if (convolution.run(
              handle, operation, results.at(0).algorithm, {workspace_.get(), bytes}, 1, kBeta) !=
          CUDNN_STATUS_SUCCESS)
        return false;
    return true;
  }

  std::vector<std::unique_ptr<Convolution>> convolutions_;
  std::vector<std::vector<char>> original_, expected_;
  const int calls_;
  cudaStream_t stream_ = nullptr;
  DeviceBuffer workspace_;
};

ConvolutionCase smallCase() {
  ConvolutionCase result;
  result.batch = 4;
  result.channels = result.filters = 4;
  result.input = {6, 6};
  return result;
}

// Everything is known and split; what is made to fail is a client's ordinary run.
TEST_F(FaultTest, AnyCallOfAPlannedRunMayFail) {
  const ForcedSplits forced({smallCase()});
  Tasks tasks(smallCase());
  const std::int64_t calls = tasks.run(0);
  const long long splitBefore = statistics().splitCalls;
  const Live before;
  for (std::int64_t n = 1; n <= calls + 1; ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
    tasks.run(n);
    EXPECT_EQ(before, Live());
  }
  EXPECT_LT(splitBefore, statistics().splitCalls);
  tasks.run(0);
}

// Engines: each call makes a variant pack. A failed query may lead to one more plan, which stays
// with the process, and in which round depends on the time: a leak is left by each round.
class EngineFaultTest : public FaultTest {
 protected:
  static void failEachCall(const ConvolutionCase& parameters);
  static constexpr int kMostRounds = 5;
  /// Every kernel's name has it.
  static void expectPlanned(const ConvolutionCase& parameters, const std::string& kernel);

 private:
  const EnvironmentGuard kernels_{"UCUDNN_KERNELS", "engines"};
};

void EngineFaultTest::expectPlanned(const ConvolutionCase& parameters, const std::string& kernel) {
  const Handles handles;
  for (const ucudnnOperation_t operation : kOperations) {
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    ASSERT_CUDNN(Convolution(parameters)
                     .plan(handles.ours, operation, std::size_t{4} << 20, &plan, &entries));
    for (const ucudnnMicroBatches_t& entry : entries)
      EXPECT_NE(std::string(entry.kernel).find(kernel), std::string::npos) << entry.kernel;
  }
}

void EngineFaultTest::failEachCall(const ConvolutionCase& parameters) {
  Tasks tasks(parameters);
  const std::int64_t calls = tasks.run(0);
  const long long splitBefore = statistics().splitCalls;
  const Live before;
  const auto failEach = [&] {
    for (std::int64_t n = 1; n <= calls + 1; ++n) {
      SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
      tasks.run(n);
      EXPECT_EQ(before, Live());
    }
    return liveHandles("cudnnBackendDescriptor");
  };
  std::int64_t last = failEach(), live = failEach();
  EXPECT_GT(last, 0);
  for (int rounds = 2; rounds < kMostRounds && live != last; ++rounds) {
    last = live;
    live = failEach();
  }
  EXPECT_EQ(last, live);
  EXPECT_LT(splitBefore, statistics().splitCalls);
}

TEST_F(EngineFaultTest, AnyCallOfAPlannedRunMayFail) {
  const ForcedSplits forced({smallCase()});
  failEachCall(smallCase());
}

// Beta is 1: a tile that has been added must not be added again.
TEST_F(EngineFaultTest, AnyCallOfAPlannedRunOfTilesMayFail) {
  ConvolutionCase parameters = smallCase();
  parameters.filters = 8;
  const ForcedSplits forced({parameters});
  forceTiles(forced.database());
  ASSERT_NO_FATAL_FAILURE(expectPlanned(parameters, "_tiles=2"));
  failEachCall(parameters);
}

// Beta is 1 again; what blocks compute is added to the client's output at the end.
TEST_F(EngineFaultTest, AnyCallOfAPlannedRunOfBlocksMayFail) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const int step : {1, 2}) {
    SCOPED_TRACE("step " + std::to_string(step));
    ConvolutionCase parameters = smallCase();
    parameters.math = CUDNN_DEFAULT_MATH;
    parameters.filters = 12;
    parameters.stride = {step, step};
    const ForcedSplits forced({parameters});
    forceKernels(forced.database(), "_blocks=4", std::size_t{1} << 20);
    ASSERT_NO_FATAL_FAILURE(expectPlanned(parameters, "_blocks=4"));
    failEachCall(parameters);
  }
}

// The first call is enqueued, the second captured, the others launched.
TEST_F(FaultTest, AnyCallOfAReplayedRunMayFail) {
  const ForcedSplits forced({smallCase()});
  Tasks tasks(smallCase(), 4);
  const long long replayedBefore = statistics().replayedCalls;
  const std::int64_t calls = tasks.run(0);
  EXPECT_EQ(replayedBefore + 9, statistics().replayedCalls);
  const Live before;
  for (std::int64_t n = 1; n <= calls + 1; ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
    tasks.run(n);
    EXPECT_EQ(before, Live());
    EXPECT_EQ(0, statistics().graphs + statistics().graphBytes);
  }
  tasks.run(0);
}

/// Nothing is known: the benchmark's calls are among those that fail, and the library works again
/// afterwards. Each run has a problem of its own. Every `step`-th call is tried.
void expectFirstRunsSurvive(const char* kernels, std::int64_t step) {
  const TemporaryDirectory directory;
  const EnvironmentGuard settings({{"UCUDNN_DATABASE", directory.file("measurements.db")},
                                   {"UCUDNN_KERNELS", kernels},
                                   {"UCUDNN_BATCH_SIZE_POLICY", "undivided"}});
  ConvolutionCase parameters = smallCase();
  parameters.batch = 2;
  for (std::int64_t n = 1;; n += step) {
    SCOPED_TRACE("call " + std::to_string(n));
    ++parameters.batchGap;
    Tasks tasks(parameters);
    const Live before;
    const bool reached = tasks.run(n) >= n;
    EXPECT_EQ(before, Live());
    if (!reached) break;
    if (n % 16 == 0) tasks.run(0);
  }
}

TEST_F(FaultTest, AnyCallOfAFirstRunMayFail) {
  expectFirstRunsSurvive("legacy", 1);
}

// Descriptors of engines, and their checks, are thousands of calls, most of which differ in
// nothing.
TEST_F(FaultTest, AnyCallOfAFirstRunWithEnginesMayFail) {
  expectFirstRunsSurvive("all", 47);
}

// A process's very first calls, too: the N-th of all that a small client makes.
TEST_F(FaultTest, AnyCallOfAProcessMayFail) {
  const ForcedSplits forced({smallCase()});
  const auto run = [](std::int64_t n) {
    return runClient({"run", smallCase().serialized()},
                     {{"UCUDNN_SIMULATOR_FAIL_CALL", std::to_string(n)}});
  };
  ASSERT_EQ(0, run(0).status);
  int failures = 0;
  for (std::int64_t n = 1;; ++n) {
    SCOPED_TRACE("call " + std::to_string(n));
    const ChildResult child = run(n);
    EXPECT_TRUE(child.status == 0 || child.status == 3) << child.status << ": " << child.output;
    if (child.status != 0) ++failures;
    if (child.output.find("fewer calls") != std::string::npos) break;
    ASSERT_LT(n, 2000) << "the client says when it made fewer calls";
  }
  EXPECT_LT(0, failures);
}

// SQLite's failures reach no caller: at most a measurement is made again.
TEST_F(FaultTest, AnyCallIntoSqliteMayFail) {
  const TemporaryDirectory directory;
  long calls = 1;
  for (long n = 0; n <= calls; ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
    const ChildResult child =
        runClient({"run", smallCase().serialized()},
                  {{"UCUDNN_DATABASE", directory.file(std::to_string(n) + ".db")},
                   {"UCUDNN_LOG_LEVEL", "off"},
                   {"UCUDNN_SQLITE_FAIL_CALL", std::to_string(n)},
                   {"UCUDNN_SQLITE_COUNT_CALLS", "1"},
                   {"LD_PRELOAD", UCUDNN_SQLITE_FAULT_LIBRARY},
                   // Ours comes before a sanitizer's library.
                   {"ASAN_OPTIONS", "verify_asan_link_order=0"}});
    EXPECT_EQ(0, child.status) << child.output;
    std::smatch match;
    ASSERT_TRUE(std::regex_search(child.output, match, std::regex("sqlite calls: (\\d+)")));
    if (n == 0) calls = std::stol(match[1]);
  }
  EXPECT_LT(10, calls);
}

}  // namespace
}  // namespace ucudnn::test
