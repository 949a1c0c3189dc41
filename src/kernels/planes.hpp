// How cuDNN's Winograd and FFT algorithms get to run a convolution with a step, which most of them
// don't have: each pixel of a step becomes a channel of its own. DeepBench's filter gradient of 5x5
// with a step of 2 (256x128x40x175, FMA, 256 MiB) takes an H200 9.0 ms so, and 22.3 otherwise.
#pragma once

#include <memory>

#include "kernels/source.hpp"

namespace ucudnn {

/// Its place among the sources.
constexpr std::int32_t kPlanes = 2;

/// Whether there may be planes of a problem. Of its values alone: cuDNN is not asked.
bool mayHavePlanes(const Problem& problem) noexcept;

/// The algorithms of the problem whose x has a plane for each of `strides` pixels of a channel, and
/// whose filter then has no step; known as space-to-depth. x and w are copied so into workspace.
/// The products are the caller's and some with 0, where the filter doesn't fill the last step;
/// nothing is rounded in between. Also in parts (planar_part.hpp). In float, two-dimensional,
/// without groups.
std::unique_ptr<KernelSource> makePlaneSource();

}  // namespace ucudnn
