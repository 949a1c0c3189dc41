// Streams, graphs, failures, leaks, threads.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "convolution_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

void leakADescriptorAndAHandle() {
  cudnnTensorDescriptor_t tensor = nullptr;
  cudnnHandle_t handle = nullptr;
  cudnnCreateTensorDescriptor(&tensor);
  cudnnCreate(&handle);
  std::exit(0);
}

// Each in a process of its own, started anew: settings are read once.
TEST(LeakTest, DescriptorsAreNamedOnRequestOnly) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("UCUDNN_SIMULATOR_LEAKS", "1", 1);
  EXPECT_EXIT(
      leakADescriptorAndAHandle(), testing::ExitedWithCode(0), "leaked at exit: 1 cudnnHandle\n");
  setenv("UCUDNN_SIMULATOR_LEAKS", "all", 1);
  EXPECT_EXIT(leakADescriptorAndAHandle(),
              testing::ExitedWithCode(0),
              "leaked at exit: 1 cudnnHandle, 1 cudnnTensorDescriptor\n");
  unsetenv("UCUDNN_SIMULATOR_LEAKS");
}

TEST(LeakTest, ResourcesAreAllButDescriptors) {
  const std::int64_t resources = ucudnnSimulatorLiveResources();
  const std::int64_t handles = ucudnnSimulatorLiveHandles(nullptr);
  cudnnTensorDescriptor_t tensor = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_CUDNN(cudnnCreateTensorDescriptor(&tensor));
  ASSERT_CUDA(cudaEventCreate(&event));
  EXPECT_EQ(resources + 1, ucudnnSimulatorLiveResources());
  EXPECT_EQ(handles + 2, ucudnnSimulatorLiveHandles(nullptr));
  ASSERT_CUDA(cudaEventDestroy(event));
  EXPECT_EQ(resources, ucudnnSimulatorLiveResources());
  ASSERT_CUDNN(cudnnDestroyTensorDescriptor(tensor));
}

TEST(VectorizedTest, RunsByTheOneAlgorithmThatCudnnHas) {
  // One vector of 4 channels at each of 2 x 2 positions, and one 1 x 1 filter of 4 channels for
  // each of 4 outputs: output channel k is (k + 1) times the sum of the input's channels.
  const signed char x[16] = {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, 0, 1, 0, 1};
  signed char w[16];
  for (int k = 0; k < 4; ++k) std::memset(w + 4 * k, k + 1, 4);
  const int sums[4] = {10, 26, -10, 2};
  DeviceBuffer xBuffer(16);
  DeviceBuffer wBuffer(16);
  DeviceBuffer yBuffer(16);
  xBuffer.write(std::vector<char>(x, x + 16));
  wBuffer.write(std::vector<char>(w, w + 16));

  cudnnHandle_t handle;
  cudnnTensorDescriptor_t tensor;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
  ASSERT_CUDNN(cudnnCreate(&handle));
  ASSERT_CUDNN(cudnnCreateTensorDescriptor(&tensor));
  ASSERT_CUDNN(cudnnCreateFilterDescriptor(&filter));
  ASSERT_CUDNN(cudnnCreateConvolutionDescriptor(&convolution));
  ASSERT_CUDNN(
      cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 1, 4, 2, 2));
  ASSERT_CUDNN(
      cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_INT8x4, CUDNN_TENSOR_NCHW_VECT_C, 4, 4, 1, 1));
  ASSERT_CUDNN(cudnnSetConvolution2dDescriptor(
      convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_INT32));
  std::size_t bytes = 0;
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED,
            cudnnGetConvolutionForwardWorkspaceSize(handle,
                                                    tensor,
                                                    filter,
                                                    convolution,
                                                    tensor,
                                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                                    &bytes));
  const auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  ASSERT_CUDNN(cudnnGetConvolutionForwardWorkspaceSize(
      handle, tensor, filter, convolution, tensor, algorithm, &bytes));
  const DeviceBuffer workspace(bytes);
  const float alpha = 1;
  const float beta = 0;
  ASSERT_CUDNN(cudnnConvolutionForward(handle,
                                       &alpha,
                                       tensor,
                                       xBuffer.get(),
                                       filter,
                                       wBuffer.get(),
                                       convolution,
                                       algorithm,
                                       workspace.get(),
                                       bytes,
                                       &beta,
                                       tensor,
                                       yBuffer.get()));
  cudaDeviceSynchronize();
  const std::vector<char> y = yBuffer.read();
  for (int p = 0; p < 4; ++p) {
    for (int k = 0; k < 4; ++k) {
      EXPECT_EQ(sums[p] * (k + 1),
                static_cast<signed char>(y[static_cast<std::size_t>(4 * p + k)]));
    }
  }
  cudnnDestroyConvolutionDescriptor(convolution);
  cudnnDestroyFilterDescriptor(filter);
  cudnnDestroyTensorDescriptor(tensor);
  cudnnDestroy(handle);
}

TEST(WorkspaceTest, IsOverwrittenToItsEnd) {
  Convolution c(ConvolutionCase{});
  std::size_t needed = 0;
  const int algorithm = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED;
  ASSERT_CUDNN(c.workspaceSize(Operation::kForward, algorithm, &needed));
  DeviceBuffer workspace(needed + 64);
  workspace.write(std::vector<char>(needed + 64, 7));
  const float alpha = 1;
  ASSERT_CUDNN(forward(c, &alpha, c.x().get(), algorithm, workspace.get(), needed + 64, c.yDesc()));
  cudaDeviceSynchronize();
  const std::vector<char> after = workspace.read();
  EXPECT_EQ('\xFF', after.front());
  EXPECT_EQ('\xFF', after[needed - 1]);
  EXPECT_EQ(7, after[needed]);
}

TEST(CaptureTest, ReplaysWithTheValuesOfTheCapture) {
  Convolution c(ConvolutionCase{});
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDNN(cudnnSetStream(c.handle(), stream));
  const std::vector<char> before = c.y().read();
  const std::vector<char> expected = c.expected(Operation::kForward);
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  {
    float alpha = 1;
    ASSERT_CUDNN(forward(c, &alpha, c.x().get(), 0, nullptr, 0, c.yDesc()));
    alpha = 17;  // copied at the call
  }
  cudnnConvolutionFwdAlgoPerf_t perf;
  int returned = 0;
  EXPECT_NE(CUDNN_STATUS_SUCCESS,
            cudnnFindConvolutionForwardAlgorithm(
                c.handle(), c.xDesc(), c.wDesc(), c.convDesc(), c.yDesc(), 1, &returned, &perf));
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  // Nor do later changes of a descriptor matter.
  ASSERT_CUDNN(cudnnSetConvolution2dDescriptor(
      c.convDesc(), 0, 0, 2, 2, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
  EXPECT_EQ(before, c.y().read());
  ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; ++i) {
    c.y().write(before);
    ASSERT_CUDA(cudaGraphLaunch(executable, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(expected, c.y().read());
  }
  ASSERT_CUDA(cudaGraphExecDestroy(executable));
  ASSERT_CUDA(cudaGraphDestroy(graph));
  ASSERT_CUDNN(cudnnSetStream(c.handle(), nullptr));
  ASSERT_CUDA(cudaStreamDestroy(stream));
}

// A handle owns device memory, so creating one is what CUDA calls unsafe during a capture.
TEST(CaptureTest, CreatingAHandleVoidsAGlobalCaptureUnlessTheThreadIsRelaxed) {
  cudaStream_t stream;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  for (const bool relaxed : {false, true}) {
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    cudaStreamCaptureMode mode =
        relaxed ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeGlobal;
    ASSERT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
    cudnnHandle_t handle = nullptr;
    EXPECT_EQ(relaxed ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED, cudnnCreate(&handle));
    ASSERT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(relaxed ? cudaSuccess : cudaErrorStreamCaptureInvalidated,
              cudaStreamEndCapture(stream, &graph));
    if (!relaxed) continue;
    EXPECT_CUDNN(cudnnDestroy(handle));
    ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  cudaGetLastError();
  ASSERT_CUDA(cudaStreamDestroy(stream));
}

// Everything a client does for one convolution; stops at the first error, gives back all it got.
cudnnStatus_t useEverything(void* x, void* w, void* y) {
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t tensor = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  const float alpha = 1;
  const float beta = 0;
  int count = 0;
  cudnnConvolutionFwdAlgoPerf_t perfs[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  const auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  const std::function<cudnnStatus_t()> steps[] = {
      [&] { return cudnnCreate(&handle); },
      [&] { return cudnnSetStream(handle, nullptr); },
      [&] { return cudnnCreateTensorDescriptor(&tensor); },
      [&] { return cudnnCreateFilterDescriptor(&filter); },
      [&] { return cudnnCreateConvolutionDescriptor(&convolution); },
      [&] {
        return cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 4, 4);
      },
      [&] {
        return cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 3, 3);
      },
      [&] {
        return cudnnSetConvolution2dDescriptor(
            convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
      },
      [&] {
        return cudnnFindConvolutionForwardAlgorithm(
            handle, tensor, filter, convolution, tensor, 8, &count, perfs);
      },
      [&] {
        return cudnnConvolutionForward(handle,
                                       &alpha,
                                       tensor,
                                       x,
                                       filter,
                                       w,
                                       convolution,
                                       algorithm,
                                       nullptr,
                                       0,
                                       &beta,
                                       tensor,
                                       y);
      },
  };
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  for (const auto& step : steps) {
    status = step();
    if (status != CUDNN_STATUS_SUCCESS) break;
  }
  for (const cudnnStatus_t destroyed : {cudnnDestroyConvolutionDescriptor(convolution),
                                        cudnnDestroyFilterDescriptor(filter),
                                        cudnnDestroyTensorDescriptor(tensor),
                                        cudnnDestroy(handle)}) {
    if (status == CUDNN_STATUS_SUCCESS) status = destroyed;
  }
  return status;
}

TEST(FaultTest, EveryCallCanFailAndNothingLeaks) {
  const DeviceBuffer x(64);
  const DeviceBuffer w(36);
  const DeviceBuffer y(64);
  ASSERT_CUDNN(useEverything(x.get(), w.get(), y.get()));
  const std::int64_t handles = ucudnnSimulatorLiveHandles(nullptr);
  const std::size_t bytes = ucudnnSimulatorLiveBytes(0);
  const std::int64_t before = ucudnnSimulatorCallCount(nullptr);
  ASSERT_CUDNN(useEverything(x.get(), w.get(), y.get()));
  const std::int64_t calls = ucudnnSimulatorCallCount(nullptr) - before;
  ASSERT_GT(calls, 14);
  int failures = 0;
  for (std::int64_t n = 1; n <= calls; ++n) {
    SCOPED_TRACE(n);
    ucudnnSimulatorFailCall(n);
    if (useEverything(x.get(), w.get(), y.get()) != CUDNN_STATUS_SUCCESS) ++failures;
    ucudnnSimulatorFailCall(0);
    EXPECT_EQ(handles, ucudnnSimulatorLiveHandles(nullptr));
    EXPECT_EQ(bytes, ucudnnSimulatorLiveBytes(0));
  }
  // At least cuDNN's own 14; some of the calls that Find makes (an allocation, a release) it gets
  // by without.
  EXPECT_GE(failures, 14);
}

TEST(ThreadsTest, HandlesOfDifferentThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      cudaStream_t stream;
      ASSERT_CUDA(cudaStreamCreate(&stream));
      for (int repeat = 0; repeat < 5; ++repeat) {
        Convolution c(ConvolutionCase{});
        ASSERT_CUDNN(cudnnSetStream(c.handle(), stream));
        const std::vector<char> expected = c.expected(Operation::kForward);
        ASSERT_CUDNN(c.run(Operation::kForward, 0));
        EXPECT_EQ(expected, c.y().read());
      }
      ASSERT_CUDA(cudaStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LibraryTest, IsTheSimulatedOneWithTheRealOnesVersions) {
  void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(nullptr, library);
  for (const char* name : {"cudnnCreate", "cudnnConvolutionForward", "cudnnOpTensor"}) {
    EXPECT_NE(nullptr, dlvsym(library, name, "libcudnn.so.9")) << name;
  }
  EXPECT_EQ(static_cast<std::size_t>(CUDNN_VERSION), cudnnGetVersion());
  dlclose(library);
}

}  // namespace
}  // namespace ucudnn::simulator::test
