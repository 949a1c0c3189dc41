// Lets cuDNN's Winograd and FFT algorithms run a convolution with a step, which most of them don't
// support: each pixel of a step becomes a channel of its own. DeepBench's filter gradient of 5x5
// with a step of 2 (256x128x40x175, FMA, 256 MiB) takes an H200 9.0 ms so, and 22.3 ms otherwise.
#pragma once

#include <memory>

#include "kernels/source.hpp"

namespace ucudnn {

/// The source's place among the sources.
constexpr std::int32_t kPlanes = 2;

/// Whether a problem may have planes. Looks only at its values: cuDNN is not asked.
bool mayHavePlanes(const Problem& problem) noexcept;

/// The algorithms of the problem whose x has a plane for each of `strides` pixels of a channel, and
/// whose filter then has no step (known as space-to-depth). x and w are copied so into workspace.
/// If the filter doesn't fill the last step, there are products with 0 beside the caller's; nothing
/// is rounded in between. Also in parts (planar_part.hpp). In float, two-dimensional, without
/// groups.
std::unique_ptr<KernelSource> makePlaneSource();

}  // namespace ucudnn
