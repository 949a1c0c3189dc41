// Tensors in host memory: parts of them are copied to the device and back, and the result is the
// one of tensors on the device.
#include "host_tensors.hpp"

#include <cmath>
#include <sstream>
#include <thread>

#include "fused.hpp"

namespace ucudnn::test {

/// Random problems in random places within random budgets: within what a refusal names, too.
void HostTensorsTest::compareRandomCases(unsigned seed, int cases) {
  std::mt19937 random(seed);
  int refused = 0, unknown = 0, written = 0, equal = 0;
  for (int i = 0; i < cases; ++i) {
    const ConvolutionCase parameters = randomCase(random);
    const auto operation = kOperations[random() % 3];
    Places places{};
    for (Place& place : places) place = static_cast<Place>(random() % 3);
    places[random() % 3] = static_cast<Place>(1 + random() % 2);
    const double beta = random() % 3 == 0 ? 0.5 : 0;
    const double alpha = random() % 4 == 0 ? 2 : 1;
    const std::size_t budget = std::size_t{1} << (9 + random() % 15);
    std::ostringstream what;
    what << "case " << i << ": " << parameters << ' ' << toText(operation) << " places "
         << static_cast<int>(places[0]) << static_cast<int>(places[1])
         << static_cast<int>(places[2]) << " beta " << beta << " budget " << budget;
    SCOPED_TRACE(what.str());
    Convolution convolution(parameters);
    const Handles handles;
    const auto known = inCoreIfAny(convolution, handles.native, operation, alpha, beta);
    PlacedCall call(convolution, places);
    ASSERT_CUDNN(handles.ours.setTotalWorkspaceSize(i % 8 == 0 ? std::size_t{1} << 20 : 0));
    ASSERT_CUDNN(handles.ours.setDeviceMemory(budget));
    cudnnStatus_t status = call.run(handles.ours, operation, alpha, beta);
    if (status == CUDNN_STATUS_ALLOC_FAILED) {
      ++refused;
      ASSERT_LT(budget, bytesNamed());
      ASSERT_CUDNN(handles.ours.setDeviceMemory(bytesNamed()));
      status = call.run(handles.ours, operation, alpha, beta);
    }
    if (!known) {  // nor may its parts have a kernel
      ++unknown;
      EXPECT_TRUE(status == CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_NOT_SUPPORTED);
      continue;
    }
    ASSERT_CUDNN(status);
    const std::vector<char>& expected = *known;
    const std::vector<char> output = call.output(operation);
    expectEqual(convolution, operation, expected, output);
    if (operation != UCUDNN_BACKWARD_FILTER) {
      ++written;
      equal += output == expected ? 1 : 0;
    }
    if (beta == 0) {  // by the plan of the first call
      ASSERT_CUDNN(call.run(handles.ours, operation, alpha, beta));
      expectEqual(convolution, operation, expected, call.output(operation));
    }
    if (HasFailure()) return;
  }
  EXPECT_LE(unknown, onSimulator() ? 0 : cases / 4);
  EXPECT_LT(0, refused);
  EXPECT_LT(refused, cases / 2);
  // Few outputs are added up: where nothing else fits.
  EXPECT_TRUE(!onSimulator() || equal > written * 3 / 4) << equal << " of " << written;
}

namespace {

TEST_F(HostTensorsTest, ResultsAreThoseOfTensorsOnTheDevice) {
  compareRandomCases(2026, onSimulator() ? 150 : 40);
}

// Few of cuDNN's kernels in half run without workspace, and of some parts none does.
TEST_F(HostTensorsTest, KernelsOfSomeTilesNeedWorkspace) {
  if (!onSimulator()) GTEST_SKIP() << "needs the simulator's kernels";
  setOddChannels(OddChannels::kPadded);
  compareRandomCases(2027, 60);
  setOddChannels(OddChannels::kComputed);
}

TEST_F(HostTensorsTest, TilesWithoutAnAlgorithmAreNotTaken) {
  if (!onSimulator()) GTEST_SKIP() << "needs the simulator's kernels";
  setOddChannels(OddChannels::kRefused);
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    ConvolutionCase parameters = planeCase();
    parameters.channels = 16;
    parameters.filters = 24;
    Convolution convolution(parameters);
    const Handles handles;
    const std::vector<char> expected = inCore(convolution, handles.native, operation, 1, 0);
    ASSERT_CUDNN(handles.ours.setDeviceMemory(2048));  // less than any eight channels
    PlacedCall call(convolution, kPinnedAll);
    EXPECT_EQ(CUDNN_STATUS_ALLOC_FAILED, call.run(handles.ours, operation, 1, 0));
    ASSERT_CUDNN(handles.ours.setDeviceMemory(bytesNamed()));
    EXPECT_CUDNN(call.run(handles.ours, operation, 1, 0));
    expectEqual(convolution, operation, expected, call.output(operation));
  }
  ConvolutionCase none = planeCase();
  none.channels = none.filters = 13;
  Convolution convolution(none);
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  PlacedCall call(convolution, kPinnedAll);
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  EXPECT_FALSE(linesWith(logFile(), {"cuDNN has no algorithm for tiles"}).empty());
  setOddChannels(OddChannels::kComputed);
}

TEST_F(HostTensorsTest, AFusedCallAddsItsBiasAndZOnce) {
  std::mt19937 random(7);
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    ConvolutionCase parameters = planeCase();
    parameters.groups = 1 + static_cast<int>(random() % 2);
    parameters.batch = 1 + static_cast<int>(random() % 3);
    Convolution convolution(parameters);
    Fused fused(convolution, CUDNN_ACTIVATION_RELU);
    const Handles handles;
    const double alpha2 = i % 3 == 0 ? 0 : 0.5;
    const bool zInPlace = i % 4 == 1;
    const std::vector<char> y = convolution.y().read();
    const DeviceBuffer workspace(std::size_t{1} << 20);
    const Workspace given{workspace.get(), workspace.bytes()};
    const int algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    ASSERT_CUDNN(fused.run(handles.native, algorithm, given, 1, alpha2, zInPlace));
    const std::vector<char> expected = convolution.y().read();
    convolution.y().write(y);
    ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget >> random() % 4));
    const auto place = [&] { return static_cast<Place>(random() % 3); };
    Memory memories[] = {{Place::kPinned, convolution.x().read()},
                         {place(), convolution.w().read()},
                         {place(), y},
                         {place(), fused.z().read()},
                         {place(), fused.bias().read()}};
    ASSERT_CUDNN(fused.runOn(handles.ours,
                             algorithm,
                             {memories[0].get(),
                              memories[1].get(),
                              memories[2].get(),
                              zInPlace ? memories[2].get() : memories[3].get(),
                              memories[4].get()},
                             1,
                             alpha2));
    ASSERT_CUDA(cudaStreamSynchronize(nullptr));
    expectEqual(convolution, UCUDNN_FORWARD, expected, memories[2].read());
  }
}

// The call is complete in the order of its stream, whichever that is.
TEST_F(HostTensorsTest, TheHostDoesNotWaitForPinnedMemory) {
  if (!onSimulator()) GTEST_SKIP() << "counts the simulator's calls";
  Convolution convolution(planeCase());
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_CUDNN(cudnnSetStream(handles.ours, stream));
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    PlacedCall call(convolution, kPinnedAll);
    ASSERT_CUDNN(call.run(handles.ours, operation, 1, 0));
    const double hostMs = hostClockMs();
    const std::int64_t allocations = callCount("cudaMalloc") + callCount("cudaMallocHost");
    ASSERT_CUDNN(call.run(handles.ours, operation, 1, 0));
    EXPECT_EQ(hostMs, hostClockMs());
    EXPECT_LT(hostMs, clockMs(stream));
    EXPECT_EQ(allocations, callCount("cudaMalloc") + callCount("cudaMallocHost"));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    expectEqual(convolution,
                operation,
                inCore(convolution, handles.native, operation, 1, 0),
                call.output(operation));
  }
  ASSERT_CUDNN(cudnnSetStream(handles.ours, nullptr));
  ASSERT_CUDA(cudaStreamDestroy(stream));
}

/// A convolution that takes longer to copy than to compute: a call's time over its copies', and
/// over what is predicted.
struct Overlap {
  double overCopies = 0, overPredicted = 0;
  std::string plan;
};
Overlap overlapOf(const ConvolutionCase& parameters,
                  std::size_t budget,
                  const std::string& logFile) {
  Convolution convolution(parameters, Convolution::Contents::kAny);
  const Handles handles;
  EXPECT_CUDNN(handles.ours.setDeviceMemory(budget));
  PlacedCall call(convolution, kPinnedAll);
  EXPECT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  EXPECT_CUDA(cudaDeviceSynchronize());
  const double before = clockMs(nullptr);
  EXPECT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  const double ms = clockMs(nullptr) - before;
  const double linkMs = static_cast<double>(convolution.x().bytes()) / 55e6;  // of an H200
  const std::vector<std::string> lines = linesWith(logFile, {"on host memory: ", " ms"});
  std::smatch match;
  if (lines.empty() || !std::regex_search(lines.back(), match, std::regex("bytes, ([0-9.]+) ms")))
    return {};
  return {ms / linkMs, ms / std::stod(match[1]), lines.back()};
}

TEST_F(HostTensorsTest, CopiesRunBesideKernelsAsPredicted) {
  if (!onSimulator()) GTEST_SKIP() << "times are the simulator's";
  const EnvironmentGuard measured("UCUDNN_BENCHMARK_SHARE", "always");
  const EnvironmentGuard level("UCUDNN_LOG_LEVEL", "info");
  setArithmetic(Arithmetic::kOff);
  ConvolutionCase plane;
  plane.batch = 1;
  plane.channels = plane.filters = 64;
  plane.input = {1024, 1024};
  // A sixteenth of the one in RESULTS.md: its bands share half of their rows.
  ConvolutionCase volume = plane;
  volume.input = {64, 128, 128};
  volume.filter = {3, 3, 3};
  volume.pad = volume.stride = volume.dilation = {1, 1, 1};
  volume.math = CUDNN_DEFAULT_MATH;
  for (const auto& [parameters, mebibytes] : {std::pair(plane, 128), std::pair(volume, 160)}) {
    const Overlap found =
        overlapOf(parameters, static_cast<std::size_t>(mebibytes) << 20, logFile());
    SCOPED_TRACE(found.plan);
    EXPECT_NEAR(1, found.overPredicted, 0.02);
    EXPECT_GT(found.overCopies, 1);
    EXPECT_LT(found.overCopies, 1.2);
  }
}

// A plan by estimated times gives way to one by times that have been measured meanwhile.
TEST_F(HostTensorsTest, AnEstimatedPlanIsMadeAnew) {
  if (!onSimulator()) GTEST_SKIP() << "makes what nobody else has measured";
  const EnvironmentGuard level("UCUDNN_LOG_LEVEL", "info");
  setArithmetic(Arithmetic::kOff);
  ConvolutionCase parameters = planeCase();
  parameters.channels = 13;
  Convolution convolution(parameters);
  const Handles handles, measuring;
  ASSERT_CUDNN(measuring.ours.setBenchmarkShare(HUGE_VAL));
  PlacedCall call(convolution, kPinnedAll);
  const auto plansMade = [&](const Handles& by, int calls) {
    EXPECT_CUDNN(by.ours.setDeviceMemory(kBudget));
    const std::size_t before = linesWith(logFile(), {" on host memory: "}).size();
    for (int i = 0; i < calls; ++i) EXPECT_CUDNN(call.run(by.ours, UCUDNN_FORWARD, 1, 0));
    return linesWith(logFile(), {" on host memory: "}).size() - before;
  };
  EXPECT_EQ(3U, plansMade(handles, 9)) << "calls 1, 5 and 9";
  EXPECT_EQ(1U, plansMade(measuring, 9));
  ASSERT_CUDNN(handles.ours.setDeterministic(true));
  EXPECT_EQ(1U, plansMade(handles, 9)) << "all calls have the same bits";
}

TEST_F(HostTensorsTest, ThreadsTakeTurns) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      ConvolutionCase parameters = planeCase();
      parameters.channels += i;
      const auto operation = kOperations[i % 3];
      Convolution convolution(parameters);
      const Handles handles;
      EXPECT_CUDNN(handles.ours.setDeviceMemory(kBudget));
      const std::vector<char> expected = inCore(convolution, handles.native, operation, 1, 0);
      PlacedCall call(
          convolution,
          i % 2 == 0 ? kPinnedAll : Places{Place::kPageable, Place::kDevice, Place::kPageable});
      for (int j = 0; j < 3; ++j) {
        EXPECT_CUDNN(call.run(handles.ours, operation, 1, 0));
        expectEqual(convolution, operation, expected, call.output(operation));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// A call that fails returns a status, and the next one is right.
TEST_F(HostTensorsTest, AnyCallOfCudaMayFail) {
  if (!onSimulator()) GTEST_SKIP() << "makes the simulator's calls fail";
  Convolution convolution(planeCase());
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  for (const Place place : {Place::kPinned, Place::kPageable}) {
    const std::vector<char> expected = inCore(convolution, handles.native, UCUDNN_FORWARD, 1, 0);
    PlacedCall call(convolution, {place, Place::kPinned, place});
    ASSERT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
    const std::int64_t before = callCount();
    ASSERT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
    const std::int64_t calls = callCount() - before;
    int failed = 0;
    for (std::int64_t n = 1; n <= calls; n += 1 + calls / 200) {
      SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
      failCall(n);
      const cudnnStatus_t status = call.run(handles.ours, UCUDNN_FORWARD, 1, 0);
      failCall(0);
      if (status != CUDNN_STATUS_SUCCESS) ++failed;
      if (status == CUDNN_STATUS_SUCCESS)
        expectEqual(convolution, UCUDNN_FORWARD, expected, call.output(UCUDNN_FORWARD));
      static_cast<void>(cudaGetLastError());
      ASSERT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
      expectEqual(convolution, UCUDNN_FORWARD, expected, call.output(UCUDNN_FORWARD));
    }
    EXPECT_LT(0, failed);
  }
}

// The first call makes streams and buffers, measures the link, and plans.
TEST_F(HostTensorsTest, AnyCallOfCudaMayFailTheFirstTime) {
  if (!onSimulator()) GTEST_SKIP() << "makes the simulator's calls fail";
  Convolution convolution(planeCase());
  const Handles before;
  const std::vector<char> expected = inCore(convolution, before.native, UCUDNN_FORWARD, 1, 0);
  const std::int64_t resources = liveResources();
  for (std::int64_t n = 1; n < 200; n += n < 60 ? 1 : 7) {
    SCOPED_TRACE("call " + std::to_string(n));
    PlacedCall call(convolution, kPinnedAll);
    UcudnnHandle_t handle;
    ASSERT_CUDNN(cudnnCreate(&handle));
    ASSERT_CUDNN(handle.setDeviceMemory(kBudget));
    failCall(n);
    static_cast<void>(call.run(handle, UCUDNN_FORWARD, 1, 0));
    failCall(0);
    static_cast<void>(cudaGetLastError());
    ASSERT_CUDNN(call.run(handle, UCUDNN_FORWARD, 1, 0));
    expectEqual(convolution, UCUDNN_FORWARD, expected, call.output(UCUDNN_FORWARD));
    ASSERT_CUDNN(cudnnDestroy(handle));
  }
  EXPECT_EQ(resources, liveResources());
}

// A graph has memory of its own, so it runs beside other calls, and after larger ones.
TEST_F(HostTensorsTest, ACapturedCallRunsAtEachLaunch) {
  Convolution convolution(planeCase());
  const Handles handles, others;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  ASSERT_CUDNN(others.ours.setDeviceMemory(4 * kBudget));
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    const std::vector<char> once = inCore(convolution, handles.native, operation, 1, 0);
    const std::vector<char> twice = inCore(convolution, handles.native, operation, 2, 0);
    PlacedCall call(convolution, kPinnedAll), other(convolution, kPinnedAll);
    ASSERT_CUDNN(call.run(handles.ours, operation, 1, 0));
    ASSERT_CUDA(cudaStreamSynchronize(nullptr));
    const std::int64_t allocations = callCount("cudaMallocHost");
    {
      Captured captured(handles.ours);
      EXPECT_CUDNN(call.run(handles.ours, operation, 2, 0));
      EXPECT_CUDNN(call.run(handles.ours, operation, 1, 0));
      EXPECT_CUDNN(call.run(handles.ours, operation, 2, 0));
      captured.end();
      expectEqual(convolution, operation, once, call.output(operation));  // nothing has run
      captured.launch();
      EXPECT_CUDNN(other.run(others.ours, operation, 1, 0));
      captured.launch();
      captured.wait();
      expectEqual(convolution, operation, twice, call.output(operation));
      expectEqual(convolution, operation, once, other.output(operation));
    }
    EXPECT_EQ(allocations, callCount("cudaMallocHost"));
  }
}

TEST_F(HostTensorsTest, MemoryOfACapturedCallGoesWithItsGraph) {
  if (!onSimulator()) GTEST_SKIP() << "counts what is live";
  Convolution convolution(planeCase());
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  PlacedCall call(convolution, kPinnedAll);
  ASSERT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  ASSERT_CUDA(cudaStreamSynchronize(nullptr));
  const auto capture = [&] {
    Captured captured(handles.ours);
    EXPECT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
    captured.end();
    captured.launch();
    captured.wait();
  };
  capture();
  const std::int64_t resources = liveResources();
  for (int i = 0; i < 3; ++i) capture();
  EXPECT_EQ(resources, liveResources());
}

TEST_F(HostTensorsTest, ACaptureIsRefusedWhatItCanNotHave) {
  Convolution convolution(planeCase());
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  PlacedCall call(convolution, kPinnedAll);
  PlacedCall pageable(convolution, {Place::kPinned, Place::kPinned, Place::kPageable});
  ASSERT_CUDNN(pageable.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  {
    Captured captured(handles.ours);
    EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
    EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, pageable.run(handles.ours, UCUDNN_FORWARD, 1, 0));
    captured.end();
  }
  EXPECT_FALSE(linesWith(logFile(), {"must have run once before it is captured"}).empty());
  EXPECT_FALSE(linesWith(logFile(), {"pageable memory can't be copied"}).empty());
  EXPECT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  ASSERT_CUDA(cudaStreamSynchronize(nullptr));
}

// CUDA takes a null pointer for pageable memory.
TEST_F(HostTensorsTest, AMissingTensorIsRefused) {
  Convolution convolution(planeCase());
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  PlacedCall call(convolution, kPinnedAll);
  const float one = 1, zero = 0;
  const auto forward = [&](const void* x, const void* w, void* y) {
    return cudnnConvolutionForward(handles.ours,
                                   &one,
                                   convolution.xDesc(),
                                   x,
                                   convolution.wDesc(),
                                   w,
                                   convolution.convDesc(),
                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                   nullptr,
                                   0,
                                   &zero,
                                   convolution.yDesc(),
                                   y);
  };
  void *const x = call.x().get(), *const w = call.w().get(), *const y = call.y().get();
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, forward(nullptr, w, y));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, forward(x, nullptr, y));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, forward(x, w, nullptr));
  EXPECT_EQ(3U, linesWith(logFile(), {"a tensor is missing"}).size());
  EXPECT_CUDNN(forward(x, w, y));
  ASSERT_CUDA(cudaStreamSynchronize(nullptr));
}

// Off, CUDA is not even asked where tensors are; on, tensors of the device take the usual way.
TEST_F(HostTensorsTest, TensorsOnTheDeviceAreNotCopied) {
  if (!onSimulator()) GTEST_SKIP() << "counts the simulator's calls";
  Convolution convolution(planeCase());
  const Handles handles;
  PlacedCall call(convolution, {});
  const auto calls = [&](const char* function) {
    const std::int64_t before = callCount(function);
    EXPECT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
    return callCount(function) - before;
  };
  EXPECT_EQ(0, calls("cudaPointerGetAttributes"));
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  EXPECT_EQ(3, calls("cudaPointerGetAttributes"));
  EXPECT_EQ(0, calls("cudaMemcpyAsync") + calls("cudaMemcpy2DAsync"));
}

}  // namespace
}  // namespace ucudnn::test
