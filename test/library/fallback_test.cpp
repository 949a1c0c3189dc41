// Calls that cannot be planned run through plain cuDNN, and get cuDNN's own answer.
#include <functional>
#include <tuple>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

class FallbackTest : public LibraryTest {};

/// INT8x4 tensors, four channels to an element, as cuDNN's inference examples have them.
class Vectorized {
 public:
  Vectorized() : x_(4 * 8 * 64), w_(8 * 8 * 9), y_(4 * 8 * 64) {
    cudnnCreateTensorDescriptor(&xDesc_);
    cudnnCreateTensorDescriptor(&yDesc_);
    cudnnCreateFilterDescriptor(&wDesc_);
    cudnnCreateConvolutionDescriptor(&convDesc_);
    for (const auto tensor : {xDesc_, yDesc_})
      EXPECT_CUDNN(cudnnSetTensor4dDescriptor(
          tensor, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 4, 8, 8, 8));
    EXPECT_CUDNN(cudnnSetFilter4dDescriptor(
        wDesc_, CUDNN_DATA_INT8x4, CUDNN_TENSOR_NCHW_VECT_C, 8, 8, 3, 3));
    EXPECT_CUDNN(cudnnSetConvolution2dDescriptor(
        convDesc_, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_INT32));
    x_.write(std::vector<char>(x_.bytes(), 3));
    w_.write(std::vector<char>(w_.bytes(), 1));
  }
  ~Vectorized() {
    cudnnDestroyTensorDescriptor(xDesc_);
    cudnnDestroyTensorDescriptor(yDesc_);
    cudnnDestroyFilterDescriptor(wDesc_);
    cudnnDestroyConvolutionDescriptor(convDesc_);
  }
  Vectorized(const Vectorized&) = delete;
  Vectorized& operator=(const Vectorized&) = delete;

  template <typename Handle>
  cudnnStatus_t workspaceSize(Handle handle, std::size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(
        handle, xDesc_, wDesc_, convDesc_, yDesc_, kAlgorithm, bytes);
  }
  template <typename Handle>
  cudnnStatus_t run(Handle handle, Workspace workspace, std::vector<char>* result) {
    const float one = 1;
    const float zero = 0;
    y_.write(std::vector<char>(y_.bytes(), 99));
    const cudnnStatus_t status = cudnnConvolutionForward(handle,
                                                         &one,
                                                         xDesc_,
                                                         x_.get(),
                                                         wDesc_,
                                                         w_.get(),
                                                         convDesc_,
                                                         kAlgorithm,
                                                         workspace.memory,
                                                         workspace.bytes,
                                                         &zero,
                                                         yDesc_,
                                                         y_.get());
    *result = y_.read();
    return status;
  }

 private:
  static constexpr auto kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  cudnnTensorDescriptor_t xDesc_ = nullptr;
  cudnnTensorDescriptor_t yDesc_ = nullptr;
  cudnnFilterDescriptor_t wDesc_ = nullptr;
  cudnnConvolutionDescriptor_t convDesc_ = nullptr;
  DeviceBuffer x_, w_, y_;
};

TEST_F(FallbackTest, VectorizedIntegersAreLeftToCudnn) {
  const Handles handles;
  Vectorized vectorized;
  std::size_t nativeBytes = 0;
  std::size_t bytes = 0;
  const cudnnStatus_t status = vectorized.workspaceSize(handles.native, &nativeBytes);
  EXPECT_EQ(status, vectorized.workspaceSize(handles.ours, &bytes));
  EXPECT_EQ(nativeBytes, bytes);
  const DeviceBuffer workspace(nativeBytes);
  std::vector<char> expected, result;
  const long long bypassedBefore = statistics().bypassedCalls;
  const Workspace given{workspace.get(), nativeBytes};
  EXPECT_EQ(vectorized.run(handles.native, given, &expected),
            vectorized.run(handles.ours, given, &result));
  EXPECT_EQ(bypassedBefore + 1, statistics().bypassedCalls);
  EXPECT_TRUE(expected == result);
}

TEST_F(FallbackTest, DescriptorsThatDoNotBelongTogetherGetCudnnsOwnStatus) {
  const Handles handles;
  Convolution convolution((ConvolutionCase()));
  // x, w and y as they do not fit: y has another size, another batch, another type.
  const std::function<cudnnStatus_t(cudnnTensorDescriptor_t)> breakers[] = {
      [](cudnnTensorDescriptor_t y) {
        return cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 7, 8, 3, 3);
      },
      [](cudnnTensorDescriptor_t y) {
        return cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 6, 8, 9, 8);
      },
      [](cudnnTensorDescriptor_t y) {
        return cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 7, 8, 9, 8);
      }};
  for (const auto& breakIt : breakers) {
    ASSERT_CUDNN(breakIt(convolution.yDesc()));
    for (const ucudnnOperation_t operation : kOperations) {
      SCOPED_TRACE(toText(operation));
      const cudnnStatus_t status = convolution.run(handles.native, operation, 1, {});
      EXPECT_NE(CUDNN_STATUS_SUCCESS, status);
      EXPECT_EQ(status, convolution.run(handles.ours, operation, 1, {}));
      std::size_t bytes = 0;
      EXPECT_EQ(convolution.workspaceSize(handles.native, operation, 1, &bytes),
                convolution.workspaceSize(handles.ours, operation, 1, &bytes));
      std::vector<Performance> results;
      EXPECT_EQ(convolution.query(handles.native, operation, Query::kGet, 4, &results),
                convolution.query(handles.ours, operation, Query::kGet, 4, &results));
    }
  }
}

/// Forward with one argument, from 0, null; -1: none.
template <typename Handle>
cudnnStatus_t runWithNull(Handle handle, Convolution& c, int argument) {
  const float one = 1;
  const float zero = 0;
  const auto unless = [&](int i, auto pointer) {
    return i == argument ? decltype(pointer){} : pointer;
  };
  return cudnnConvolutionForward(unless(0, handle),
                                 unless(1, static_cast<const void*>(&one)),
                                 unless(2, c.xDesc()),
                                 unless(3, static_cast<const void*>(c.x().get())),
                                 unless(4, c.wDesc()),
                                 unless(5, static_cast<const void*>(c.w().get())),
                                 unless(6, c.convDesc()),
                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                 nullptr,
                                 0,
                                 unless(7, static_cast<const void*>(&zero)),
                                 unless(8, c.yDesc()),
                                 unless(9, static_cast<void*>(c.y().get())));
}

TEST_F(FallbackTest, NullArgumentsGetCudnnsOwnStatus) {
  const ForcedSplits forced({fftCase(40)});
  const Handles handles;
  Convolution convolution(fftCase(40));
  ASSERT_CUDNN(runWithNull(handles.ours, convolution, -1));
  for (int argument = 0; argument < 10; ++argument) {
    SCOPED_TRACE("argument " + std::to_string(argument));
    const cudnnStatus_t status = runWithNull(handles.native, convolution, argument);
    EXPECT_NE(CUDNN_STATUS_SUCCESS, status);
    EXPECT_EQ(status, runWithNull(handles.ours, convolution, argument));
  }
  EXPECT_CUDNN(runWithNull(handles.ours, convolution, -1)) << "and the plan is still good";
  EXPECT_NE(CUDNN_STATUS_SUCCESS, cudnnCreate(static_cast<UcudnnHandle_t*>(nullptr)));
  EXPECT_EQ(cudnnDestroy(cudnnHandle_t()), cudnnDestroy(UcudnnHandle_t()));
  std::size_t bytes = 0;
  EXPECT_EQ(convolution.workspaceSize(cudnnHandle_t(), UCUDNN_FORWARD, 0, &bytes),
            convolution.workspaceSize(UcudnnHandle_t(), UCUDNN_FORWARD, 0, &bytes));
  EXPECT_EQ(convolution.workspaceSize(handles.native, UCUDNN_FORWARD, 0, nullptr),
            convolution.workspaceSize(handles.ours, UCUDNN_FORWARD, 0, nullptr));
}

// A call whose output is overwritten is measured in its own buffers; one that adds to its output
// needs scratch memory for measuring, and runs as cuDNN runs it where there is none.
TEST_F(FallbackTest, ShortMemoryIsLoggedOnceAndGivesARightResult) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator limits its memory";
  const TemporaryDirectory directory;
  int problem = 0;
  for (const std::size_t freeBytes : {std::size_t{0}, std::size_t{100} << 10})
    for (const double beta : {0.0, 1.0}) {
      SCOPED_TRACE(std::to_string(freeBytes) + " bytes free, beta " + std::to_string(beta));
      const std::string log = directory.file(std::to_string(++problem));
      const EnvironmentGuard settings({{"UCUDNN_LOG_LEVEL", "info"}, {"UCUDNN_LOG_FILE", log}});
      const Handles handles;
      Convolution convolution(fftCase(120 + problem));
      convolution.fill();
      const std::vector<char> before = convolution.y().read();
      const auto expected = convolution.undivided(handles.native, UCUDNN_FORWARD, 0, 1, beta);
      const DeviceBuffer workspace(std::size_t{64} << 20);
      setMemory(0, freeBytes);
      for (int call = 0; call < 2; ++call) {
        convolution.y().write(before);
        EXPECT_CUDNN(convolution.run(
            handles.ours, UCUDNN_FORWARD, 0, {workspace.get(), workspace.bytes()}, 1, beta));
        EXPECT_LE(
            distance(
                convolution.geometry(UCUDNN_FORWARD), convolution.y().read(), expected.value()),
            1e-6);
      }
      EXPECT_EQ(cudaSuccess, cudaGetLastError());
      setMemory(0, std::size_t{100} << 30);
      // A framework's allocator holds all memory most of the time: nothing to warn of.
      EXPECT_EQ(0U, linesWith(log, {"[warn]"}).size());
      EXPECT_EQ(beta == 0 ? 0U : 1U, linesWith(log, {"[info]", "left to cuDNN", "memory"}).size());
    }
}

}  // namespace
}  // namespace ucudnn::test
