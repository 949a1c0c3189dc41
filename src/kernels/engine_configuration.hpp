// An engine of cuDNN's graph API with its knobs, as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ucudnn {

/// Of one kernel. More calls of the engine would take longer than kernels without workspace.
constexpr int kMostTiles = 8;
/// More is no filter's step.
constexpr int kMostFolds = 8;
/// More parts are too short for a GPU.
constexpr int kMostSums = 32;
/// Pixels of one block. No filter's step is larger either.
constexpr int kMostPixels = 64;

/// Of one sample. More would be too small for a GPU, of all its memory.
constexpr int kMostBands = 4096;

struct EngineConfiguration {
  std::int64_t engine = 0;                          ///< cuDNN's global index
  std::vector<std::pair<int, std::int64_t>> knobs;  ///< cudnnBackendKnobType_t and its choice
  // Of these at most one is not 1, or of blocks not 0; but bands are of blocks of one pixel.
  int tiles = 1;   ///< it computes a tile at a time (tiles.hpp)
  int folds = 1;   ///< columns that it reads as one (folds.hpp)
  int sums = 1;    ///< parts of the batch that it sums in float (sums.hpp)
  int blocks = 0;  ///< pixels that it reads as one, 0: the caller's tensors (blocks.hpp)
  int bands = 1;   ///< of the tensors channels last, the most (channels_last.hpp)

  auto all() const noexcept { return std::tie(engine, knobs, tiles, folds, sums, blocks, bands); }
  bool operator==(const EngineConfiguration& other) const noexcept { return all() == other.all(); }
  bool operator<(const EngineConfiguration& other) const noexcept { return all() < other.all(); }
};

/// As cuDNN's logs name it: "eng46_k2=0_k5=2_k14=3"; with "_tiles=2", "_folds=2", "_sums=2" or
/// "_blocks=2" behind it where there are 2; "_blocks=1" where the tensors are copied channels last.
std::string toText(const EngineConfiguration& configuration);
/// Empty: not such a text.
std::optional<EngineConfiguration> engineConfigurationFromText(std::string_view text);

/// A number for the configuration, the same for as long as the process runs.
std::int32_t idOf(const EngineConfiguration& configuration);
/// That of the configuration that the text names; empty: not such a text. A text that was named
/// before is not taken apart again: databases have each some fifty times.
std::optional<std::int32_t> idFromText(std::string_view text);
/// REQUIRES: an id that these have given.
EngineConfiguration engineConfigurationOf(std::int32_t id);

}  // namespace ucudnn
