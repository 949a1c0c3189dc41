#include "executor/distance.hpp"

#include <cmath>

#include "cuda/owners.hpp"
#include "problem/problem.hpp"

namespace ucudnn {
namespace {

/// cuDNN's norms of chunks of one type and length. They are taken in float, or in double for
/// double: cuDNN reduces no bfloat16, and half overflows.
class ChunkNorms {
 public:
  ChunkNorms(cudnnHandle_t handle, cudnnDataType_t type, int length)
      : handle_(handle),
        wideType_(type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
        isWide_(type == wideType_),
        length_(length),
        chunk_(makeTensor(type, length)),
        wideChunk_(makeTensor(wideType_, length)),
        scalar_(makeTensor(wideType_, 1)),
        add_(makeOwned<OpTensorDescriptor>(cudnn().createOpTensorDescriptor)),
        norm_(makeOwned<ReduceTensorDescriptor>(cudnn().createReduceTensorDescriptor)),
        wide_(static_cast<std::size_t>(length) * elementBytes(wideType_)),
        result_(elementBytes(wideType_)) {
    UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &stream_));
    UCUDNN_CHECK_CUDNN(cudnn().setOpTensorDescriptor(
        add_.get(), CUDNN_OP_TENSOR_ADD, wideType_, CUDNN_PROPAGATE_NAN));
    UCUDNN_CHECK_CUDNN(cudnn().setReduceTensorDescriptor(norm_.get(),
                                                         CUDNN_REDUCE_TENSOR_NORM2,
                                                         wideType_,
                                                         CUDNN_PROPAGATE_NAN,
                                                         CUDNN_REDUCE_TENSOR_NO_INDICES,
                                                         CUDNN_32BIT_INDICES));
    std::size_t bytes = 0;
    UCUDNN_CHECK_CUDNN(cudnn().getReductionWorkspaceSize(
        handle, norm_.get(), wideChunk_.get(), scalar_.get(), &bytes));
    workspace_ = DeviceBuffer(bytes);
  }

  double ofDifference(const void* a, const void* b) {
    // Into memory of its own: cudnnOpTensor refuses a result in the place of its second operand.
    UCUDNN_CHECK_CUDNN(cudnn().opTensor(handle_,
                                        add_.get(),
                                        factor(1),
                                        chunk_.get(),
                                        a,
                                        factor(-1),
                                        chunk_.get(),
                                        b,
                                        factor(0),
                                        wideChunk_.get(),
                                        wide_.get()));
    return ofWide(wide_.get());
  }

  double of(const void* data) {
    if (isWide_) return ofWide(data);
    UCUDNN_CHECK_CUDNN(cudnn().transformTensor(
        handle_, factor(1), chunk_.get(), data, factor(0), wideChunk_.get(), wide_.get()));
    return ofWide(wide_.get());
  }

 private:
  static TensorDescriptor makeTensor(cudnnDataType_t type, int length) {
    auto descriptor = makeOwned<TensorDescriptor>(cudnn().createTensorDescriptor);
    UCUDNN_CHECK_CUDNN(
        cudnn().setTensor4dDescriptor(descriptor.get(), CUDNN_TENSOR_NCHW, type, 1, 1, 1, length));
    return descriptor;
  }

  /// -1, 0 or 1 as cuDNN reads it.
  const void* factor(int value) const noexcept {
    static constexpr float kFloats[] = {-1, 0, 1};
    static constexpr double kDoubles[] = {-1, 0, 1};
    return wideType_ == CUDNN_DATA_DOUBLE ? static_cast<const void*>(&kDoubles[value + 1])
                                          : &kFloats[value + 1];
  }

  double ofWide(const void* data) {
    // cuDNN refuses to reduce one element to one: it is its own norm.
    if (length_ == 1) return std::abs(read(data));
    UCUDNN_CHECK_CUDNN(cudnn().reduceTensor(handle_,
                                            norm_.get(),
                                            nullptr,
                                            0,
                                            workspace_.get(),
                                            workspace_.bytes(),
                                            factor(1),
                                            wideChunk_.get(),
                                            data,
                                            factor(0),
                                            scalar_.get(),
                                            result_.get()));
    return read(result_.get());
  }

  /// One number of the wide type.
  double read(const void* data) {
    double asDouble = 0;
    float asFloat = 0;
    void* const target = wideType_ == CUDNN_DATA_DOUBLE ? static_cast<void*>(&asDouble) : &asFloat;
    UCUDNN_CHECK_CUDA(
        cudaMemcpyAsync(target, data, result_.bytes(), cudaMemcpyDeviceToHost, stream_));
    UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return wideType_ == CUDNN_DATA_DOUBLE ? asDouble : static_cast<double>(asFloat);
  }

  cudnnHandle_t handle_;
  cudaStream_t stream_ = nullptr;
  cudnnDataType_t wideType_;
  bool isWide_;
  int length_;
  TensorDescriptor chunk_, wideChunk_, scalar_;
  OpTensorDescriptor add_;
  ReduceTensorDescriptor norm_;
  DeviceBuffer wide_, result_, workspace_;
};

}  // namespace

double normalizedDistance(cudnnHandle_t handle,
                          std::int32_t dataType,
                          const void* a,
                          const void* b,
                          std::size_t elements) {
  double differenceSquared = 0;
  double referenceSquared = 0;
  const auto run = [&](std::size_t begin, std::size_t length, std::size_t count) {
    if (length == 0 || count == 0) return;
    ChunkNorms norms(handle, static_cast<cudnnDataType_t>(dataType), static_cast<int>(length));
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t offset = (begin + i * length) * elementBytes(dataType);
      const void* const left = static_cast<const char*>(a) + offset;
      const void* const right = static_cast<const char*>(b) + offset;
      referenceSquared += std::pow(norms.of(right), 2);
      differenceSquared += std::pow(norms.ofDifference(left, right), 2);
    }
  };
  const std::size_t whole = elements / kDistanceChunk;
  run(0, kDistanceChunk, whole);
  run(whole * kDistanceChunk, elements % kDistanceChunk, 1);
  if (differenceSquared == 0) return 0;
  return std::sqrt(differenceSquared / referenceSquared);
}

}  // namespace ucudnn
