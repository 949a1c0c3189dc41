// The parts of a sample, and of a large problem, in which engines are offered. They depend on the
// problem and the device, not on a limit: an answer within one limit must serve all smaller ones.
#pragma once

#include "kernels/backend.hpp"

#if UCUDNN_HAS_ENGINES

#include <cstdint>
#include <vector>

#include "kernels/engine_configuration.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

// Sums are in float, and float copies are twice as large: with two parts they need as much as x and
// y.
constexpr int kFewestSums = 4;

/// Whether parts of the batch don't serve as well as parts of a sample.
bool hasFewSamples(const Problem& problem) noexcept;

/// Tiles of groups, whose tensor-core engines copy groups. Most engines launch their kernels for
/// one group after another. So tiles launch few more than the whole, and bands many times as much.
/// Groups of one channel have engines that copy nothing. Throws Error.
std::vector<EngineConfiguration> groupTilesOf(const Problem& problem);

/// The numbers in the smallest block of pixels; 0: the step is too large.
std::int64_t numbersInBlock(const Problem& problem) noexcept;
/// Whether they are few, so that larger blocks gain.
bool hasFewInBlock(const Problem& problem) noexcept;

/// The smallest blocks of pixels, if a pixel has few channels, and, if these too have few numbers,
/// larger ones. Larger blocks have more products with 0, which only tensor cores are fast enough
/// for. Where engines would copy y, we do; in float they are offered both ways, because some
/// engines copy y again, and AlexNet's forward is faster without.
std::vector<EngineConfiguration> blocksOf(const Problem& problem);

/// One band, and bands, the largest first, with several columns as a pixel; empty if channels are
/// enough for engines, or blocks (blocks.hpp) serve better. Throws Error.
std::vector<EngineConfiguration> foldedParts(const Problem& problem);

/// Whether one side has channels enough for engines, and the other not many fewer.
bool hasManyOnOneSide(const Problem& problem) noexcept;

/// Tiles of groups, then bands; the largest first of each. Throws Error.
std::vector<EngineConfiguration> partsOfSample(const Problem& problem);

/// Parts of the batch of a filter gradient of 16 bits; the fewest first. Of few channels, whose
/// engines copy x and y to read more of them; of channels last, which bands would copy; and where
/// parts of a sample aren't small. Throws Error.
std::vector<EngineConfiguration> splitsOf(const Problem& problem);

/// Sums of parts of the batch in float, for calls that are not measured yet: a filter gradient of
/// 16 bits and few channels falls to cuDNN's slowest kernels else. Others were not measured. Throws
/// Error.
std::vector<EngineConfiguration> sumsOf(const Problem& problem);

/// The parts of a large problem that are not large. Throws Error.
std::vector<EngineConfiguration> partsOfLarge(const Problem& problem);

}  // namespace ucudnn

#endif
