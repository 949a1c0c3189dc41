#include "cuda/captured_calls.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "support/device.hpp"

namespace ucudnn {
namespace {

/// Works on eight floats, as cuDNN's calls put them on a handle's stream.
class CapturedCallsTest : public ::testing::Test {
 protected:
  static constexpr int kFloats = 8;

  void SetUp() override {
    if (!test::hasDevice()) GTEST_SKIP() << "no GPU";
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
    tensor_ = makeOwned<TensorDescriptor>(cudnnCreateTensorDescriptor);
    UCUDNN_CHECK_CUDNN(cudnnSetTensor4dDescriptor(
        tensor_.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, kFloats));
    UCUDNN_CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), kFloats * sizeof(float)));
  }
  void TearDown() override { cudaFree(data_); }

  cudaStream_t stream() const {
    cudaStream_t stream = nullptr;
    UCUDNN_CHECK_CUDNN(cudnnGetStream(handle_.get(), &stream));
    return stream;
  }
  void set(float value) const {
    UCUDNN_CHECK_CUDNN(cudnnSetTensor(handle_.get(), tensor_.get(), data_, &value));
  }
  void scale(float factor) const {
    UCUDNN_CHECK_CUDNN(cudnnScaleTensor(handle_.get(), tensor_.get(), data_, &factor));
  }

  /// The number of nodes of each type in the captured calls.
  template <typename Enqueue>
  std::map<cudaGraphNodeType, int> capture(Enqueue enqueue) {
    calls_ = captureCalls(handle_.get(), [&] {
      enqueue();
      return CUDNN_STATUS_SUCCESS;
    });
    std::vector<cudaGraphNode_t> nodes(calls_->nodes);
    std::size_t count = nodes.size();
    UCUDNN_CHECK_CUDA(cudaGraphGetNodes(calls_->graph.get(), nodes.data(), &count));
    std::map<cudaGraphNodeType, int> types;
    for (cudaGraphNode_t const node : nodes) {
      cudaGraphNodeType type;
      UCUDNN_CHECK_CUDA(cudaGraphNodeGetType(node, &type));
      ++types[type];
    }
    return types;
  }

  std::vector<float> launched() const {
    const GraphExec exec = instantiate(*calls_);
    UCUDNN_CHECK_CUDA(cudaGraphLaunch(exec.get(), nullptr));
    std::vector<float> values(kFloats);
    UCUDNN_CHECK_CUDA(
        cudaMemcpy(values.data(), data_, kFloats * sizeof(float), cudaMemcpyDeviceToHost));
    return values;
  }

  using Types = std::map<cudaGraphNodeType, int>;
  CudnnHandle handle_;
  TensorDescriptor tensor_;
  float* data_ = nullptr;
  std::optional<CapturedCalls> calls_;
};

TEST_F(CapturedCallsTest, MemoryIsClearedByKernels) {
  const auto types = capture([&] {
    set(3);
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(data_, 0, 4 * sizeof(float), stream()));
    scale(2);
  });
  EXPECT_EQ(types, (Types{{cudaGraphNodeTypeKernel, 3}}));
  EXPECT_EQ(launched(), (std::vector<float>{0, 0, 0, 0, 6, 6, 6, 6}));
}

TEST_F(CapturedCallsTest, MemsetsAtBothEndsAndInARowAreReplaced) {
  const auto types = capture([&] {
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(data_, 0, 2 * sizeof(float), stream()));
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(data_ + 2, 0, 6 * sizeof(float), stream()));
    set(5);
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(data_ + 7, 0, sizeof(float), stream()));
  });
  EXPECT_EQ(types, (Types{{cudaGraphNodeTypeKernel, 4}}));
  EXPECT_EQ(launched(), (std::vector<float>{5, 5, 5, 5, 5, 5, 5, 0}));
}

TEST_F(CapturedCallsTest, BranchesStayBranches) {
  const Event forked = makeEvent(), joined = makeEvent();
  const auto side = [] {
    cudaStream_t created = nullptr;
    UCUDNN_CHECK_CUDA(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking));
    return Stream(created);
  }();
  const auto types = capture([&] {
    set(3);
    UCUDNN_CHECK_CUDA(cudaEventRecord(forked.get(), stream()));
    UCUDNN_CHECK_CUDA(cudaStreamWaitEvent(side.get(), forked.get(), 0));
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(data_, 0, 4 * sizeof(float), stream()));
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(data_ + 6, 0, 2 * sizeof(float), side.get()));
    UCUDNN_CHECK_CUDA(cudaEventRecord(joined.get(), side.get()));
    UCUDNN_CHECK_CUDA(cudaStreamWaitEvent(stream(), joined.get(), 0));
    scale(2);
  });
  EXPECT_EQ(types, (Types{{cudaGraphNodeTypeKernel, 4}}));
  EXPECT_EQ(launched(), (std::vector<float>{0, 0, 0, 0, 6, 6, 0, 0}));
}

// The kernel is far slower than a memset.
TEST_F(CapturedCallsTest, LargeMemoryIsClearedByMemsets) {
  constexpr std::size_t kBytes = 4096;
  void* large = nullptr;
  UCUDNN_CHECK_CUDA(cudaMalloc(&large, kBytes + 4));
  for (const std::size_t bytes : {kBytes, kBytes + 4}) {
    const auto types =
        capture([&] { UCUDNN_CHECK_CUDA(cudaMemsetAsync(large, 0, bytes, stream())); });
    EXPECT_EQ(types,
              (Types{{bytes > kBytes ? cudaGraphNodeTypeMemset : cudaGraphNodeTypeKernel, 1}}));
  }
  UCUDNN_CHECK_CUDA(cudaFree(large));
}

TEST_F(CapturedCallsTest, OtherMemsetsStay) {
  const auto types = capture([&] {
    set(0);
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(data_, 0x40, 2 * sizeof(float), stream()));
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(data_ + 1, 0, 3, stream()));
    // A gradient in half may lie anywhere, where floats can't be written.
    UCUDNN_CHECK_CUDA(
        cudaMemsetAsync(reinterpret_cast<char*>(data_ + 2) + 2, 0, sizeof(float), stream()));
    scale(1);
  });
  EXPECT_EQ(types, (Types{{cudaGraphNodeTypeKernel, 2}, {cudaGraphNodeTypeMemset, 3}}));
  // 0x40404040, and 0x40000000 of which three bytes have been cleared.
  EXPECT_EQ(launched(), (std::vector<float>{0x1.8080808p+1F, 2, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace ucudnn
