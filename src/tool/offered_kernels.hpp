// All kernels of a problem, to be checked.
#pragma once

#include <cudnn.h>

#include <vector>

// Not included: their headers can't follow the public one, which overloads cuDNN's functions.
namespace ucudnn {
struct KernelOffer;
struct Problem;
}  // namespace ucudnn

namespace ucudnn::tool {

/// All that cuDNN offers for a problem and our own sources make of it, and the engines that these
/// leave out as slow. Asks on the host. Throws Error.
std::vector<KernelOffer> allKernels(cudnnHandle_t handle, const Problem& problem);

}  // namespace ucudnn::tool
