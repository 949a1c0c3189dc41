// Kernels and sizes for the rules of src/benchmark.
#pragma once

#include <utility>
#include <vector>

#include "benchmark/measurement.hpp"

namespace ucudnn::test {

constexpr Kernel kA{0, 0}, kB{1, 0}, kC{2, 0};

inline KernelOffer offered(Kernel kernel,
                           std::size_t bytes,
                           bool deterministic,
                           bool accurate = true) {
  return {{bytes, deterministic, accurate}, kernel};
}

inline SizeMeasurements size(std::vector<Measurement> kernels) {
  return {std::move(kernels)};
}

}  // namespace ucudnn::test
