// The device code of copies on a CPU, one thread after another, and copies that go pixel by pixel.
// Under AddressSanitizer (-DUCUDNN_SANITIZE) nothing beyond a tensor may be touched.
#pragma once

#include "cuda/block_copy.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#undef __device__
#undef __global__
#undef __shared__
#undef __launch_bounds__
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __syncthreads()

namespace {
using std::max;
using std::min;

struct {
  unsigned x, y, z;
} threadIdx, blockIdx, gridDim, blockDim;
}  // namespace

#include "cuda/block_copy.cu"

namespace ucudnn {
namespace {

using Numbers = ::testing::Types<float, std::uint16_t>;
struct NumberName {
  template <typename Number>
  static std::string GetName(int) {
    return std::is_same_v<Number, float> ? "Floats" : "TwoBytes";
  }
};

std::mt19937 generator(1);

int between(int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(generator);
}

template <typename Number>
std::vector<Number> numbers(std::size_t count) {
  std::vector<Number> all(count);
  for (Number& number : all) number = static_cast<Number>(between(1, 1000));
  return all;
}

/// The value of numbers that nothing has written.
template <typename Number>
constexpr Number kNothing = std::numeric_limits<Number>::has_quiet_NaN
                                ? std::numeric_limits<Number>::quiet_NaN()
                                : std::numeric_limits<Number>::max();

/// Packed, in one order of dimensions or the other, with a gap between samples.
template <typename Number>
BlockCopy randomCopy() {
  BlockCopy copy{};
  copy.numberBytes = sizeof(Number);
  copy.samples = between(1, 2);
  copy.rows = between(1, 8);
  copy.columns = between(0, 6) == 0 ? kMostColumns : between(1, 8);
  copy.channels = between(1, std::min(64, std::max(1, kMostInBlock / copy.rows / copy.columns)));
  if (copy.channels * copy.rows * copy.columns > kMostInBlock) copy.rows = 1;
  const int pixels = copy.channels * copy.rows * copy.columns;
  copy.numbers = between(pixels, std::min(pixels + 7, kMostInBlock));
  copy.height = between(1, 30);
  copy.width = between(0, 10) == 0 ? between(1, 700) : between(1, 40);
  copy.padY = between(0, 9);
  copy.padX = between(0, 9);
  copy.down = between(1, (copy.height + 2 * copy.padY) / copy.rows + 2);
  copy.across = between(1, (copy.width + 2 * copy.padX) / copy.columns + 2);
  const bool isLast = between(0, 1) == 0;
  copy.strides[3] = isLast ? copy.channels : 1;
  copy.strides[2] = copy.strides[3] * copy.width;
  copy.strides[1] = isLast ? 1 : copy.strides[2] * copy.height;
  copy.strides[0] = std::int64_t{1} * copy.channels * copy.height * copy.width + between(0, 3);
  return copy;
}

std::size_t numbersIn(const BlockCopy& copy) {
  return static_cast<std::size_t>(copy.samples * copy.down * copy.across * copy.numbers);
}

std::size_t tensorSize(const BlockCopy& copy) {
  const std::int64_t last =
      copy.strides[0] * (copy.samples - 1) + copy.strides[1] * (copy.channels - 1) +
      copy.strides[2] * (copy.height - 1) + copy.strides[3] * (copy.width - 1);
  return static_cast<std::size_t>(last + 1);
}

/// Calls f(place in the tensor, place in the blocks or -1).
template <typename Function>
void forEachPixel(const BlockCopy& copy, Function f) {
  for (int n = 0; n < copy.samples; ++n)
    for (int c = 0; c < copy.channels; ++c)
      for (int y = 0; y < copy.height; ++y)
        for (int x = 0; x < copy.width; ++x) {
          const int row = y + copy.padY, column = x + copy.padX;
          const bool isInBlock = row / copy.rows < copy.down && column / copy.columns < copy.across;
          const std::int64_t block =
              (std::int64_t{n} * copy.down + row / copy.rows) * copy.across + column / copy.columns;
          const std::int64_t number =
              (c * copy.rows + row % copy.rows) * copy.columns + column % copy.columns;
          f(n * copy.strides[0] + c * copy.strides[1] + y * copy.strides[2] + x * copy.strides[3],
            isInBlock ? block * copy.numbers + number : -1);
        }
}

}  // namespace
}  // namespace ucudnn
