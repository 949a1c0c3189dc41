// Copies of filters to blocks and back: a part of block_copy.cu, whose kernels call them. Filters
// are small: a thread copies a number.
#pragma once

#include "cuda/block_copy.hpp"

namespace {

template <typename Number>
__device__ void copyFiltersToBlocks(const ucudnn::FilterCopy& copy) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int rest = thread;
  const auto take = [&](int size) {
    const int index = rest % size;
    rest /= size;
    return index;
  };
  const int number = take(copy.numbers);
  const int column = number % copy.columns, row = number / copy.columns % copy.rows;
  const int channel = number / (copy.columns * copy.rows);
  const int x = take(copy.across) * copy.columns + column;
  const int y = take(copy.down) * copy.rows + row;
  const int tapX = x - take(copy.shifts) * copy.stepX, tapY = y - take(copy.shifts) * copy.stepY;
  if (rest >= copy.count) return;
  const bool isTap =
      channel < copy.channels && tapX >= 0 && tapX < copy.width && tapY >= 0 && tapY < copy.height;
  const auto* const filters = static_cast<const Number*>(copy.filters);
  static_cast<Number*>(copy.blocks)[thread] =
      isTap ? filters[rest * copy.strides[0] + channel * copy.strides[1] + tapY * copy.strides[2] +
                      tapX * copy.strides[3]]
            : Number{};
}

template <typename Number>
__device__ void copyFiltersFromBlocks(const ucudnn::FilterCopy& copy) {
  int rest = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const auto take = [&](int size) {
    const int index = rest % size;
    rest /= size;
    return index;
  };
  const int tapX = take(copy.width), tapY = take(copy.height), channel = take(copy.channels);
  if (rest >= copy.count) return;
  const auto* const blocks = static_cast<const Number*>(copy.blocks);
  Number sum{};
  for (int shiftY = 0; shiftY < copy.shifts; ++shiftY)
    for (int shiftX = 0; shiftX < copy.shifts; ++shiftX) {
      const int x = tapX + shiftX * copy.stepX, y = tapY + shiftY * copy.stepY;
      const int filter = (rest * copy.shifts + shiftY) * copy.shifts + shiftX;
      const int block = (filter * copy.down + y / copy.rows) * copy.across + x / copy.columns;
      const int number = (channel * copy.rows + y % copy.rows) * copy.columns + x % copy.columns;
      const auto tap = blocks[block * copy.numbers + number];
      sum = static_cast<Number>(sum + tap);
    }
  Number& target =
      static_cast<Number*>(copy.filters)[rest * copy.strides[0] + channel * copy.strides[1] +
                                         tapY * copy.strides[2] + tapX * copy.strides[3]];
  const bool adds = sizeof(Number) == sizeof(float) && copy.adds != 0;
  target = adds ? static_cast<Number>(target + sum) : sum;
}

}  // namespace
