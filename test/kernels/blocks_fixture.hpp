// Shared by the tests of blocks: the first convolutions of networks for images, and engines that
// read them so.
#pragma once

#include <optional>

#include "device_kernels.hpp"
#include "kernels/blocks.hpp"

namespace ucudnn::test {

inline Problem stem(Line down, Line across, int channels = 3, int filters = 8) {
  return ofLines(down, across, channels, filters, CUDNN_DEFAULT_MATH);
}

inline Problem stem(Line line, int channels = 3, int filters = 8) {
  return stem(line, line, channels, filters);
}

inline Problem inHalf(Problem p) {
  p.xType = p.wType = p.yType = CUDNN_DATA_HALF;
  return p;
}

inline constexpr Line kAlexNet{24, 11, 2, 4}, kResNet{24, 7, 3, 2}, kVgg{12, 3, 1, 1};

class BlocksTest : public DeviceKernelsTest {
 protected:
  std::optional<KernelOffer> offer(const Problem& problem,
                                   EngineConfiguration value,
                                   int pixels,
                                   bool copiesY = false) {
    value.blocks = pixels;
    value.last = copiesY ? 1 : 0;
    return offerOf(problem, value);
  }
};

}  // namespace ucudnn::test
