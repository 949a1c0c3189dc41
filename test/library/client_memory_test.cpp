// Memory of ucudnnMalloc: where it is at first, and where it moves when calls come round.
#include "host_tensors.hpp"
#include "small_tensors.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kGranted = std::size_t{16} << 20;  // three tensors, and tiles

/// A tensor of 4 MiB.
class ClientTensor {
 public:
  ClientTensor(UcudnnHandle_t handle, const std::vector<char>& values)
      : handle_(handle), bytes_(values.size()) {
    EXPECT_CUDNN(ucudnnMalloc(handle, &memory_, bytes_));
    EXPECT_CUDA(cudaMemcpy(memory_, values.data(), bytes_, cudaMemcpyDefault));
  }
  ~ClientTensor() {
    if (memory_ != nullptr) {
      EXPECT_CUDNN(ucudnnFree(handle_, memory_));
    }
  }
  ClientTensor(const ClientTensor&) = delete;
  ClientTensor& operator=(const ClientTensor&) = delete;

  void* get() const { return memory_; }
  void* leave() { return std::exchange(memory_, nullptr); }
  bool isOnDevice() const {
    cudaPointerAttributes attributes{};
    EXPECT_CUDA(cudaPointerGetAttributes(&attributes, memory_));
    return attributes.type == cudaMemoryTypeDevice;
  }
  std::vector<char> read() const {
    std::vector<char> values(bytes_);
    EXPECT_CUDA(cudaMemcpy(values.data(), memory_, bytes_, cudaMemcpyDefault));
    return values;
  }

 private:
  const UcudnnHandle_t handle_;
  const std::size_t bytes_;
  void* memory_ = nullptr;
};

class ClientMemoryTest : public HostTensorsTest {
 protected:
  const Relu relu_{{4, 16, 128, 128}};
  const std::vector<char> garbage_ = std::vector<char>(relu_.x().size(), '\x7f');
};

/// Three tensors that no call uses are allocated first, then x and y.
struct Network {
  Network(UcudnnHandle_t handle, const Relu& itsRelu, const std::vector<char>& garbage)
      : relu(itsRelu),
        cold{{handle, itsRelu.x()}, {handle, itsRelu.x()}, {handle, itsRelu.x()}},
        x(handle, itsRelu.x()),
        y(handle, garbage) {}

  cudnnStatus_t run(UcudnnHandle_t handle) { return relu.run(handle, x.get(), y.get()); }
  void expectContents() {
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(relu.expected(), y.read());
    EXPECT_EQ(relu.x(), x.read());
    for (const ClientTensor& each : cold) EXPECT_EQ(relu.x(), each.read());
  }
  int onDevice() const {
    int count = x.isOnDevice() + y.isOnDevice();
    for (const ClientTensor& each : cold) count += each.isOnDevice();
    return count;
  }

  const Relu& relu;
  const ClientTensor cold[3];
  const ClientTensor x, y;
};

TEST_F(ClientMemoryTest, TensorsMoveWhereTheySaveTimeWhenCallsComeRound) {
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kGranted));
  Network network(handles.ours, relu_, garbage_);
  const void* const x = network.x.get();
  EXPECT_FALSE(network.x.isOnDevice());
  EXPECT_TRUE(network.cold[0].isOnDevice());
  ASSERT_CUDNN(network.run(handles.ours));
  EXPECT_FALSE(network.x.isOnDevice());  // the first round
  ASSERT_CUDNN(network.run(handles.ours));
  EXPECT_TRUE(network.x.isOnDevice());
  EXPECT_TRUE(network.y.isOnDevice());
  EXPECT_EQ(2, network.onDevice());
  EXPECT_EQ(x, network.x.get());
  network.expectContents();
  ASSERT_CUDNN(network.run(handles.ours));
  network.expectContents();
  EXPECT_EQ(2, network.onDevice());
}

// Convolutions are noted as well, and a copy costs nothing where kernels take longer.
TEST_F(ClientMemoryTest, ConvolutionsComeRoundToo) {
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kGranted));
  ConvolutionCase parameters;
  parameters.batch = 4;
  parameters.channels = parameters.filters = 16;
  parameters.input = {128, 128};
  Convolution convolution(parameters);
  const std::vector<char> expected = inCore(convolution, handles.native, UCUDNN_FORWARD, 1, 0);
  const ClientTensor cold[] = {
      {handles.ours, relu_.x()}, {handles.ours, relu_.x()}, {handles.ours, relu_.x()}};
  const ClientTensor x(handles.ours, convolution.x().read()), y(handles.ours, garbage_);
  const float one = 1, zero = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(i == 2, x.isOnDevice() && y.isOnDevice());
    ASSERT_CUDNN(cudnnConvolutionForward(handles.ours,
                                         &one,
                                         convolution.xDesc(),
                                         x.get(),
                                         convolution.wDesc(),
                                         convolution.w().get(),
                                         convolution.convDesc(),
                                         CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                         nullptr,
                                         0,
                                         &zero,
                                         convolution.yDesc(),
                                         y.get()));
    ASSERT_CUDA(cudaDeviceSynchronize());
    expectEqual(convolution, UCUDNN_FORWARD, expected, y.read());
  }
  EXPECT_FALSE(cold[0].isOnDevice());
}

TEST_F(ClientMemoryTest, TheyStayWhereBitsMustNotChangeOrSeveralHandlesCall) {
  {
    const Handles handles;
    ASSERT_CUDNN(handles.ours.setDeviceMemory(kGranted));
    ASSERT_CUDNN(handles.ours.setDeterministic(true));
    Network network(handles.ours, relu_, garbage_);
    for (int i = 0; i < 3; ++i) ASSERT_CUDNN(network.run(handles.ours));
    EXPECT_FALSE(network.x.isOnDevice());
    network.expectContents();
  }
  const Handles one, other;
  ASSERT_CUDNN(one.ours.setDeviceMemory(kGranted));
  ASSERT_CUDNN(other.ours.setDeviceMemory(kGranted));
  Network network(one.ours, relu_, garbage_);
  ASSERT_CUDNN(network.run(one.ours));
  ASSERT_CUDNN(network.run(other.ours));
  for (int i = 0; i < 3; ++i) ASSERT_CUDNN(network.run(one.ours));
  EXPECT_FALSE(network.x.isOnDevice());
  network.expectContents();
}

// A graph may use them whenever it is launched.
TEST_F(ClientMemoryTest, TheyStayBehindACapture) {
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeviceMemory(kGranted));
  Network network(handles.ours, relu_, garbage_);
  ASSERT_CUDNN(network.run(handles.ours));
  ASSERT_CUDA(cudaStreamSynchronize(nullptr));
  Captured captured(handles.ours);
  EXPECT_CUDNN(network.run(handles.ours));
  captured.end();
  captured.launch();
  captured.wait();
  for (int i = 0; i < 3; ++i) EXPECT_CUDNN(network.run(handles.ours));
  EXPECT_FALSE(network.x.isOnDevice());
  captured.launch();
  captured.wait();
  network.expectContents();
}

// Each function of the call that moves them fails once: nothing is lost.
TEST_F(ClientMemoryTest, FailuresLoseNothing) {
  if (!onSimulator()) GTEST_SKIP() << "needs the simulator's failures";
  { const Handles first; }
  const std::int64_t resources = liveResources(), ranges = liveHandles("address range"),
                     physicals = liveHandles("physical memory");
  std::int64_t calls = 1;
  for (std::int64_t n = 0; n <= calls; n += 1 + n / 50) {
    const Handles handles;
    ASSERT_CUDNN(handles.ours.setDeviceMemory(kGranted));
    Network network(handles.ours, relu_, garbage_);
    ASSERT_CUDNN(network.run(handles.ours));
    ASSERT_CUDA(cudaDeviceSynchronize());
    const std::int64_t before = callCount();
    failCall(n);
    const cudnnStatus_t status = network.run(handles.ours);
    failCall(0);
    static_cast<void>(cudaGetLastError());
    if (n == 0) {
      EXPECT_CUDNN(status);
      EXPECT_EQ(2, network.onDevice());
      calls = callCount() - before;
    }
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDNN(network.run(handles.ours));
    network.expectContents();
    ASSERT_FALSE(HasFailure()) << "call " << n << " of " << calls;
  }
  EXPECT_LT(20, calls);
  EXPECT_EQ(resources, liveResources());
  EXPECT_EQ(ranges, liveHandles("address range"));
  EXPECT_EQ(physicals, liveHandles("physical memory"));
}

// Memory outlives the handle, and the setting.
TEST_F(ClientMemoryTest, ItIsFreedByAnyHandle) {
  const Handles handles;
  void* memories[2] = {};
  {
    const Handles first;
    ASSERT_CUDNN(first.ours.setDeviceMemory(kGranted));
    ClientTensor large(first.ours, relu_.x());
    ClientTensor small(first.ours, std::vector<char>(1000));
    memories[0] = large.leave();
    memories[1] = small.leave();
  }
  std::vector<char> values(relu_.x().size());
  EXPECT_CUDA(cudaMemcpy(values.data(), memories[0], values.size(), cudaMemcpyDefault));
  EXPECT_EQ(relu_.x(), values);
  for (void* memory : memories) EXPECT_CUDNN(ucudnnFree(handles.ours, memory));
}

}  // namespace
}  // namespace ucudnn::test
