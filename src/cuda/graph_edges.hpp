// Functions of CUDA's about the edges of a graph, which have these parameters since CUDA 13.
#pragma once

#include <cuda_runtime_api.h>

namespace ucudnn {

#if CUDART_VERSION >= 13000
inline constexpr auto& graphNodeGetDependencies = cudaGraphNodeGetDependencies;
inline constexpr auto& graphNodeGetDependentNodes = cudaGraphNodeGetDependentNodes;
inline constexpr auto& graphAddDependencies = cudaGraphAddDependencies;
#else
inline constexpr auto& graphNodeGetDependencies = cudaGraphNodeGetDependencies_v2;
inline constexpr auto& graphNodeGetDependentNodes = cudaGraphNodeGetDependentNodes_v2;
inline constexpr auto& graphAddDependencies = cudaGraphAddDependencies_v2;
#endif

}  // namespace ucudnn
