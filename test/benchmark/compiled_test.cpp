// Engines that cuDNN compiles: a benchmark in steps has another thread build them.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "benchmark/benchmark_run.hpp"
#include "benchmark_fixture.hpp"
#include "kernels/engines.hpp"
#include "problem/activation.hpp"
#include "support/skips.hpp"

namespace ucudnn::test {
namespace {

/// By which engine a program of the graph API runs each operation; cuDNN notes that it is compiled.
Kernel compiledEngine(const Problem& problem) {
  const bool isForward = problem.operation == Operation::kForward;
  const bool isData = problem.operation == Operation::kBackwardData;
  const auto offer = parseKernel(problem, isForward ? "eng71" : isData ? "eng78" : "eng70");
  EXPECT_TRUE(offer);
  return offer->kernel;
}

class CompiledTest : public BenchmarkTest {
 protected:
  void TearDown() override {
    setCompiling(Compiling::kWorks);
    setMeasuringCost(false);
    BenchmarkTest::TearDown();
  }

  /// Each test has a batch size of its own: what was compiled once is kept.
  static BenchmarkRequest ofProgram(int batch, Operation operation = Operation::kForward) {
    BenchmarkRequest request = question(batch, kLimit);
    request.problem = conv2(batch, operation);
    request.problem.mathType = CUDNN_DEFAULT_MATH;
    request.kernels = Kernels::kAll;
    request.tuning = Tuning::kFast;
    request.calls = Calls::kOverwriting;
    request.own = compiledEngine(request.problem);
    request.worksAside = true;
    return request;
  }

  /// No client's own kernel; the types of all tensors.
  static BenchmarkRequest ofType(cudnnDataType_t type, Operation operation = Operation::kForward) {
    BenchmarkRequest request = ofProgram(56);
    request.problem.operation = operation;
    for (auto* tensor : {&request.problem.xType, &request.problem.wType, &request.problem.yType})
      *tensor = type;
    request.own.reset();
    return request;
  }

  static constexpr double kStallMs = 20;

  /// The host's time, of all steps.
  static double longestStepMs(
      BenchmarkRun& run, const std::function<void()>& afterEach = [] {}) {
    double longestMs = 0;
    bool isLeft = true;
    while (isLeft) {
      const double beginMs = hostClockMs();
      isLeft = run.advance();
      longestMs = std::max(longestMs, hostClockMs() - beginMs);
      afterEach();
    }
    return longestMs;
  }
  double longestStepMs(const BenchmarkRequest& request) const {
    setMeasuringCost(true);
    BenchmarkRun run(handle_.get(), request);
    const double longestMs = longestStepMs(run);
    EXPECT_LT(0, run.finish().kernelsMeasured);
    return longestMs;
  }

  static void waitForHeld(int count) {
    while (heldCompilations() < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  static void waitFor(const BackgroundBuild& build) {
    while (!build.isDone()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  /// Until it waits for nothing but what is compiled. REQUIRES: that is held.
  static void advanceUntilWaiting(BenchmarkRun& run) {
    do {
      ASSERT_TRUE(run.advance());
    } while (!run.isWaiting() || heldCompilations() == 0);
  }

  /// To the end.
  static BenchmarkResult finish(BenchmarkRun& run) {
    while (run.advance())
      if (run.isWaiting()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return run.finish();
  }

  static bool isMeasured(const BenchmarkResult& result, const BenchmarkRequest& request) {
    return findKernel(result.measurements, request.problem.batch(), *request.own) != nullptr;
  }
};

TEST_F(CompiledTest, ItFindsWhatIsFoundAtOnce) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
    BenchmarkRequest request = ofProgram(40, operation);
    BenchmarkRun aside(handle_.get(), request);
    const BenchmarkResult inSteps = finish(aside);
    request.worksAside = false;
    const BenchmarkResult atOnce = run(request);
    EXPECT_TRUE(isMeasured(inSteps, request));
    EXPECT_EQ(0, inSteps.failures);
    EXPECT_TRUE(inSteps.undividedMeasured);
    EXPECT_EQ(atOnce.kernelsMeasured, inSteps.kernelsMeasured);
    ASSERT_EQ(kernelsOf(atOnce.measurements), kernelsOf(inSteps.measurements));
    for (const auto& [batch, size] : atOnce.measurements)
      for (const Measurement& m : size.kernels)
        EXPECT_EQ(m.timeMs, findKernel(inSteps.measurements, batch, m.kernel)->timeMs);
  }
}

TEST_F(CompiledTest, NoStepWaitsForTheCompiler) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  setMeasuringCost(true);
  for (const bool aside : {true, false}) {
    BenchmarkRequest request = ofProgram(aside ? 41 : 42);
    request.worksAside = aside;
    if (aside) setCompiling(Compiling::kHeld);
    BenchmarkRun run(handle_.get(), request);
    int waits = 0;
    const double longestMs = longestStepMs(run, [&] {
      if (run.isWaiting() && ++waits == 10) setCompiling(Compiling::kWorks);
    });
    EXPECT_TRUE(isMeasured(run.finish(), request));
    EXPECT_EQ(aside, waits >= 10);
    EXPECT_EQ(aside, longestMs < kStallMs) << longestMs;
  }
}

/// It makes tables for the type, once in a process: each turn has a type of its own.
TEST_F(CompiledTest, NoStepWaitsForTheFirstAnswer) {
  for (const bool aside : {true, false}) {
    BenchmarkRequest request = ofType(aside ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16);
    request.worksAside = aside;
    EXPECT_EQ(aside, longestStepMs(request) < kStallMs);
  }
}

/// cuDNN has engines alone for a ReLU that keeps NaNs.
TEST_F(CompiledTest, AnAnswerWithoutAlgorithmsIsNotTheFirst) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  BenchmarkRequest request = ofType(CUDNN_DATA_HALF, Operation::kBiasActivationForward);
  request.problem.activation = kReluKeepingNans;
  EXPECT_LT(longestStepMs(request), kStallMs);
  request.problem.activation = CUDNN_ACTIVATION_RELU;
  EXPECT_LT(longestStepMs(request), kStallMs);
}

TEST_F(CompiledTest, WhatElseThereIsIsMeasuredMeanwhile) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  setCompiling(Compiling::kHeld);
  const BenchmarkRequest request = ofProgram(43);
  BenchmarkRun run(handle_.get(), request);
  advanceUntilWaiting(run);
  waitForHeld(1);
  run.pause();
  EXPECT_EQ(0U, liveBytes()) << "it waits without memory";
  const BenchmarkResult early = run.finish();
  EXPECT_FALSE(isMeasured(early, request));
  EXPECT_LT(0, early.kernelsMeasured);
  EXPECT_FALSE(early.undividedMeasured);
  EXPECT_EQ(Untried::kTime, early.untried);
}

TEST_F(CompiledTest, WhatCannotBeCompiledIsRefused) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  for (const bool aside : {true, false}) {
    setCompiling(Compiling::kFails);
    BenchmarkRequest request = ofProgram(aside ? 44 : 49);
    request.worksAside = aside;
    BenchmarkRun run(handle_.get(), request);
    const BenchmarkResult result = finish(run);
    EXPECT_FALSE(isMeasured(result, request));
    EXPECT_LT(0, result.kernelsMeasured);
    EXPECT_EQ(Untried::kNone, result.untried);
    EXPECT_EQ(1U, result.refused.at(request.problem.batch()).size());
    setCompiling(Compiling::kWorks);
    BenchmarkRun again(handle_.get(), request);
    EXPECT_TRUE(isMeasured(finish(again), request)) << "no failure is kept";
  }
}

/// A process's first build fails here where the thread makes its handle, others where it builds.
TEST_F(CompiledTest, WithoutAHandleForItTheKernelFails) {
  const Problem problem = ofProgram(45).problem;
  failCall(3);
  BackgroundBuild build(problem, compiledEngine(problem), Calls::kOverwriting);
  waitFor(build);
  failCall(0);
  EXPECT_THROW(build.kernel(), Error);
  BackgroundBuild again(problem, compiledEngine(problem), Calls::kOverwriting);
  waitFor(again);
  EXPECT_TRUE(again.kernel());
}

TEST_F(CompiledTest, WhatNobodyWantsAnyMoreIsNotBegun) {
  const auto build = [](int batch) {
    const Problem problem = ofProgram(batch).problem;
    return std::make_unique<BackgroundBuild>(problem, compiledEngine(problem), Calls::kOverwriting);
  };
  const auto finalized = [] { return callCount("cudnnBackendFinalize"); };
  const auto before = finalized();
  waitFor(*build(50));
  const auto each = finalized() - before;
  setCompiling(Compiling::kHeld);
  const auto first = build(46);
  waitForHeld(1);
  const auto held = finalized();
  build(47);
  const auto last = build(48);
  setCompiling(Compiling::kWorks);
  waitFor(*last);
  EXPECT_TRUE(first->isDone());
  EXPECT_EQ(held + each, finalized());
}

TEST_F(CompiledTest, EachDeviceHasAThreadOfItsOwn) {
  const Problem problem = ofProgram(54).problem;
  const auto begin = [&](int device) {
    const DeviceScope scope(device);
    return std::make_unique<BackgroundBuild>(problem, compiledEngine(problem), Calls::kOverwriting);
  };
  setCompiling(Compiling::kHeld);
  const auto first = begin(0), second = begin(1);
  waitForHeld(2);
  setCompiling(Compiling::kWorks);
  waitFor(*first);
  waitFor(*second);
  EXPECT_NE(first->kernel(), second->kernel());
}

TEST_F(CompiledTest, StepsOnOtherHandlesGoOn) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  const CudnnHandle other = makeOwned<CudnnHandle>(cudnnCreate);
  const BenchmarkRequest request = ofProgram(55);
  BenchmarkRun run(handle_.get(), request);
  bool isLeft = true;
  for (int step = 0; isLeft; ++step) {
    run.resume(step % 2 == 1 ? other.get() : handle_.get(), nullptr);
    isLeft = run.advance();
    run.pause();
    if (run.isWaiting()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const BenchmarkResult result = run.finish();
  EXPECT_TRUE(isMeasured(result, request));
  EXPECT_EQ(0, result.failures);
}

/// The child has none of the threads, and locks that are free.
TEST_F(CompiledTest, AForkMeanwhileEndsAsUsual) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  setCompiling(Compiling::kHeld);
  const BenchmarkRequest request = ofProgram(51);
  BenchmarkRun run(handle_.get(), request);
  advanceUntilWaiting(run);
  waitForHeld(1);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool isWaiting = run.advance() && run.isWaiting();  // for ever
    std::exit(isWaiting ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  setCompiling(Compiling::kWorks);
  EXPECT_TRUE(isMeasured(finish(run), request));
}

/// Made before what ends the threads, so asked after that.
struct AtEnd {
  std::unique_ptr<BackgroundBuild> begun, waiting;

  static bool isBuilt(BackgroundBuild& build) {
    if (!build.isDone()) return false;
    try {
      return build.kernel() != nullptr;
    } catch (const Error&) {
      return false;
    }
  }
  ~AtEnd() {
    if (begun && (!isBuilt(*begun) || isBuilt(*waiting))) ::_exit(1);
  }
};

/// It waits for what is being compiled, and not for what has not been begun.
TEST_F(CompiledTest, AProcessEndsMeanwhile) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end = [] {
    static AtEnd atEnd;
    setCompiling(Compiling::kHeld);
    const Problem problem = ofProgram(52).problem;
    const Kernel kernel = compiledEngine(problem);
    atEnd.begun = std::make_unique<BackgroundBuild>(problem, kernel, Calls::kOverwriting);
    atEnd.waiting =
        std::make_unique<BackgroundBuild>(problem.withBatch(53), kernel, Calls::kOverwriting);
    waitForHeld(1);
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      setCompiling(Compiling::kWorks);
    }).detach();
    std::exit(0);
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ucudnn::test
