#include "executor/distance.hpp"

#include <algorithm>
#include <cmath>

#include "cuda/owners.hpp"
#include "problem/problem.hpp"

namespace ucudnn {
namespace {

// Elements that one cuDNN operation works on: its sizes are 32-bit, and partial sums of squares in
// float stay exact enough when they are added up in double here.
constexpr std::size_t kChunk = std::size_t{1} << 22;

/// cuDNN's difference and norm of chunks of one type and length.
class ChunkNorm {
 public:
  ChunkNorm(cudnnHandle_t handle, cudnnDataType_t type, int length)
      : handle_(handle),
        isDouble_(type == CUDNN_DATA_DOUBLE),
        chunk_(makeTensor(type, length)),
        scalar_(makeTensor(isDouble_ ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, 1)),
        difference_(makeOwned<OpTensorDescriptor>(cudnnCreateOpTensorDescriptor)),
        norm_(makeOwned<ReduceTensorDescriptor>(cudnnCreateReduceTensorDescriptor)),
        result_(sizeof(double)) {
    const cudnnDataType_t compute = isDouble_ ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    UCUDNN_CHECK_CUDNN(cudnnSetOpTensorDescriptor(
        difference_.get(), CUDNN_OP_TENSOR_ADD, compute, CUDNN_PROPAGATE_NAN));
    UCUDNN_CHECK_CUDNN(cudnnSetReduceTensorDescriptor(norm_.get(),
                                                      CUDNN_REDUCE_TENSOR_NORM2,
                                                      compute,
                                                      CUDNN_PROPAGATE_NAN,
                                                      CUDNN_REDUCE_TENSOR_NO_INDICES,
                                                      CUDNN_32BIT_INDICES));
    std::size_t bytes = 0;
    UCUDNN_CHECK_CUDNN(
        cudnnGetReductionWorkspaceSize(handle, norm_.get(), chunk_.get(), scalar_.get(), &bytes));
    workspace_ = DeviceBuffer(bytes);
  }

  /// b := a - b
  void subtract(const void* a, void* b) {
    // cudnnOpTensor: C = op(alpha1 * A, alpha2 * B) + beta * C, and B must not be C unless they are
    // the same tensor.
    UCUDNN_CHECK_CUDNN(cudnnOpTensor(handle_,
                                     difference_.get(),
                                     factor(1),
                                     chunk_.get(),
                                     a,
                                     minusOne(),
                                     chunk_.get(),
                                     b,
                                     factor(0),
                                     chunk_.get(),
                                     b));
  }

  double norm(const void* data) {
    UCUDNN_CHECK_CUDNN(cudnnReduceTensor(handle_,
                                         norm_.get(),
                                         nullptr,
                                         0,
                                         workspace_.get(),
                                         workspace_.bytes(),
                                         factor(1),
                                         chunk_.get(),
                                         data,
                                         factor(0),
                                         scalar_.get(),
                                         result_.get()));
    cudaStream_t stream = nullptr;
    UCUDNN_CHECK_CUDNN(cudnnGetStream(handle_, &stream));
    double asDouble = 0;
    float asFloat = 0;
    void* const target = isDouble_ ? static_cast<void*>(&asDouble) : &asFloat;
    const std::size_t bytes = isDouble_ ? sizeof(asDouble) : sizeof(asFloat);
    UCUDNN_CHECK_CUDA(
        cudaMemcpyAsync(target, result_.get(), bytes, cudaMemcpyDeviceToHost, stream));
    UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream));
    return isDouble_ ? asDouble : static_cast<double>(asFloat);
  }

 private:
  static TensorDescriptor makeTensor(cudnnDataType_t type, int length) {
    auto descriptor = makeOwned<TensorDescriptor>(cudnnCreateTensorDescriptor);
    UCUDNN_CHECK_CUDNN(
        cudnnSetTensor4dDescriptor(descriptor.get(), CUDNN_TENSOR_NCHW, type, 1, 1, 1, length));
    return descriptor;
  }
  const void* factor(int which) const noexcept {
    static constexpr float kFloats[] = {0, 1};
    static constexpr double kDoubles[] = {0, 1};
    return isDouble_ ? static_cast<const void*>(&kDoubles[which]) : &kFloats[which];
  }
  const void* minusOne() const noexcept {
    static constexpr float kFloat = -1;
    static constexpr double kDouble = -1;
    return isDouble_ ? static_cast<const void*>(&kDouble) : &kFloat;
  }

  cudnnHandle_t handle_;
  bool isDouble_;
  TensorDescriptor chunk_, scalar_;
  OpTensorDescriptor difference_;
  ReduceTensorDescriptor norm_;
  DeviceBuffer result_, workspace_;
};

}  // namespace

double normalizedDistance(
    cudnnHandle_t handle, std::int32_t dataType, const void* a, void* b, std::size_t elements) {
  double differenceSquared = 0;
  double referenceSquared = 0;
  const auto run = [&](std::size_t begin, std::size_t length, std::size_t count) {
    if (length == 0 || count == 0) return;
    ChunkNorm chunk(handle, static_cast<cudnnDataType_t>(dataType), static_cast<int>(length));
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t offset = (begin + i * length) * elementBytes(dataType);
      const void* const left = static_cast<const char*>(a) + offset;
      void* const right = static_cast<char*>(b) + offset;
      referenceSquared += std::pow(chunk.norm(right), 2);
      chunk.subtract(left, right);
      differenceSquared += std::pow(chunk.norm(right), 2);
    }
  };
  const std::size_t whole = elements / kChunk;
  run(0, kChunk, whole);
  run(whole * kChunk, elements % kChunk, 1);
  if (differenceSquared == 0) return 0;
  return std::sqrt(differenceSquared / referenceSquared);
}

}  // namespace ucudnn
