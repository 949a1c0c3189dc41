// Copies to planes and back: a part of block_copy.cu, whose kernels call them.
#pragma once

#include "cuda/block_copy.hpp"

namespace {

/// A line of a channel, in the tensor and in planes. The threads of one y copy it: pixels that are
/// neighbours in the tensor are so in their planes too, of which each has a share.
struct PlaneLine {
  // So many numbers a thread reads before it writes the first: memory answers late.
  static constexpr int kBatch = 4;

  const ucudnn::BlockCopy& copy;
  float *pixels, *planes;  ///< null: beyond the tensor; beyond the planes
  bool exists;

  /// Lines begin `before` rows above the tensor.
  __device__ PlaneLine(const ucudnn::BlockCopy& whole, int lines, int before) : copy(whole) {
    const std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const std::int64_t channels = line / lines;
    const int sample = static_cast<int>(channels / copy.channels);
    const int channel =
        static_cast<int>(channels - static_cast<std::int64_t>(sample) * copy.channels);
    const int y = static_cast<int>(line - channels * lines) - before, row = y + copy.padY;
    exists = sample < copy.samples;
    pixels = planes = nullptr;
    if (!exists) return;
    if (y >= 0 && y < copy.height)
      pixels = static_cast<float*>(copy.tensor) + sample * copy.strides[0] +
               channel * copy.strides[1] + y * copy.strides[2];
    if (row / copy.rows >= copy.down) return;
    const int first = (channel * copy.rows + row % copy.rows) * copy.columns;
    planes =
        static_cast<float*>(copy.blocks) +
        ((static_cast<std::int64_t>(sample) * copy.numbers + first) * copy.down + row / copy.rows) *
            copy.across;
  }

  /// The place of a column, counted from the first plane's.
  __device__ int inPlanes(int column) const {
    const int inLine = column / copy.columns;
    return (column - inLine * copy.columns) * copy.down * copy.across + inLine;
  }
};

__device__ void copyToPlanes(const ucudnn::BlockCopy& copy) {
  const PlaneLine line(copy, copy.down * copy.rows, copy.padY);
  if (!line.exists) return;
  const int columns = copy.across * copy.columns;
  const int nextPixel = static_cast<int>(copy.strides[3]), threads = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < columns;
       first += PlaneLine::kBatch * threads) {
    float numbers[PlaneLine::kBatch]{};
#pragma unroll
    for (int i = 0; i < PlaneLine::kBatch; ++i) {
      const int x = first + i * threads - copy.padX;
      if (line.pixels != nullptr && x >= 0 && x < copy.width)
        numbers[i] = line.pixels[x * nextPixel];
    }
#pragma unroll
    for (int i = 0; i < PlaneLine::kBatch; ++i) {
      const int column = first + i * threads;
      if (column < columns) line.planes[line.inPlanes(column)] = numbers[i];
    }
  }
}

__device__ void copyFromPlanes(const ucudnn::BlockCopy& copy) {
  const PlaneLine line(copy, copy.height, 0);
  if (!line.exists) return;
  const int columns = line.planes == nullptr ? 0 : copy.across * copy.columns;
  const int nextPixel = static_cast<int>(copy.strides[3]), threads = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < copy.width;
       first += PlaneLine::kBatch * threads) {
    float numbers[PlaneLine::kBatch]{}, before[PlaneLine::kBatch]{};
#pragma unroll
    for (int i = 0; i < PlaneLine::kBatch; ++i) {
      const int x = first + i * threads, column = x + copy.padX;
      if (x >= copy.width) continue;
      if (column < columns) numbers[i] = line.planes[line.inPlanes(column)];
      if (copy.adds != 0) before[i] = line.pixels[x * nextPixel];
    }
#pragma unroll
    for (int i = 0; i < PlaneLine::kBatch; ++i) {
      const int x = first + i * threads;
      if (x < copy.width)
        line.pixels[x * nextPixel] = copy.adds != 0 ? before[i] + numbers[i] : numbers[i];
    }
  }
}

}  // namespace
