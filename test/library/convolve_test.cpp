// ucudnnMalloc, and ucudnnConvolve: convolutions in numbers, of tensors of any size and place.
#include <cstring>

#include "host_tensors.hpp"

namespace ucudnn::test {
namespace {

using ConvolveTest = HostTensorsTest;

TEST_F(ConvolveTest, MemoryIsTheDevicesWhileTheBudgetLasts) {
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

// Kernels that cuDNN runs for it would read host memory, and end the program's use of the device.
TEST_F(ConvolveTest, AQueryThatRunsKernelsIsRefused) {
  setArithmetic(Arithmetic::kOff);
  Convolution convolution(planeCase());
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kBudget));
  for (const Place place : {Place::kDevice, Place::kPageable}) {
    PlacedCall call(convolution, {place, Place::kDevice, Place::kDevice});
    cudnnConvolutionFwdAlgoPerf_t result{};
    int count = 0;
    EXPECT_EQ(place == Place::kDevice ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED,
              cudnnFindConvolutionForwardAlgorithmEx(handles.ours,
                                                     convolution.xDesc(),
                                                     call.x().get(),
                                                     convolution.wDesc(),
                                                     call.w().get(),
                                                     convolution.convDesc(),
                                                     convolution.yDesc(),
                                                     call.y().get(),
                                                     1,
                                                     &count,
                                                     &result,
                                                     nullptr,
                                                     0));
  }
}

/// The case as ucudnnConvolve takes it. REQUIRES: packed, NCHW.
ucudnnConvolution_t numbersOf(const ConvolutionCase& parameters, ucudnnOperation_t operation) {
  ucudnnConvolution_t numbers{};
  numbers.size = sizeof(numbers);
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

TEST_F(ConvolveTest, AConvolutionInNumbersNeedsNoDescriptors) {
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

TEST_F(ConvolveTest, AConvolutionIsMadeByTheNamesOfItsMembers) {
  ConvolutionCase parameters = planeCase();
  parameters.groups = 1;
  const ucudnnConvolution_t expected = numbersOf(parameters, UCUDNN_BACKWARD_DATA);
  ucudnnConvolution_t made;
  std::memset(&made, 0xff, sizeof(made));
  const ucudnnConvolution_t before = made;
  EXPECT_EQ(sizeof(made), ucudnnInitConvolution(nullptr, 0));
  EXPECT_EQ(sizeof(made), ucudnnInitConvolution(&made, sizeof(made) - 1));
  EXPECT_EQ(0, std::memcmp(&before, &made, sizeof(made))) << "too little room";
  EXPECT_EQ(sizeof(made), ucudnnInitConvolution(&made, sizeof(made)));
  const auto set = [&](const char* name, std::vector<int> numbers) {
    return ucudnnSetConvolution(&made, name, static_cast<int>(numbers.size()), numbers.data());
  };
  EXPECT_CUDNN(set("operation", {expected.operation}));
  EXPECT_CUDNN(set("type", {expected.type}));
  EXPECT_CUDNN(set("math", {expected.math}));
  EXPECT_CUDNN(set("dimensions", {expected.dimensions}));
  EXPECT_CUDNN(set("x", {expected.x, expected.x + 5}));
  EXPECT_CUDNN(set("w", {expected.w, expected.w + expected.dimensions}));
  EXPECT_CUDNN(set("padding", {expected.padding, expected.padding + 2}));
  EXPECT_CUDNN(set("stride", {expected.stride, expected.stride + 2}));
  EXPECT_CUDNN(set("dilation", {expected.dilation, expected.dilation + 2}));
  EXPECT_EQ(1, made.groups);
  EXPECT_CUDNN(set("relu", {1}));
  EXPECT_EQ(1, made.relu);
  EXPECT_CUDNN(set("relu", {0}));
  EXPECT_EQ(0, std::memcmp(&expected, &made, sizeof(made)));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, set("size", {1}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, set("X", {1}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, set("groups", {1, 1})) << "has one place";
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, set("x", {}));
  made.size -= 4;
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, set("x", {1}));
}

TEST_F(ConvolveTest, NumbersThatDoNotBelongTogetherAreRefused) {
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
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status([](auto& c, auto&, auto&) { c.size = 0; }));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status([](auto& c, auto&, auto&) { c.size += 8; }));
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
TEST_F(ConvolveTest, TensorsMayHave2To31ElementsAndMore) {
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
