// Copies of filters to blocks and back: a part of block_copy.cu, whose kernels call them. Filters
// are small: a thread copies a number.
#pragma once

#include "cuda/block_copy.hpp"
#include "cuda/wide_sum.cuh"

namespace {

/// Takes indices off a thread's number, the fastest first.
struct Indices {
  int rest;

  __device__ int take(int size) {
    const int index = rest % size;
    rest /= size;
    return index;
  }
};

template <typename Number>
__device__ void copyFiltersToBlocks(const ucudnn::FilterCopy& copy) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  Indices indices{thread};
  Indices inBlock{indices.take(copy.numbers)};
  int channel = copy.inPixel > 0 ? inBlock.take(copy.inPixel) : 0;
  const int column = inBlock.take(copy.columns), row = inBlock.take(copy.rows);
  if (copy.inPixel == 0) channel = inBlock.rest;
  const int x = indices.take(copy.across) * copy.columns + column;
  const int y = indices.take(copy.down) * copy.rows + row;
  int filter = copy.inShift > 0 ? indices.take(copy.inShift) : 0;
  const int tapX = x - indices.take(copy.shiftsX) * copy.stepX;
  const int tapY = y - indices.take(copy.shiftsY) * copy.stepY;
  if (copy.inShift == 0) filter = indices.take(copy.count);
  if (indices.rest > 0) return;
  const bool isTap = filter < copy.count && channel < copy.channels && tapX >= 0 &&
                     tapX < copy.width && tapY >= 0 && tapY < copy.height;
  const auto* const filters = static_cast<const Number*>(copy.filters);
  static_cast<Number*>(copy.blocks)[thread] =
      isTap ? filters[filter * copy.strides[0] + channel * copy.strides[1] +
                      tapY * copy.strides[2] + tapX * copy.strides[3]]
            : Number{};
}

/// `give(target, sum)` gets each number of the filters and the sum of its shifts.
template <typename Number, typename Sum, typename Give>
__device__ void sumFilterBlocks(const ucudnn::FilterCopy& copy, Give give) {
  Indices indices{static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x)};
  const int tapX = indices.take(copy.width), tapY = indices.take(copy.height);
  const int channel = indices.take(copy.channels), filter = indices.rest;
  if (filter >= copy.count) return;
  const auto* const blocks = static_cast<const Sum*>(copy.blocks);
  Sum sum{};
  for (int shiftY = 0; shiftY < copy.shiftsY; ++shiftY)
    for (int shiftX = 0; shiftX < copy.shiftsX; ++shiftX) {
      const int x = tapX + shiftX * copy.stepX, y = tapY + shiftY * copy.stepY;
      const int row = y % copy.rows, column = x % copy.columns;
      const int shifted = copy.inShift > 0
                              ? (shiftY * copy.shiftsX + shiftX) * copy.inShift + filter
                              : (filter * copy.shiftsY + shiftY) * copy.shiftsX + shiftX;
      const int block = (shifted * copy.down + y / copy.rows) * copy.across + x / copy.columns;
      const int number = copy.inPixel > 0 ? (row * copy.columns + column) * copy.inPixel + channel
                                          : (channel * copy.rows + row) * copy.columns + column;
      const Sum tap = blocks[block * copy.numbers + number];
      sum = static_cast<Sum>(sum + tap);
    }
  give(static_cast<Number*>(copy.filters)[filter * copy.strides[0] + channel * copy.strides[1] +
                                          tapY * copy.strides[2] + tapX * copy.strides[3]],
       sum);
}

template <typename Number>
__device__ void copyFiltersFromBlocks(const ucudnn::FilterCopy& copy) {
  const bool adds = sizeof(Number) == sizeof(float) && copy.adds != 0;
  sumFilterBlocks<Number, Number>(copy, [&](Number& target, Number sum) {
    target = adds ? static_cast<Number>(target + sum) : sum;
  });
}

/// The blocks hold floats, the filters numbers of two bytes.
__device__ inline void roundFilters(const ucudnn::FilterCopy& copy) {
  const bool isBfloat16 = copy.isBfloat16 != 0;
  sumFilterBlocks<std::uint16_t, float>(copy, [&](std::uint16_t& target, float sum) {
    target = rounded(copy.adds != 0 ? widened(target, isBfloat16) + sum : sum, isBfloat16);
  });
}

}  // namespace
