#include "kernels/sums.hpp"

#include <limits>

#include "cuda/block_copy.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/engine_configuration.hpp"

namespace ucudnn {
namespace {

constexpr float kOne = 1, kZero = 0;
constexpr int kMostElements = std::numeric_limits<int>::max();

std::size_t elementsOf(const Problem::Sizes& sizes, int dimensions) noexcept {
  std::size_t elements = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions); ++i)
    elements *= static_cast<std::size_t>(sizes[i]);
  return elements;
}

/// A packed tensor. Without gaps the order of elements doesn't matter; but samples and channels are
/// kept, because cuDNN spreads a call over them.
TensorDescriptor makePacked(std::int32_t type, const Problem::Sizes& sizes, int dimensions) {
  const auto last = static_cast<std::size_t>(dimensions) - 1;
  int rows = 1;
  for (std::size_t i = 2; i < last; ++i) rows *= sizes[i];
  auto descriptor = makeOwned<TensorDescriptor>(cudnn().createTensorDescriptor);
  UCUDNN_CHECK_CUDNN(cudnn().setTensor4dDescriptor(descriptor.get(),
                                                   CUDNN_TENSOR_NCHW,
                                                   static_cast<cudnnDataType_t>(type),
                                                   sizes[0],
                                                   sizes[1],
                                                   rows,
                                                   sizes[last]));
  return descriptor;
}

}  // namespace

std::vector<Part> cutToSum(const Problem& problem, int parts) {
  const std::int32_t type = problem.wType;
  if (parts < 2 || parts > kMostSums || problem.operation != Operation::kBackwardFilter ||
      !isRounded(type) || problem.xType != type || problem.yType != type ||
      problem.computeType != CUDNN_DATA_FLOAT || problem.dimensions < 4 ||
      problem.batch() % parts != 0)
    return {};
  const Offsets second = offsetsOfSample(problem, problem.batch() / parts);
  const std::size_t x = elementsOf(problem.xSizes, problem.dimensions);
  const std::size_t y = elementsOf(problem.ySizes, problem.dimensions);
  const auto count = static_cast<std::size_t>(parts);
  const bool areContiguous =
      problem.xBytes() == x * elementBytes(type) && problem.yBytes() == y * elementBytes(type) &&
      problem.xBytes() == count * second.x && problem.yBytes() == count * second.y;
  if (!areContiguous || !areForEngines(second) || x / count > kMostElements ||
      y / count > kMostElements || problem.wBytes() / elementBytes(type) > kMostElements)
    return {};
  return cutEqually(Part(problem), Direction::kBatch, parts);
}

std::vector<Part> cutToSplit(const Problem& problem, int parts) {
  std::vector<Part> cut = cutToSum(problem, parts);
  if (!cut.empty() && !hasBlockCopies()) cut.clear();
  return cut;
}

Problem inFloat(const Problem& part) noexcept {
  Problem wide = part;
  wide.xType = wide.wType = wide.yType = CUDNN_DATA_FLOAT;
  return wide;
}

WideInputs::WideInputs(const Problem& part)
    : x_(makePacked(part.xType, part.xSizes, part.dimensions)),
      wideX_(makePacked(CUDNN_DATA_FLOAT, part.xSizes, part.dimensions)),
      y_(makePacked(part.yType, part.ySizes, part.dimensions)),
      wideY_(makePacked(CUDNN_DATA_FLOAT, part.ySizes, part.dimensions)) {}

cudnnStatus_t WideInputs::copy(cudnnHandle_t handle,
                               const ConvolutionPointers& part,
                               const ConvolutionPointers& wide) const noexcept {
  const cudnnStatus_t status = cudnn().transformTensor(
      handle, &kOne, x_.get(), part.x, &kZero, wideX_.get(), const_cast<void*>(wide.x));
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return cudnn().transformTensor(
      handle, &kOne, y_.get(), part.y, &kZero, wideY_.get(), const_cast<void*>(wide.y));
}

WideFilter::WideFilter(const Problem& part)
    : w_(makePacked(part.wType, part.wSizes, part.dimensions)),
      wideW_(makePacked(CUDNN_DATA_FLOAT, part.wSizes, part.dimensions)),
      larger_(makeOwned<OpTensorDescriptor>(cudnn().createOpTensorDescriptor)) {
  UCUDNN_CHECK_CUDNN(cudnn().setOpTensorDescriptor(
      larger_.get(), CUDNN_OP_TENSOR_MAX, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
}

/// cudnnTransformTensor converts no other type to half or bfloat16. So this takes the maximum of
/// each number and itself: the number again, infinities and NaNs too.
cudnnStatus_t WideFilter::round(cudnnHandle_t handle,
                                const void* wide,
                                const void* beta,
                                const void* w) const noexcept {
  return cudnn().opTensor(handle,
                          larger_.get(),
                          &kOne,
                          wideW_.get(),
                          wide,
                          &kOne,
                          wideW_.get(),
                          wide,
                          beta,
                          w_.get(),
                          const_cast<void*>(w));
}

}  // namespace ucudnn
