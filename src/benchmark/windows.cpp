#include "benchmark/windows.hpp"

#include <algorithm>

#include "benchmark/random_values.hpp"
#include "cuda/error.hpp"

namespace ucudnn {
namespace {

// The windows have at least as many pixels of dy as a channel's filter has taps.
constexpr std::int64_t kMostWindows = 8;
constexpr std::int64_t kWindowPixels = 256;

std::int64_t pixelsOf(const Problem& problem) noexcept {
  std::int64_t pixels = 1;
  for (std::size_t d = 2; d < static_cast<std::size_t>(problem.dimensions); ++d)
    pixels *= problem.ySizes[d];
  return pixels;
}

/// Whether neighbouring pixels of y lie at equal distances.
bool hasEvenPixels(const Problem& problem) noexcept {
  auto d = static_cast<std::size_t>(problem.dimensions - 1);
  for (std::int64_t stride = problem.yStrides[d]; d >= 2; stride *= problem.ySizes[d--])
    if (problem.yStrides[d] != stride) return false;
  return problem.yStrides[1] == 1 ||
         problem.yStrides[static_cast<std::size_t>(problem.dimensions - 1)] == 1;
}

}  // namespace

std::vector<Window> windowsOf(const Problem& problem) {
  const std::int64_t pixels = pixelsOf(problem), samples = problem.batch();
  const std::int64_t pixelBytes =
      problem.ySizes[1] * static_cast<std::int64_t>(elementBytes(problem.yType));
  const std::int64_t count = std::min<std::int64_t>(samples, kMostWindows);
  const std::int64_t most =
      std::min(kWindowPixels / count, static_cast<std::int64_t>(kRandomBytes) / pixelBytes);
  std::vector<Window> windows;
  if (problem.operation != Operation::kBackwardFilter || !hasEvenPixels(problem) || most == 0 ||
      samples * pixels <= kWindowPixels)
    return windows;
  const std::int64_t length = std::min(pixels, most);
  // From the first pixel of the first sample to the last one of the last.
  const std::int64_t steps = std::max<std::int64_t>(count - 1, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = (pixels - length) * (count == 1 ? 1 : i) / steps;
    windows.push_back({(samples - 1) * i / steps, begin, begin + length});
  }
  return windows;
}

void fillWindows(void* y,
                 const Problem& problem,
                 const std::vector<Window>& windows,
                 cudaStream_t stream,
                 const void* copyOfBlock) {
  const std::size_t bytes = elementBytes(problem.yType);
  const auto kind = copyOfBlock != nullptr ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  const auto* const numbers =
      static_cast<const char*>(copyOfBlock != nullptr ? copyOfBlock
                                                      : randomBlockOf(problem.yType)) +
      firstRandomByte(RandomTensor::kY);
  const auto channels = static_cast<std::size_t>(problem.ySizes[1]);
  const auto last = static_cast<std::size_t>(problem.dimensions - 1);
  UCUDNN_CHECK_CUDA(cudaMemsetAsync(y, 0, problem.yBytes(), stream));
  for (const Window& window : windows) {
    const std::int64_t first =
        window.sample * problem.yStrides[0] + window.begin * problem.yStrides[last];
    char* const to = static_cast<char*>(y) + static_cast<std::size_t>(first) * bytes;
    const auto length = static_cast<std::size_t>(window.end - window.begin) * bytes;
    if (problem.yStrides[1] == 1 && problem.yStrides[last] == problem.ySizes[1])
      UCUDNN_CHECK_CUDA(cudaMemcpyAsync(to, numbers, length * channels, kind, stream));
    else if (problem.yStrides[1] == 1)  // gaps between pixels
      UCUDNN_CHECK_CUDA(cudaMemcpy2DAsync(to,
                                          static_cast<std::size_t>(problem.yStrides[last]) * bytes,
                                          numbers,
                                          channels * bytes,
                                          channels * bytes,
                                          static_cast<std::size_t>(window.end - window.begin),
                                          kind,
                                          stream));
    else
      UCUDNN_CHECK_CUDA(cudaMemcpy2DAsync(to,
                                          static_cast<std::size_t>(problem.yStrides[1]) * bytes,
                                          numbers,
                                          length,
                                          length,
                                          channels,
                                          kind,
                                          stream));
  }
}

}  // namespace ucudnn
