// Arguments that cuDNN refuses, and descriptors.
#include "convolution_fixture.hpp"

namespace ucudnn::simulator::test {
namespace {

std::string lastError() {
  char message[512] = "";
  cudnnGetLastErrorString(message, sizeof message);
  return message;
}

TEST(ConvolutionArgumentsTest, AreRefusedAsCudnnRefusesThem) {
  Convolution c(ConvolutionCase{});
  const float alpha = 1;
  std::size_t needed = 0;
  ASSERT_CUDNN(c.workspaceSize(Operation::kForward, CUDNN_CONVOLUTION_FWD_ALGO_FFT, &needed));
  ASSERT_GT(needed, 0U);
  const DeviceBuffer workspace(needed);
  const int fft = CUDNN_CONVOLUTION_FWD_ALGO_FFT;
  void* x = c.x().get();

  EXPECT_EQ(CUDNN_STATUS_SUCCESS, forward(c, &alpha, x, fft, workspace.get(), needed, c.yDesc()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            forward(c, nullptr, x, fft, workspace.get(), needed, c.yDesc()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            forward(c, &alpha, nullptr, fft, workspace.get(), needed, c.yDesc()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            forward(c, &alpha, x, fft, workspace.get(), needed - 1, c.yDesc()));
  EXPECT_NE(std::string::npos, lastError().find("workspace")) << lastError();
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, forward(c, &alpha, x, fft, nullptr, needed, c.yDesc()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, forward(c, &alpha, x, fft, workspace.get(), needed, nullptr));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, forward(c, &alpha, x, 0, nullptr, 0, c.xDesc()));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED,
            forward(c, &alpha, x, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, nullptr, 0, c.yDesc()));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, forward(c, &alpha, x, 9, nullptr, 0, c.yDesc()));
}

TEST(ConvolutionArgumentsTest, MismatchesAreRefusedByQueries) {
  Convolution c(ConvolutionCase{});
  std::size_t bytes = 0;
  EXPECT_CUDNN(c.workspaceSize(Operation::kForward, 0, &bytes));
  ASSERT_CUDNN(cudnnSetConvolutionGroupCount(c.convDesc(), 2));
  EXPECT_CUDNN(c.workspaceSize(Operation::kForward, 0, &bytes));  // the filter has all channels
  int dims[4] = {};
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnGetConvolutionNdForwardOutputDim(c.convDesc(), c.xDesc(), c.wDesc(), 4, dims));
  ASSERT_CUDNN(cudnnSetConvolutionGroupCount(c.convDesc(), 1));
  ASSERT_CUDNN(cudnnSetConvolution2dDescriptor(
      c.convDesc(), 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, c.workspaceSize(Operation::kForward, 0, &bytes));
  ASSERT_CUDNN(cudnnSetConvolution2dDescriptor(
      c.convDesc(), 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_DOUBLE));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, c.workspaceSize(Operation::kForward, 0, &bytes));
}

TEST(ConvolutionArgumentsTest, ThreeDimensionsAreNotSupported) {
  ConvolutionCase line;
  line.input = {9};
  line.filter = {3};
  line.pad = line.stride = line.dilation = {1};
  Convolution c(line);
  std::size_t bytes = 0;
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, c.workspaceSize(Operation::kForward, 0, &bytes));
}

TEST(DescriptorTest, RefusesNonsense) {
  cudnnTensorDescriptor_t tensor = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  ASSERT_CUDNN(cudnnCreateTensorDescriptor(&tensor));
  ASSERT_CUDNN(cudnnCreateConvolutionDescriptor(&convolution));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 0, 1, 1, 1));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnSetTensor4dDescriptor(nullptr, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
  EXPECT_EQ(
      CUDNN_STATUS_BAD_PARAM,
      cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 1, 6, 1, 1));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnSetConvolution2dDescriptor(
                convolution, -1, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnSetConvolution2dDescriptor(
                convolution, 0, 0, 0, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolutionGroupCount(convolution, 0));
  EXPECT_CUDNN(cudnnDestroyConvolutionDescriptor(convolution));
  EXPECT_CUDNN(cudnnDestroyTensorDescriptor(tensor));
  EXPECT_CUDNN(cudnnDestroyTensorDescriptor(nullptr));
}

// Seen on an H200: fewer than there are, more, and more than CUDNN_DIM_MAX.
TEST(DescriptorTest, GivesAsManyDimensionsAsThereAreAndAreAskedFor) {
  cudnnTensorDescriptor_t tensor = nullptr;
  ASSERT_CUDNN(cudnnCreateTensorDescriptor(&tensor));
  ASSERT_CUDNN(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 4, 5));
  const std::vector<int> all{2, 3, 4, 5};
  const std::vector<int> allStrides{60, 20, 5, 1};
  for (const int requested : {0, 2, 3, 4, 5, 8, CUDNN_DIM_MAX, CUDNN_DIM_MAX + 1, 1000}) {
    SCOPED_TRACE(requested);
    cudnnDataType_t type = CUDNN_DATA_HALF;
    int rank = 0;
    std::vector<int> dims(10, -1);
    std::vector<int> strides(10, -1);
    ASSERT_CUDNN(
        cudnnGetTensorNdDescriptor(tensor, requested, &type, &rank, dims.data(), strides.data()));
    EXPECT_EQ(CUDNN_DATA_FLOAT, type);
    EXPECT_EQ(4, rank);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const bool written = d < 4 && d < static_cast<std::size_t>(requested);
      EXPECT_EQ(written ? all[d] : -1, dims[d]) << d;
      EXPECT_EQ(written ? allStrides[d] : -1, strides[d]) << d;
    }
  }
  EXPECT_CUDNN(cudnnDestroyTensorDescriptor(tensor));
}

// Strides are ints in cuDNN's interface; 65536 * 32768 is the first that is none.
TEST(DescriptorTest, RefusesStridesThatDoNotFitAnInt) {
  cudnnTensorDescriptor_t tensor = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  ASSERT_CUDNN(cudnnCreateTensorDescriptor(&tensor));
  ASSERT_CUDNN(cudnnCreateFilterDescriptor(&filter));
  const int kMost = 2147483647;
  struct {
    int dims[4];
    bool fits;
    bool filterFits;
  } const cases[] = {
      {{1, 65536, 32768, 1}, false, false},
      {{1, 1, 65536, 32768}, false, false},
      {{1, 65535, 32768, 1}, true, true},
      {{kMost, 1, 1, 1}, true, true},
      {{4, 1, 1, kMost}, false, true},  // more elements than an int holds
      {{1, 2, 1, kMost}, false, false},
      {{kMost, kMost, kMost, kMost}, false, false},
  };
  for (const auto& test : cases) {
    const int* d = test.dims;
    SCOPED_TRACE(testing::PrintToString(std::vector<int>(d, d + 4)));
    const auto expected = [](bool fits) {
      return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    };
    for (const cudnnTensorFormat_t format : {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC}) {
      EXPECT_EQ(
          expected(test.fits),
          cudnnSetTensor4dDescriptor(tensor, format, CUDNN_DATA_FLOAT, d[0], d[1], d[2], d[3]));
      EXPECT_EQ(
          expected(test.filterFits),
          cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, format, d[0], d[1], d[2], d[3]));
    }
  }
  EXPECT_CUDNN(cudnnDestroyFilterDescriptor(filter));
  EXPECT_CUDNN(cudnnDestroyTensorDescriptor(tensor));
}

TEST(ConvolutionArgumentsTest, PaddingBeyondAnIntIsRefused) {
  Convolution c(ConvolutionCase{});
  std::size_t bytes = 0;
  const int pad = 2147483647;
  ASSERT_CUDNN(cudnnSetConvolution2dDescriptor(
      c.convDesc(), pad, pad, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, c.workspaceSize(Operation::kForward, 0, &bytes));
  ASSERT_CUDNN(cudnnSetConvolution2dDescriptor(
      c.convDesc(), 1, 1, 1, 1, pad, pad, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, c.workspaceSize(Operation::kForward, 0, &bytes));
}

TEST(DescriptorTest, GivesBackWhatWasSet) {
  cudnnTensorDescriptor_t tensor = nullptr;
  ASSERT_CUDNN(cudnnCreateTensorDescriptor(&tensor));
  ASSERT_CUDNN(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 2, 3, 4, 5));
  cudnnDataType_t type;
  int rank = 0;
  int dims[4];
  int strides[4];
  ASSERT_CUDNN(cudnnGetTensorNdDescriptor(tensor, 4, &type, &rank, dims, strides));
  EXPECT_EQ(CUDNN_DATA_HALF, type);
  EXPECT_EQ(4, rank);
  EXPECT_EQ((std::vector<int>{2, 3, 4, 5}), std::vector<int>(dims, dims + 4));
  EXPECT_EQ((std::vector<int>{60, 1, 15, 3}), std::vector<int>(strides, strides + 4));
  std::size_t bytes = 0;
  ASSERT_CUDNN(cudnnGetTensorSizeInBytes(tensor, &bytes));
  EXPECT_EQ(240U, bytes);
  EXPECT_CUDNN(cudnnDestroyTensorDescriptor(tensor));
}

}  // namespace
}  // namespace ucudnn::simulator::test
