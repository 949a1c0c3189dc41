// The operations of a problem's graph, as descriptors of cuDNN's graph API.
#pragma once

#include "kernels/backend.hpp"

#if UCUDNN_HAS_ENGINES

#include <vector>

#include "problem/problem.hpp"

namespace ucudnn {

/// The graph's tensors, in a variant pack too; those of kTensorVirtual and on are in no memory.
enum TensorId : std::int64_t {
  kTensorX = 'x',
  kTensorW = 'w',
  kTensorY = 'y',
  kTensorBias = 'b',
  kTensorZ = 'z',
  kTensorVirtual = 256
};

/// An operation's descriptor and attributes: a row for each operation, as Native has them.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
};

const OperationNames& namesOf(Operation operation) noexcept;

/// Packed, with the channels last for NHWC. Throws std::bad_alloc.
std::vector<std::int64_t> filterStrides(const Problem& problem);

/// The descriptors that a problem's graphs share if they differ only in beta.
struct GraphTensors {
  /// `alignment` as that of makeOperations. Throws Error.
  GraphTensors(const Problem& problem, std::int64_t alignment);

  BackendDescriptor convolution, x, w, y;
};

/// alpha is 1. x, w, y and z are aligned to `alignment` bytes; slices of x, y and z are aligned as
/// far as a sample's bytes allow. bias_activation_forward is y = act(conv(x) + z + bias), without z
/// if the problem adds none; its bias is packed and of y's type. Throws Error. REQUIRES: beta is 0
/// for bias_activation_forward.
std::vector<BackendDescriptor> makeOperations(const Problem& problem,
                                              const GraphTensors& tensors,
                                              double beta,
                                              std::int64_t alignment);

}  // namespace ucudnn

#endif
