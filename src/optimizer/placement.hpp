// The best time of a network whose tensors don't all fit the device.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace ucudnn {

/// Tensors that live from call to call, each on the device or in host memory, and the calls that
/// read and write them.
struct PlacementProblem {
  struct Call {
    double kernelMs = 0;
    std::vector<std::size_t> reads, writes;  ///< numbers of tensors
  };
  std::vector<double> tensorBytes;  ///< none is 0
  std::vector<Call> calls;
  double deviceBytes = 0;                  ///< for all of them at a time
  std::array<double, 2> bytesPerMs{1, 1};  ///< of the link, to the device and to the host

  /// The time of all calls where so much of each tensor is on the device: a call takes as long as
  /// the longest of its kernels and its copies in each direction.
  double ms(const std::vector<double>& onDevice) const;
};

/// A time that no placement beats, parts of tensors included.
struct PlacementBound {
  double leastMs = 0;
  double foundMs = 0;  ///< of a placement by parts; larger by less than 1e-2
};

/// The bound of the linear program: minimal sum of calls' times, each no less than its kernels' and
/// its copies', with parts of tensors on the device. Solved from its dual: whatever weights each
/// call gives to kernels and copies, the parts that save most for their bytes give a bound. The
/// weights follow what the calls wait for. Takes O(iterations x tensors' uses).
PlacementBound boundPlacement(const PlacementProblem& problem);

}  // namespace ucudnn
