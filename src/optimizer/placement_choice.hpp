// Which blocks of memory are on the device, where not all fit.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace ucudnn {

/// A call, and what it copies if blocks are in host memory.
struct PlacementCall {
  struct Use {
    std::size_t block = 0;
    std::array<double, 2> ms{};  ///< of copies to the device, and to the host
  };
  double kernelMs = 0;
  std::array<double, 2> otherMs{};  ///< of copies that no block changes
  std::vector<Use> uses;
};

/// Chooses whole blocks within the bytes, one after the other: the one whose place on the device
/// saves most time for each byte, by the calls' times. A call takes as long as the longest of its
/// kernels and its copies in each direction; copies that are hidden yet count a little, as more
/// blocks may uncover them. Where another choice is better that begins with a large block, it is
/// that. A block that saves nothing is not chosen but for that.
std::vector<bool> choosePlacement(const std::vector<std::size_t>& blockBytes,
                                  const std::vector<PlacementCall>& calls,
                                  std::size_t deviceBytes);

}  // namespace ucudnn
