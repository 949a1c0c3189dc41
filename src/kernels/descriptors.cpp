#include "kernels/descriptors.hpp"

#include "kernels/native.hpp"

// The legacy convolution API is marked deprecated in cuDNN 9; it is what μ-cuDNN stands in for.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {
namespace {

/// Null: cuDNN has none with these values. REQUIRES: it spans fewer than 2^31 elements.
TensorDescriptor makeTensor(std::int32_t type,
                            int dimensions,
                            const Problem::Sizes& sizes,
                            const Problem::Strides& strides) {
  Problem::Sizes narrow{};
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    narrow[i] = static_cast<std::int32_t>(strides[i]);
    if (narrow[i] != strides[i]) return nullptr;  // from the only one to none
  }
  auto descriptor = makeOwned<TensorDescriptor>(cudnn().createTensorDescriptor);
  const cudnnStatus_t status = cudnn().setTensorNdDescriptor(descriptor.get(),
                                                             static_cast<cudnnDataType_t>(type),
                                                             dimensions,
                                                             sizes.data(),
                                                             narrow.data());
  if (isRefusal(status)) return nullptr;
  UCUDNN_CHECK_CUDNN(status);
  return descriptor;
}

}  // namespace

ProblemDescriptors::ProblemDescriptors(const Problem& problem) {
  if (problem.isLarge()) return;
  x_ = makeTensor(problem.xType, problem.dimensions, problem.xSizes, problem.xStrides);
  y_ = makeTensor(problem.yType, problem.dimensions, problem.ySizes, problem.yStrides);
  if (x_ == nullptr || y_ == nullptr) {
    x_.reset();
    y_.reset();
    return;
  }
  w_ = makeOwned<FilterDescriptor>(cudnn().createFilterDescriptor);
  convolution_ = makeOwned<ConvolutionDescriptor>(cudnn().createConvolutionDescriptor);
  UCUDNN_CHECK_CUDNN(
      cudnn().setFilterNdDescriptor(w_.get(),
                                    static_cast<cudnnDataType_t>(problem.wType),
                                    static_cast<cudnnTensorFormat_t>(problem.wFormat),
                                    problem.dimensions,
                                    problem.wSizes.data()));
  UCUDNN_CHECK_CUDNN(
      cudnn().setConvolutionNdDescriptor(convolution_.get(),
                                         problem.dimensions - 2,
                                         problem.pads.data(),
                                         problem.strides.data(),
                                         problem.dilations.data(),
                                         static_cast<cudnnConvolutionMode_t>(problem.mode),
                                         static_cast<cudnnDataType_t>(problem.computeType)));
  UCUDNN_CHECK_CUDNN(cudnn().setConvolutionGroupCount(convolution_.get(), problem.groups));
  UCUDNN_CHECK_CUDNN(cudnn().setConvolutionMathType(
      convolution_.get(), static_cast<cudnnMathType_t>(problem.mathType)));
}

}  // namespace ucudnn
