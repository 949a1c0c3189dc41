// Sums in float of numbers of two bytes: a part of block_copy.cu, whose kernels use it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/block_copy.hpp"

namespace {

/// Read or written at once.
struct alignas(16) SummedHalves {
  std::uint16_t numbers[ucudnn::kSummedAtOnce];
};
struct alignas(16) SummedFloats {
  float numbers[ucudnn::kSummedAtOnce];
};

__device__ inline float widened(std::uint16_t number, bool isBfloat16) {
  return isBfloat16 ? __bfloat162float(__ushort_as_bfloat16(number))
                    : __half2float(__ushort_as_half(number));
}

__device__ inline std::uint16_t rounded(float number, bool isBfloat16) {
  return isBfloat16 ? __bfloat16_as_ushort(__float2bfloat16(number))
                    : __half_as_ushort(__float2half(number));
}

/// A thread adds kSummedAtOnce neighbours.
__device__ inline void addUp(const ucudnn::WideSum& sum, int tile) {
  const std::int64_t at =
      std::int64_t{tile} * ucudnn::block_copy::kThreads + static_cast<int>(threadIdx.x);
  if (at * ucudnn::kSummedAtOnce >= sum.count) return;
  const SummedHalves from = static_cast<const SummedHalves*>(sum.numbers)[at];
  SummedFloats& to = static_cast<SummedFloats*>(sum.sums)[at];
  SummedFloats all{};
  if (sum.adds != 0) all = to;
#pragma unroll
  for (int i = 0; i < ucudnn::kSummedAtOnce; ++i) {
    const float number = widened(from.numbers[i], sum.isBfloat16 != 0);
    all.numbers[i] = sum.adds != 0 ? all.numbers[i] + number : number;
  }
  to = all;
}

}  // namespace
