// Kernels that run: on the simulator, and on a GPU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine_configuration.hpp"
#include "kernels/engines.hpp"
#include "kernels/factor.hpp"
#include "support/device.hpp"
#include "support/problems.hpp"

namespace ucudnn::test {

/// With sizes, strides and filters as they are packed; `gap` elements between samples besides.
inline void setSizes(Problem& p, int channels, int filters, bool isNhwc, int gap = 0) {
  const auto spatial = static_cast<std::size_t>(p.dimensions);
  const auto pack = [&](Problem::Sizes& sizes, Problem::Strides& strides, int count) {
    sizes[1] = count;
    std::int64_t stride = isNhwc ? count : 1;
    for (std::size_t d = spatial - 1; d >= 2; --d) {
      strides[d] = stride;
      stride *= sizes[d];
    }
    strides[1] = isNhwc ? 1 : stride;
    strides[0] = (isNhwc ? stride : stride * count) + gap;
  };
  pack(p.xSizes, p.xStrides, channels);
  pack(p.ySizes, p.yStrides, filters);
  p.wSizes[0] = filters;
  p.wSizes[1] = channels / p.groups;
  p.wFormat = isNhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

/// Along a line of x, and the filter there.
struct Line {
  int size, taps, pad, step;
};

inline void setLine(Problem& p, std::size_t dimension, Line line) {
  p.xSizes[2 + dimension] = line.size;
  p.wSizes[2 + dimension] = line.taps;
  p.pads[dimension] = line.pad;
  p.strides[dimension] = line.step;
  p.ySizes[2 + dimension] = (line.size + 2 * line.pad - line.taps) / line.step + 1;
}

/// The forward operation, of three samples.
inline Problem ofLines(Line down, Line across, int channels, int filters, int mathType) {
  Problem p = sampleProblem(Operation::kForward, 3, 8);
  p.mathType = mathType;
  setLine(p, 0, down);
  setLine(p, 1, across);
  setSizes(p, channels, filters, false);
  return p;
}

inline void setNumber(std::vector<char>& values, std::size_t i, std::int32_t type, float number) {
  const __half half = __float2half(number);
  const __nv_bfloat16 brief = __float2bfloat16(number);
  const double wide = static_cast<double>(number);
  const void* const from = type == CUDNN_DATA_HALF       ? static_cast<const void*>(&half)
                           : type == CUDNN_DATA_BFLOAT16 ? static_cast<const void*>(&brief)
                           : type == CUDNN_DATA_DOUBLE   ? static_cast<const void*>(&wide)
                                                         : static_cast<const void*>(&number);
  std::memcpy(values.data() + i * elementBytes(type), from, elementBytes(type));
}

/// Small integers: the sums are exact whatever their order.
inline std::vector<char> integers(std::size_t bytes, std::int32_t type, unsigned seed) {
  std::vector<char> values(bytes);
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < bytes / elementBytes(type); ++i)
    setNumber(values, i, type, static_cast<float>(static_cast<int>(random() % 5) - 2));
  return values;
}

inline double numberAt(const std::vector<char>& values, std::size_t i, std::int32_t type) {
  const char* const from = values.data() + i * elementBytes(type);
  if (type == CUDNN_DATA_HALF) {
    __half half;
    std::memcpy(&half, from, sizeof half);
    return static_cast<double>(__half2float(half));
  }
  if (type == CUDNN_DATA_BFLOAT16) {
    __nv_bfloat16 brief;
    std::memcpy(&brief, from, sizeof brief);
    return static_cast<double>(__bfloat162float(brief));
  }
  if (type == CUDNN_DATA_DOUBLE) {
    double wide;
    std::memcpy(&wide, from, sizeof wide);
    return wide;
  }
  float number;
  std::memcpy(&number, from, sizeof number);
  return static_cast<double>(number);
}

/// Normalized L2; infinite where only one has written an element.
inline double distance(const std::vector<char>& a, const std::vector<char>& b, std::int32_t type) {
  double difference = 0;
  double norm = 1e-30;
  for (std::size_t i = 0; i < a.size() / elementBytes(type); ++i) {
    const double x = numberAt(a, i, type);
    const double y = numberAt(b, i, type);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (std::isnan(x) || std::isnan(y)) return HUGE_VAL;
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(difference / norm);
}

/// The contents of a problem's tensors.
struct Values {
  std::vector<char> x, w, y;

  explicit Values(const Problem& p)
      : x(integers(p.xBytes(), p.xType, 1)),
        w(integers(p.wBytes(), p.wType, 2)),
        y(integers(p.yBytes(), p.yType, 3)) {}
};

/// A filter gradient in double, in w's order: of four dimensions, without groups or dilation.
inline std::vector<double> gradientOf(const Problem& p, const Values& values) {
  const auto at =
      [&](const std::vector<char>& from, const Problem::Strides& strides, auto... index) {
        std::int64_t place = 0;
        std::size_t dimension = 0;
        ((place += index * strides[dimension++]), ...);
        return numberAt(from, static_cast<std::size_t>(place), p.xType);
      };
  const auto [filters, channels, height, width, none] = p.wSizes;
  const bool isNhwc = p.wFormat == CUDNN_TENSOR_NHWC;
  std::vector<double> result(p.wBytes() / elementBytes(p.wType));
  for (int place = 0; place < static_cast<int>(result.size()); ++place) {
    const int c = isNhwc ? place % channels : place / (width * height) % channels;
    const int s = (isNhwc ? place / channels : place) % width;
    const int r = (isNhwc ? place / channels : place) / width % height;
    const int k = place / (width * height * channels);
    double& sum = result[static_cast<std::size_t>(place)];
    for (int n = 0; n < p.batch(); ++n)
      for (int i = 0; i < p.ySizes[2]; ++i)
        for (int j = 0; j < p.ySizes[3]; ++j) {
          const int h = i * p.strides[0] + r - p.pads[0];
          const int w = j * p.strides[1] + s - p.pads[1];
          if (h < 0 || w < 0 || h >= p.xSizes[2] || w >= p.xSizes[3]) continue;
          sum += at(values.x, p.xStrides, n, c, h, w) * at(values.y, p.yStrides, n, k, i, j);
        }
  }
  return result;
}

/// The real cuDNN's engines, or the simulator's.
class DeviceKernelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::hasDevice()) GTEST_SKIP() << "no device";
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  }

  /// An engine's offer for the problem, by the engine's name.
  std::optional<KernelOffer> offerOf(const Problem& problem, const EngineConfiguration& value) {
    const auto parsed = parseKernel(problem, toText(value));
    if (!parsed) return std::nullopt;
    int failures = 0;
    const auto found = offeredKernel(handle_.get(),
                                     problem,
                                     std::make_shared<const ProblemDescriptors>(problem),
                                     parsed->kernel,
                                     &failures);
    EXPECT_EQ(failures, 0) << toText(value);
    return found;
  }

  /// The engines that the problem has, whole and undivided, on its own tensors.
  std::vector<EngineConfiguration> engines(const Problem& problem) {
    std::vector<EngineConfiguration> all;
    for (const KernelOffer& offer :
         offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true))
      if (offer.kernel.source == kEngines) {
        EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
        if (value.tiles != 1 || value.folds != 1 || value.blocks > 1) continue;
        value.blocks = 0;
        all.push_back(std::move(value));
      }
    return all;
  }

  std::shared_ptr<const BuiltKernel> build(const Problem& problem, Kernel kernel) {
    return buildKernel(
        handle_.get(), problem, std::make_shared<const ProblemDescriptors>(problem), kernel);
  }

  /// The output, in a buffer that has NaN everywhere unless it is added to. z is what y holds.
  /// `outputCopyBytes`: of the workspace, elsewhere.
  std::vector<char> run(const Problem& problem, const KernelOffer& offer, bool adds) {
    return run(problem, offer, adds, Values(problem));
  }
  std::vector<char> run(const Problem& problem,
                        const KernelOffer& offer,
                        bool adds,
                        const Values& values,
                        std::size_t outputCopyBytes = 0) {
    const auto kernel = build(problem, offer.kernel);
    std::size_t bytes = 0;
    EXPECT_EQ(kernel->workspaceSize(handle_.get(), &bytes), CUDNN_STATUS_SUCCESS);
    EXPECT_LE(bytes, offer.workspaceBytes);
    const bool isFused = problem.operation == Operation::kBiasActivationForward;
    const DeviceBuffer x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes());
    const DeviceBuffer z(problem.yBytes());
    const DeviceBuffer workspace(bytes - outputCopyBytes), outputCopy(outputCopyBytes);
    const DeviceBuffer bias(static_cast<std::size_t>(problem.ySizes[1]) *
                            elementBytes(problem.yType));
    const auto copyTo = [](const DeviceBuffer& buffer, const std::vector<char>& from) {
      UCUDNN_CHECK_CUDA(
          cudaMemcpy(buffer.get(), from.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    };
    if (outputCopyBytes > 0) UCUDNN_CHECK_CUDA(cudaMemset(outputCopy.get(), 0xFF, outputCopyBytes));
    copyTo(x, values.x);
    copyTo(w, values.w);
    copyTo(y, values.y);
    copyTo(z, values.y);
    copyTo(bias, integers(bias.bytes(), problem.yType, 4));
    BiasActivation fused;
    fused.z = z.get();
    fused.bias = bias.get();
    const DeviceBuffer& output = problem.operation == Operation::kBackwardData     ? x
                                 : problem.operation == Operation::kBackwardFilter ? w
                                                                                   : y;
    if (!adds) UCUDNN_CHECK_CUDA(cudaMemset(output.get(), 0xFF, output.bytes()));
    const Factor& beta = adds ? Factor::one(problem) : Factor::zero(problem);
    EXPECT_EQ(kernel->enqueue(handle_.get(),
                              {Factor::one(problem).get(),
                               beta.get(),
                               x.get(),
                               w.get(),
                               y.get(),
                               workspace.get(),
                               workspace.bytes(),
                               outputCopy.get()},
                              isFused ? &fused : nullptr),
              CUDNN_STATUS_SUCCESS);
    UCUDNN_CHECK_CUDA(cudaDeviceSynchronize());
    const auto contents = [](const DeviceBuffer& buffer) {
      std::vector<char> bytes(buffer.bytes());
      UCUDNN_CHECK_CUDA(
          cudaMemcpy(bytes.data(), buffer.get(), buffer.bytes(), cudaMemcpyDeviceToHost));
      return bytes;
    };
    EXPECT_TRUE(outputCopyBytes == 0 ||
                contents(outputCopy) != std::vector<char>(outputCopyBytes, '\xFF'))
        << "it is not used";
    return contents(output);
  }

  CudnnHandle handle_;
};

}  // namespace ucudnn::test
