#include "kernels/engine_calls.hpp"

#include <algorithm>

#include "kernels/factor.hpp"
#include "problem/activation.hpp"

namespace ucudnn {
namespace {

bool isAligned(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer) % kEngineAlignment == 0;
}

bool overlap(const void* a, const void* b, std::size_t bytes) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(a);
  const auto second = reinterpret_cast<std::uintptr_t>(b);
  return (first < second ? second - first : first - second) < bytes;
}

/// Whether a descriptor describes the bias of the graph.
bool isGraphsBias(const Problem& problem, cudnnTensorDescriptor_t descriptor) noexcept {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int dimensions = 0;
  Problem::Sizes sizes{};
  Problem::Sizes strides{};
  const Problem::Sizes graphs{1, problem.ySizes[1], 1, 1, 1};
  return cudnn().getTensorNdDescriptor(descriptor,
                                       Problem::kMaxDimensions,
                                       &type,
                                       &dimensions,
                                       sizes.data(),
                                       strides.data()) == CUDNN_STATUS_SUCCESS &&
         type == problem.yType && dimensions == problem.dimensions && strides[1] == 1 &&
         std::equal(sizes.begin(), sizes.begin() + dimensions, graphs.begin());
}

/// Whether the call treats NaNs as the graph does.
bool areNansGraphs(const Problem& problem, cudnnActivationDescriptor_t descriptor) noexcept {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  double coefficient = 0;
  return !activates(problem) ||
         (cudnn().getActivationDescriptor(descriptor, &mode, &nan, &coefficient) ==
              CUDNN_STATUS_SUCCESS &&
          nan == nansOf(problem));
}

/// Whether the call's bias, z and activation are the graph's. Graphs of several operations don't
/// work in place (cuDNN's documentation of its graph API), unlike cuDNN's own call: so z must not
/// be y.
bool suitsGraph(const Problem& problem, const void* y, const BiasActivation& fused) noexcept {
  return fused.bias != nullptr && isGraphsBias(problem, fused.biasDescriptor) &&
         areNansGraphs(problem, fused.activation) &&
         (problem.addsZ == 0 ||
          (fused.z != nullptr && isAligned(fused.z) && !overlap(fused.z, y, problem.yBytes())));
}

}  // namespace

bool areFactorsForEngines(const Problem& problem, const ConvolutionPointers& pointers) noexcept {
  const double beta = valueOf(pointers.beta, problem.xType);
  return valueOf(pointers.alpha, problem.xType) == 1 && (beta == 0 || beta == 1);
}

bool isMemoryForEngines(const ConvolutionPointers& pointers) noexcept {
  return pointers.x != nullptr && pointers.w != nullptr && pointers.y != nullptr &&
         isAligned(pointers.x) && isAligned(pointers.w) && isAligned(pointers.y) &&
         isAligned(pointers.workspace);
}

bool suitsEngines(const Problem& problem,
                  const ConvolutionPointers& pointers,
                  const BiasActivation* fused) noexcept {
  return pointers.alpha != nullptr && pointers.beta != nullptr &&
         areFactorsForEngines(problem, pointers) && isMemoryForEngines(pointers) &&
         (fused == nullptr || suitsGraph(problem, pointers.y, *fused));
}

}  // namespace ucudnn
