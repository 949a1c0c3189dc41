// The arithmetic of pooling, on tensors of 4 or 5 dimensions.
#pragma once

#include "simulator/cudnn/descriptors.hpp"

namespace ucudnn::simulator {

/// y = alpha * pool(x) + beta * y. A window with nothing but padding under it has the maximum
/// -infinity and the average 0.
void poolForward(const cudnnPoolingStruct& pooling,
                 const TensorShape& xShape,
                 const void* x,
                 const TensorShape& yShape,
                 void* y,
                 double alpha,
                 double beta);

/// dx = alpha * (gradient of pool at x) + beta * dx. A maximum's gradient goes to the first of
/// equals.
void poolBackward(const cudnnPoolingStruct& pooling,
                  const TensorShape& xShape,
                  const void* x,
                  const TensorShape& dyShape,
                  const void* dy,
                  const TensorShape& dxShape,
                  void* dx,
                  double alpha,
                  double beta);

}  // namespace ucudnn::simulator
