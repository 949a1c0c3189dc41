#include "plan/call.hpp"

#include <algorithm>

namespace ucudnn {

bool readFused(const ConvolutionCall& call, Problem& problem) noexcept {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  double coefficient = 0;
  if (cudnn().getActivationDescriptor(call.fused->activation, &mode, &nan, &coefficient) !=
      CUDNN_STATUS_SUCCESS)
    return false;
  problem.activation = static_cast<std::int16_t>(mode);
  if (call.pointers.beta == nullptr) return false;
  problem.addsZ = isZero(call.pointers.beta, problem) ? 0 : 1;  // alpha2
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int dimensions = 0;
  Problem::Sizes sizes{};
  Problem::Sizes strides{};
  return cudnn().getTensorNdDescriptor(call.fused->zDescriptor,
                                       Problem::kMaxDimensions,
                                       &type,
                                       &dimensions,
                                       sizes.data(),
                                       strides.data()) == CUDNN_STATUS_SUCCESS &&
         type == problem.yType && dimensions == problem.dimensions && sizes == problem.ySizes &&
         std::equal(strides.begin(), strides.end(), problem.yStrides.begin());
}

}  // namespace ucudnn
