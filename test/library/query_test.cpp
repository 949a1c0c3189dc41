// Queries and their perfResults: misc/docs/CLIENTS.md, "At run time", 10, 11, 13, 15, 16.
#include <algorithm>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

/// A convolution whose first answer is a split plan.
class QueryTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (IsSkipped()) return;
    static int tests = 0;
    const ConvolutionCase own = fftCase(128 + ++tests);
    forced_.emplace(std::vector<ConvolutionCase>{own});
    handles_.emplace();
    convolution_.emplace(own);
    memory_.emplace(kLimit);
  }

  std::vector<Performance> ask(ucudnnOperation_t operation, Query how, int requested) {
    std::vector<Performance> results;
    EXPECT_CUDNN(convolution_->query(
        handles_->ours, operation, how, requested, &results, {memory_->get(), memory_->bytes()}));
    return results;
  }

  std::optional<ForcedSplits> forced_;
  std::optional<Handles> handles_;
  std::optional<Convolution> convolution_;
  std::optional<DeviceBuffer> memory_;
};

TEST_F(QueryTest, PerfResultsAreComplete) {
  for (const ucudnnOperation_t operation : kOperations)
    for (const Query how : kQueries)
      for (const int requested : {1, 2, 3, 16}) {
        SCOPED_TRACE(std::string(toText(operation)) + ", " + std::to_string(requested));
        const auto results = ask(operation, how, requested);
        ASSERT_FALSE(results.empty());
        for (const Performance& entry : results) {
          EXPECT_EQ(CUDNN_STATUS_SUCCESS, entry.status);
          EXPECT_LT(0, entry.time);
          EXPECT_EQ(0U, entry.memory % 512);
          EXPECT_EQ(CUDNN_FMA_MATH, entry.mathType);
          EXPECT_TRUE(entry.determinism == CUDNN_DETERMINISTIC ||
                      entry.determinism == CUDNN_NON_DETERMINISTIC);
        }
        if (requested == 1) continue;
        EXPECT_TRUE(std::any_of(results.begin(), results.end(), [](const Performance& entry) {
          return entry.memory == 0;
        })) << "no entry that needs no memory";
      }
}

TEST_F(QueryTest, FirstAlgorithmIsTheSameWhenAskedAgain) {
  for (const ucudnnOperation_t operation : kOperations) {
    const int first = ask(operation, Query::kGet, 1).at(0).algorithm;
    for (const Query how : {Query::kGet, Query::kFind, Query::kGet})
      for (const int requested : {1, 8})
        EXPECT_EQ(first, ask(operation, how, requested).at(0).algorithm) << toText(operation);
  }
}

TEST_F(QueryTest, EachAnswerIsValidUndividedWithinItsMemory) {
  for (const ucudnnOperation_t operation : kOperations)
    for (const Query how : kQueries)
      for (const Performance& entry : ask(operation, how, 16)) {
        SCOPED_TRACE(std::string(toText(operation)) + ", algorithm " +
                     std::to_string(entry.algorithm) + " in " + std::to_string(entry.memory));
        std::size_t bytes = 0;
        ASSERT_CUDNN(
            convolution_->workspaceSize(handles_->native, operation, entry.algorithm, &bytes));
        EXPECT_LE(bytes, entry.memory);
        EXPECT_CUDNN(convolution_->run(
            handles_->native, operation, entry.algorithm, {memory_->get(), entry.memory}));
      }
}

TEST_F(QueryTest, MathTypeSetAfterTheQueryKeepsThePlan) {
  setArithmetic(Arithmetic::kOff);  // numbers do not matter here
  for (const cudnnMathType_t math : {CUDNN_FMA_MATH,
                                     CUDNN_DEFAULT_MATH,
                                     CUDNN_TENSOR_OP_MATH,
                                     CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION})
    for (const ucudnnOperation_t operation : kOperations) {
      ASSERT_CUDNN(cudnnSetConvolutionMathType(convolution_->convDesc(), math));
      const Performance first = ask(operation, Query::kGet, 1).at(0);
      const auto use = [&] {
        std::size_t bytes = 0;
        EXPECT_CUDNN(
            convolution_->workspaceSize(handles_->ours, operation, first.algorithm, &bytes));
        EXPECT_LE(bytes, first.memory);
        EXPECT_CUDNN(convolution_->run(
            handles_->ours, operation, first.algorithm, {memory_->get(), first.memory}));
      };
      use();
      const ucudnnStatistics_t before = statistics();
      ASSERT_CUDNN(cudnnSetConvolutionMathType(convolution_->convDesc(), first.mathType));
      use();
      EXPECT_EQ(before.kernelsMeasured, statistics().kernelsMeasured) << toText(operation);
      EXPECT_EQ(before.bypassedCalls, statistics().bypassedCalls);
      EXPECT_EQ(before.plans, statistics().plans) << toText(operation);
    }
}

TEST_F(QueryTest, AnsweredQueryMeasuresNothingAgain) {
  const auto askAll = [&](UcudnnHandle_t handle) {
    for (const ucudnnOperation_t operation : kOperations) {
      std::vector<Performance> results;
      ASSERT_CUDNN(convolution_->query(handle, operation, Query::kGet, 1, &results));
      std::size_t bytes = 0;
      ASSERT_CUDNN(convolution_->workspaceSize(handle, operation, results.at(0).algorithm, &bytes));
    }
  };
  askAll(handles_->ours);
  const ucudnnStatistics_t before = statistics();
  const auto timings = [] {
    return callCount("cudaEventRecord") + callCount("cudaMalloc") +
           callCount("cudnnConvolutionForward");
  };
  const auto timingsBefore = timings();
  for (int iteration = 0; iteration < 6; ++iteration) askAll(handles_->ours);
  const Handles others;  // a handle for each problem, as DeepBench has it
  askAll(others.ours);
  EXPECT_EQ(timingsBefore, timings());
  EXPECT_EQ(before.kernelsMeasured, statistics().kernelsMeasured);
  EXPECT_EQ(before.kernelsLoaded, statistics().kernelsLoaded);
  EXPECT_EQ(before.plans, statistics().plans);
}

TEST_F(QueryTest, FindExMeasuresInTheGivenMemory) {
  ConvolutionCase unknown = fftCase(16);  // not in the database
  unknown.input = {4, 4};
  Convolution convolution(unknown);
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    convolution.fill();
    const auto x = convolution.x().read();
    const auto w = convolution.w().read();
    const auto y = convolution.y().read();
    const long long measuredBefore = statistics().kernelsMeasured;
    const std::int64_t mallocsBefore = callCount("cudaMalloc");
    constexpr std::size_t kGiven = std::size_t{1} << 20;
    std::vector<Performance> results;
    ASSERT_CUDNN(convolution.query(
        handles_->ours, operation, Query::kFindEx, 8, &results, {memory_->get(), kGiven}));
    EXPECT_LT(measuredBefore, statistics().kernelsMeasured);
    EXPECT_EQ(mallocsBefore, callCount("cudaMalloc"));
    for (const Performance& entry : results) EXPECT_LE(entry.memory, kGiven);
    if (operation != UCUDNN_BACKWARD_DATA) {
      EXPECT_TRUE(x == convolution.x().read());
    }
    if (operation != UCUDNN_BACKWARD_FILTER) {
      EXPECT_TRUE(w == convolution.w().read());
    }
    if (operation != UCUDNN_FORWARD) {
      EXPECT_TRUE(y == convolution.y().read());
    }
  }
}

/// Also where a call has run without one: its plan is the handle's no longer.
TEST_F(QueryTest, ALimitThatIsNamedHoldsForLaterCalls) {
  const std::vector<char> untouched(kLimit, 0x55);
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    const auto used = [&] {  // bytes of the workspace up to the last that the call wrote
      memory_->write(untouched);
      EXPECT_CUDNN(convolution_->run(handles_->ours, operation, 0, {memory_->get(), kLimit}));
      const std::vector<char> after = memory_->read();
      const auto last = std::mismatch(after.rbegin(), after.rend(), untouched.rbegin()).first;
      return static_cast<std::size_t>(after.rend() - last);
    };
    const std::size_t unlimited = used();
    const std::size_t named = unlimited / 2 / 512 * 512;
    ASSERT_LT(0U, named);
    std::vector<Performance> results;
    ASSERT_CUDNN(convolution_->query(
        handles_->ours, operation, Query::kFindEx, 1, &results, {memory_->get(), named}));
    EXPECT_LE(used(), named);
    ask(operation, Query::kFindEx, 1);
    EXPECT_EQ(unlimited, used()) << "until a query names another";
  }
}

/// The memory that was free at one query says nothing of later queries. cuDNN's own choice is
/// always within the default limit, so the best must need more than that.
TEST_F(QueryTest, AnAnswerForWantOfMemoryHoldsUntilThereIsSome) {
  if (!onSimulator()) GTEST_SKIP() << "needs the simulator's random times, and little memory";
  forced_.reset();
  setArithmetic(Arithmetic::kOff);
  int better = 0;
  for (int seed = 1; seed <= 10; ++seed) {
    setRandomTimes(static_cast<std::uint64_t>(seed));
    Convolution convolution(fftCase(200 + seed));
    for (const ucudnnOperation_t operation : kOperations)
      for (const Query how : {Query::kGet, Query::kFind}) {
        SCOPED_TRACE(std::string(toText(operation)) + ", seed " + std::to_string(seed));
        const auto best = [&](auto handle, Query query) {
          std::vector<Performance> results;
          EXPECT_CUDNN(convolution.query(handle, operation, query, 1, &results));
          return results.at(0).memory;
        };
        const Handles known, handles;
        const std::size_t expected = best(known.ours, how);
        const std::size_t picked = best(handles.native, Query::kGet);
        if (expected <= picked) continue;
        ++better;
        setMemory(0, picked);
        EXPECT_GE(picked + 512, best(handles.ours, how));
        setMemory(0, std::size_t{100} << 30);
        EXPECT_EQ(expected, best(handles.ours, how));
      }
  }
  setRandomTimes(0);
  EXPECT_LT(0, better);
}

TEST_F(QueryTest, RawHandleIsPlainCudnn) {
  ASSERT_CUDNN(cudnnSetConvolutionMathType(convolution_->convDesc(), CUDNN_FMA_MATH));
  const ucudnnStatistics_t before = statistics();
  const cudnnHandle_t raw = handles_->ours;  // even the native handle behind ours
  for (const cudnnHandle_t handle : {handles_->native, raw})
    for (const ucudnnOperation_t operation : kOperations) {
      std::vector<Performance> results;
      EXPECT_CUDNN(convolution_->query(handle, operation, Query::kGet, 8, &results));
      EXPECT_CUDNN(convolution_->run(handle, operation, 1, {memory_->get(), memory_->bytes()}));
    }
  const ucudnnStatistics_t after = statistics();
  EXPECT_EQ(before.plans, after.plans);
  EXPECT_EQ(before.kernelsLoaded, after.kernelsLoaded);
  EXPECT_EQ(before.kernelsMeasured, after.kernelsMeasured);
  EXPECT_EQ(before.splitCalls, after.splitCalls);
  EXPECT_EQ(before.undividedCalls, after.undividedCalls);
  EXPECT_EQ(before.bypassedCalls, after.bypassedCalls);
}

// A deterministic engine's plan may hold a general one that is not. And a client that asks for
// deterministic results, as PyTorch does, takes the first entry that says so.
TEST_F(QueryTest, TheFirstIsNamedAsDeterministicAsItsCallsAndNeedsWhatItsNameDoes) {
  if (!onSimulator()) GTEST_SKIP() << "needs the simulator's random times";
  forced_.reset();  // engines too, as by default
  setArithmetic(Arithmetic::kOff);
  const auto hasDeterministic = [](const std::vector<Performance>& entries) {
    return std::any_of(entries.begin(), entries.end(), [](const Performance& entry) {
      return entry.status == CUDNN_STATUS_SUCCESS && entry.determinism == CUDNN_DETERMINISTIC;
    });
  };
  int mixed = 0;
  for (int seed = 1; seed <= 10; ++seed) {
    setRandomTimes(static_cast<std::uint64_t>(seed));
    ConvolutionCase other;
    other.batch = 32;
    other.channels = 64 + seed;
    other.filters = 192;
    other.input = {27, 27};
    Convolution convolution(other);
    const Handles handles;
    for (const ucudnnOperation_t operation : {UCUDNN_BACKWARD_DATA, UCUDNN_BACKWARD_FILTER}) {
      SCOPED_TRACE(std::string(toText(operation)) + ", seed " + std::to_string(seed));
      const Workspace all{memory_->get(), memory_->bytes()};
      std::vector<Performance> ours, plain;
      ASSERT_CUDNN(convolution.query(handles.ours, operation, Query::kFindEx, 16, &ours, all));
      ASSERT_CUDNN(convolution.query(handles.native, operation, Query::kFindEx, 16, &plain, all));
      EXPECT_TRUE(hasDeterministic(ours) || !hasDeterministic(plain));
      std::size_t bytes = 0;
      ASSERT_CUDNN(
          convolution.workspaceSize(handles.ours, operation, ours.front().algorithm, &bytes));
      EXPECT_EQ(ours.front().memory, bytes);
      mixed += ours.front().determinism == CUDNN_NON_DETERMINISTIC ? 1 : 0;
    }
  }
  setRandomTimes(0);
  setArithmetic(Arithmetic::kFull);
  EXPECT_LT(0, mixed);
}

}  // namespace
}  // namespace ucudnn::test
