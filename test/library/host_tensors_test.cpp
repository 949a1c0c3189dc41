// Tensors in host memory: parts of them are copied to the device and back, and the result is the
// one of tensors on the device.
#include <cmath>
#include <cstring>
#include <random>
#include <regex>
#include <thread>

#include "../support/simulator.hpp"
#include "../support/temporary_directory.hpp"
#include "fixture.hpp"
#include "fused.hpp"

namespace ucudnn::test {
namespace {

enum class Place { kDevice, kPinned, kPageable };

/// A copy of a tensor's buffer in some place.
class Memory {
 public:
  Memory(Place place, const std::vector<char>& contents) : place_(place), bytes_(contents.size()) {
    if (place == Place::kPageable) {
      pageable_ = contents;
      return;
    }
    EXPECT_CUDA(place == Place::kDevice ? cudaMalloc(&memory_, bytes_)
                                        : cudaMallocHost(&memory_, bytes_));
    EXPECT_CUDA(cudaMemcpy(memory_, contents.data(), bytes_, cudaMemcpyDefault));
  }
  ~Memory() {
    if (place_ == Place::kPageable) return;
    EXPECT_CUDA(place_ == Place::kDevice ? cudaFree(memory_) : cudaFreeHost(memory_));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* get() { return place_ == Place::kPageable ? pageable_.data() : memory_; }
  std::vector<char> read() {
    std::vector<char> contents(bytes_);
    EXPECT_CUDA(cudaMemcpy(contents.data(), get(), bytes_, cudaMemcpyDefault));
    return contents;
  }

 private:
  const Place place_;
  const std::size_t bytes_;
  std::vector<char> pageable_;
  void* memory_ = nullptr;
};

using Places = std::array<Place, 3>;  // of x, w and y

/// A call of a convolution whose tensors are copies in these places.
class PlacedCall {
 public:
  PlacedCall(Convolution& convolution, Places places)
      : convolution_(convolution),
        x_(places[0], convolution.x().read()),
        w_(places[1], convolution.w().read()),
        y_(places[2], convolution.y().read()) {}

  cudnnStatus_t run(UcudnnHandle_t handle, ucudnnOperation_t operation, double alpha, double beta) {
    const bool isDouble = convolution_.parameters().type == CUDNN_DATA_DOUBLE;
    const double doubles[] = {alpha, beta};
    const float floats[] = {static_cast<float>(alpha), static_cast<float>(beta)};
    const auto factor = [&](int i) {
      return isDouble ? static_cast<const void*>(&doubles[i]) : &floats[i];
    };
    const cudnnTensorDescriptor_t x = convolution_.xDesc(), y = convolution_.yDesc();
    const cudnnFilterDescriptor_t w = convolution_.wDesc();
    const cudnnConvolutionDescriptor_t d = convolution_.convDesc();
    switch (operation) {
      case UCUDNN_BACKWARD_DATA:
        return cudnnConvolutionBackwardData(handle,
                                            factor(0),
                                            w,
                                            w_.get(),
                                            y,
                                            y_.get(),
                                            d,
                                            CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                            nullptr,
                                            0,
                                            factor(1),
                                            x,
                                            x_.get());
      case UCUDNN_BACKWARD_FILTER:
        return cudnnConvolutionBackwardFilter(handle,
                                              factor(0),
                                              x,
                                              x_.get(),
                                              y,
                                              y_.get(),
                                              d,
                                              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                              nullptr,
                                              0,
                                              factor(1),
                                              w,
                                              w_.get());
      default:
        return cudnnConvolutionForward(handle,
                                       factor(0),
                                       x,
                                       x_.get(),
                                       w,
                                       w_.get(),
                                       d,
                                       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                       nullptr,
                                       0,
                                       factor(1),
                                       y,
                                       y_.get());
    }
  }

  std::vector<char> output(ucudnnOperation_t operation) {
    EXPECT_CUDA(cudaStreamSynchronize(nullptr));
    return (operation == UCUDNN_BACKWARD_DATA     ? x_
            : operation == UCUDNN_BACKWARD_FILTER ? w_
                                                  : y_)
        .read();
  }
  Memory& x() { return x_; }
  Memory& w() { return w_; }
  Memory& y() { return y_; }

 private:
  Convolution& convolution_;
  Memory x_, w_, y_;
};

/// The result of tensors on the device, by the first of cuDNN's algorithms that has it.
std::vector<char> inCore(Convolution& convolution,
                         cudnnHandle_t native,
                         ucudnnOperation_t operation,
                         double alpha,
                         double beta) {
  for (int algorithm = 0; algorithm < 8; ++algorithm)
    if (auto output = convolution.undivided(native, operation, algorithm, alpha, beta))
      return *output;
  ADD_FAILURE() << "cuDNN has no algorithm";
  return {};
}

class HostTensorsTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    setArithmetic(Arithmetic::kFull);
  }

  std::string logFile() const { return directory_.file("log"); }

  /// The bytes that the last refusal has named.
  std::size_t bytesNamed() const {
    const std::vector<std::string> lines = linesWith(logFile(), {"need", "bytes of device memory"});
    std::smatch match;
    if (lines.empty() || !std::regex_search(lines.back(), match, std::regex("need ([0-9]+) bytes")))
      return 0;
    return std::stoull(match[1]);
  }

  static void expectEqual(const Convolution& convolution,
                          ucudnnOperation_t operation,
                          const std::vector<char>& expected,
                          const std::vector<char>& found) {
    ASSERT_EQ(expected.size(), found.size());
    EXPECT_LE(distance(convolution.geometry(operation), found, expected),
              tolerance(convolution.parameters()));
  }

 private:
  TemporaryDirectory directory_;
  // Kernels are not measured: they are the first that fit.
  EnvironmentGuard setting_{{{"UCUDNN_BENCHMARK_SHARE", "0"},
                             {"UCUDNN_LOG_LEVEL", "warn"},
                             {"UCUDNN_LOG_FILE", logFile()}}};
};

ConvolutionCase randomCase(std::mt19937& random) {
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<>(least, most)(random);
  };
  ConvolutionCase chosen;
  chosen.name = "random";
  const int dimensions = pick(1, 4) == 1 ? 3 : 2;
  const int types = pick(0, 9);
  chosen.type = types == 0 ? CUDNN_DATA_DOUBLE : types == 1 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  if (pick(0, 3) == 0 && dimensions == 2) chosen.format = CUDNN_TENSOR_NHWC;
  chosen.batch = pick(1, 4);
  chosen.channels = pick(1, 12);
  chosen.filters = pick(1, 12);
  if (pick(0, 4) == 0) {
    chosen.groups = pick(2, 3);
    chosen.channels *= chosen.groups;
    chosen.filters *= chosen.groups;
  }
  const auto each = [&](int least, int most) {
    std::vector<int> values;
    for (int i = 0; i < dimensions; ++i) values.push_back(pick(least, most));
    return values;
  };
  chosen.filter = each(1, 4);
  chosen.pad = each(0, 2);
  for (std::size_t i = 0; i < chosen.pad.size(); ++i)
    chosen.pad[i] = std::min(chosen.pad[i], chosen.filter[i] - 1);
  chosen.stride = each(1, 3);
  chosen.dilation = pick(0, 3) == 0 ? each(1, 2) : std::vector<int>(chosen.filter.size(), 1);
  chosen.input = each(8, dimensions == 3 ? 11 : 24);
  if (chosen.format == CUDNN_TENSOR_NCHW && pick(0, 5) == 0) chosen.batchGap = pick(1, 64);
  return chosen;
}

TEST_F(HostTensorsTest, ResultsAreThoseOfTensorsOnTheDevice) {
  std::mt19937 random(2026);
  const int cases = onSimulator() ? 150 : 40;
  int refused = 0, written = 0, equal = 0;
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
    const std::vector<char> expected = inCore(convolution, handles.native, operation, alpha, beta);
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
    ASSERT_CUDNN(status);
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
  EXPECT_LT(0, refused);
  EXPECT_LT(refused, cases / 2);
  // Few outputs are added up: where nothing else fits.
  EXPECT_TRUE(!onSimulator() || equal > written * 3 / 4) << equal << " of " << written;
}

constexpr std::size_t kBudget = std::size_t{256} << 10;
constexpr Places kPinnedAll = {Place::kPinned, Place::kPinned, Place::kPinned};

/// Some tiles within kBudget.
ConvolutionCase planeCase() {
  ConvolutionCase parameters;
  parameters.batch = 2;
  parameters.channels = parameters.filters = 8;
  parameters.input = {64, 40};
  return parameters;
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

TEST_F(HostTensorsTest, CopiesRunBesideKernelsAsPredicted) {
  if (!onSimulator()) GTEST_SKIP() << "times are the simulator's";
  const EnvironmentGuard measured("UCUDNN_BENCHMARK_SHARE", "always");
  const EnvironmentGuard level("UCUDNN_LOG_LEVEL", "info");
  setArithmetic(Arithmetic::kOff);
  ConvolutionCase parameters;
  parameters.batch = 1;
  parameters.channels = parameters.filters = 64;
  parameters.input = {1024, 1024};
  Convolution convolution(parameters, Convolution::Contents::kAny);
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(std::size_t{128} << 20));
  PlacedCall call(convolution, kPinnedAll);
  ASSERT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  ASSERT_CUDA(cudaDeviceSynchronize());
  const double before = clockMs(nullptr);
  ASSERT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  const double ms = clockMs(nullptr) - before;
  const std::vector<std::string> lines = linesWith(logFile(), {"on host memory: ", " ms"});
  ASSERT_FALSE(lines.empty());
  std::smatch match;
  ASSERT_TRUE(std::regex_search(lines.back(), match, std::regex("bytes, ([0-9.]+) ms")));
  EXPECT_NEAR(std::stod(match[1]), ms, 0.05 * ms);
  const double linkMs = static_cast<double>(convolution.x().bytes()) / 55e6;  // of an H200
  EXPECT_GT(ms, linkMs);
  EXPECT_LT(ms, 1.2 * linkMs) << lines.back();
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

TEST_F(HostTensorsTest, ACapturedCallIsRefusedAndTheCaptureStays) {
  Convolution convolution(planeCase());
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  PlacedCall call(convolution, kPinnedAll);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_CUDNN(cudnnSetStream(handles.ours, stream));
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
  ASSERT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDNN(call.run(handles.ours, UCUDNN_FORWARD, 1, 0));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  ASSERT_CUDNN(cudnnSetStream(handles.ours, nullptr));
  ASSERT_CUDA(cudaStreamDestroy(stream));
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

TEST_F(HostTensorsTest, MemoryIsTheDevicesWhileTheBudgetLasts) {
  const Handles handles;
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const auto typeOf = [](void* memory) {
    cudaPointerAttributes attributes{};
    EXPECT_CUDA(cudaPointerGetAttributes(&attributes, memory));
    return attributes.type;
  };
  void* memory[4] = {};
  ASSERT_CUDNN(ucudnnMalloc(handles.ours, &memory[0], kBytes));
  EXPECT_EQ(cudaMemoryTypeDevice, typeOf(memory[0])) << "off";
  EXPECT_CUDNN(ucudnnFree(handles.ours, memory[0]));
  ASSERT_CUDNN(handles.ours.setDeviceMemory(4 * kBytes));
  for (void*& each : memory) ASSERT_CUDNN(ucudnnMalloc(handles.ours, &each, kBytes));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaMemoryTypeDevice, typeOf(memory[i])) << i;
  EXPECT_EQ(cudaMemoryTypeHost, typeOf(memory[3])) << "a quarter is for tiles";
  // A call has what is left, and takes memory of either kind.
  ConvolutionCase parameters = planeCase();
  Convolution convolution(parameters);
  const std::vector<char> expected = inCore(convolution, handles.native, UCUDNN_FORWARD, 1, 0);
  const std::vector<char> x = convolution.x().read();
  ASSERT_LE(x.size(), kBytes);
  ASSERT_CUDA(cudaMemcpy(memory[3], x.data(), x.size(), cudaMemcpyDefault));
  const float one = 1, zero = 0;
  startPeak();
  const std::size_t before = liveBytes();
  ASSERT_CUDNN(cudnnConvolutionForward(handles.ours,
                                       &one,
                                       convolution.xDesc(),
                                       memory[3],
                                       convolution.wDesc(),
                                       convolution.w().get(),
                                       convolution.convDesc(),
                                       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                       nullptr,
                                       0,
                                       &zero,
                                       convolution.yDesc(),
                                       memory[0]));
  EXPECT_LE(peakBytes(), before + kBytes + 2 * (std::size_t{4} << 20)) << "and the link's buffers";
  std::vector<char> y(expected.size());
  ASSERT_CUDA(cudaMemcpy(y.data(), memory[0], y.size(), cudaMemcpyDefault));
  expectEqual(convolution, UCUDNN_FORWARD, expected, y);
  for (void* each : memory) EXPECT_CUDNN(ucudnnFree(handles.ours, each));
  EXPECT_CUDNN(ucudnnFree(handles.ours, nullptr));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnMalloc(handles.ours, nullptr, 1));
}

/// The case as ucudnnConvolve takes it. REQUIRES: packed, NCHW.
ucudnnConvolution_t numbersOf(const ConvolutionCase& parameters, ucudnnOperation_t operation) {
  ucudnnConvolution_t numbers{};
  numbers.operation = operation;
  numbers.type = parameters.type;
  numbers.math = parameters.math;
  numbers.dimensions = static_cast<int>(parameters.input.size()) + 2;
  numbers.x[0] = parameters.batch;
  numbers.x[1] = parameters.channels;
  numbers.w[0] = parameters.filters;
  numbers.w[1] = parameters.channels / parameters.groups;
  for (std::size_t i = 0; i < parameters.input.size(); ++i) {
    numbers.x[2 + i] = parameters.input[i];
    numbers.w[2 + i] = parameters.filter[i];
    numbers.padding[i] = parameters.pad[i];
    numbers.stride[i] = parameters.stride[i];
    numbers.dilation[i] = parameters.dilation[i];
  }
  numbers.groups = parameters.groups;
  return numbers;
}

TEST_F(HostTensorsTest, AConvolutionInNumbersNeedsNoDescriptors) {
  std::mt19937 random(11);
  for (int i = 0; i < 30; ++i) {
    ConvolutionCase parameters = randomCase(random);
    parameters.format = CUDNN_TENSOR_NCHW;
    parameters.batchGap = 0;
    const auto operation = kOperations[i % 3];
    SCOPED_TRACE("case " + std::to_string(i) + ' ' + parameters.serialized());
    Convolution convolution(parameters);
    const Handles handles;
    const std::vector<char> expected = inCore(convolution, handles.native, operation, 2, 0.5);
    ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
    const bool isOnDevice = i % 5 == 4;
    PlacedCall call(convolution, isOnDevice ? Places{} : kPinnedAll);
    const ucudnnConvolution_t numbers = numbersOf(parameters, operation);
    int sizes[5] = {};
    ASSERT_CUDNN(ucudnnGetConvolutionOutput(&numbers, sizes));
    const std::vector<int>& ySizes = convolution.geometry(UCUDNN_FORWARD).sizes;
    EXPECT_TRUE(std::equal(ySizes.begin(), ySizes.end(), sizes));
    ASSERT_CUDNN(ucudnnConvolve(
        handles.ours, &numbers, 2, call.x().get(), call.w().get(), nullptr, 0.5, call.y().get()));
    expectEqual(convolution, operation, expected, call.output(operation));
  }
}

TEST_F(HostTensorsTest, NumbersThatDoNotBelongTogetherAreRefused) {
  const Handles handles;
  char memory[64] = {};
  const auto status = [&](auto change) {
    ucudnnConvolution_t numbers = numbersOf(planeCase(), UCUDNN_FORWARD);
    const void* bias = nullptr;
    double beta = 0;
    change(numbers, bias, beta);
    return ucudnnConvolve(handles.ours, &numbers, 1, memory, memory, bias, beta, memory);
  };
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, status([](auto&, auto&, auto&) {})) << "no device memory";
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status([](auto& c, auto&, auto&) { c.dimensions = 6; }));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status([](auto& c, auto&, auto&) { c.w[1] = 3; }));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status([](auto& c, auto&, auto&) { c.groups = 3; }));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status([](auto& c, auto&, auto&) { c.stride[0] = 0; }));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status([](auto& c, auto&, auto&) { c.w[2] = 100; }));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            status([](auto& c, auto&, auto&) { c.type = CUDNN_DATA_INT8; }));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status([](auto& c, auto& bias, auto&) { bias = &c; }));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            status([](auto& c, auto&, auto&) { c.operation = UCUDNN_BIAS_ACTIVATION_FORWARD; }));
}

// A volume that has no descriptor: 64 channels of 512^3.
TEST_F(HostTensorsTest, TensorsMayHave2To31ElementsAndMore) {
  if (!onSimulator()) GTEST_SKIP() << "of memory that is not touched there";
  setArithmetic(Arithmetic::kOff);
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(std::size_t{16} << 30));
  ConvolutionCase parameters;
  parameters.batch = 1;
  parameters.channels = parameters.filters = 64;
  parameters.input = {512, 512, 512};
  parameters.filter = {3, 3, 3};
  parameters.pad = parameters.stride = parameters.dilation = {1, 1, 1};
  const std::size_t bytes = (std::size_t{64} << 27) * sizeof(float);
  void *x = nullptr, *y = nullptr;
  ASSERT_CUDA(cudaMallocHost(&x, bytes));
  ASSERT_CUDA(cudaMallocHost(&y, bytes));
  const DeviceBuffer w(std::size_t{64} * 64 * 27 * sizeof(float));
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    const ucudnnConvolution_t numbers = numbersOf(parameters, operation);
    const double before = clockMs(nullptr);
    ASSERT_CUDNN(ucudnnConvolve(handles.ours, &numbers, 1, x, w.get(), nullptr, 0, y));
    const double linkMs = static_cast<double>(bytes) / 55e6;  // of an H200, each way
    EXPECT_GT(clockMs(nullptr) - before, linkMs);
    EXPECT_LT(clockMs(nullptr) - before, 2.3 * linkMs);
  }
  ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(cudaFreeHost(x));
  EXPECT_CUDA(cudaFreeHost(y));
}

}  // namespace
}  // namespace ucudnn::test
