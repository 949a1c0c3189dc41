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

/// Tiles of one kernel. With more calls of the engine, kernels without workspace are faster.
constexpr int kMostTiles = 8;
/// Columns that are read as one. No filter has a larger step, and none is worth more.
constexpr int kMostFolds = 8;
/// More parts of the batch are too small for a GPU.
constexpr int kMostSums = 32;
/// Pixels of one block. No filter has a step of more pixels.
constexpr int kMostPixels = 64;

/// Bands of one sample. More bands are too small for a GPU, even if the sample fills its memory.
constexpr int kMostBands = 4096;

struct EngineConfiguration {
  std::int64_t engine = 0;                          ///< cuDNN's global index
  std::vector<std::pair<int, std::int64_t>> knobs;  ///< cudnnBackendKnobType_t and its choice
  // At most one of these differs from its default, except that blocks = 1 may have folds and bands,
  // and bands need it; other blocks may have last = 1.
  int tiles = 1;   ///< it computes a tile at a time (tiles.hpp)
  int folds = 1;   ///< columns that it reads as one: of x (folds.hpp), or of y (channels_last.hpp)
  int sums = 1;    ///< parts of the batch that it computes and sums in float (sums.hpp)
  int splits = 1;  ///< parts of the batch that it computes in the caller's type (sums.hpp)
  int blocks = 0;  ///< pixels that it reads as one, 0: the caller's tensors (blocks.hpp)
  int bands = 1;   ///< of tensors copied channels last, the most (channels_last.hpp)
  int last = 0;    ///< 1: y is copied channels last, although x's blocks need no blocks of y

  /// Whether it computes all at once, from the caller's tensors.
  bool readsCallersTensors() const noexcept {
    return tiles == 1 && folds == 1 && sums == 1 && splits == 1 && blocks == 0;
  }
  auto all() const noexcept {
    return std::tie(engine, knobs, tiles, folds, sums, splits, blocks, bands, last);
  }
  bool operator==(const EngineConfiguration& other) const noexcept { return all() == other.all(); }
  bool operator<(const EngineConfiguration& other) const noexcept { return all() < other.all(); }
};

/// Like cuDNN's logs: "eng46_k2=0_k5=2_k14=3", followed by "_tiles=2", "_folds=2", "_sums=2",
/// "_splits=2" or "_blocks=2" if there are 2. "_last=1" may follow blocks. "_blocks=1" says that
/// the tensors are copied channels last, and "_folds=4" and "_bands=2" may follow.
std::string toText(const EngineConfiguration& configuration);
/// Empty if the text is not of that form.
std::optional<EngineConfiguration> engineConfigurationFromText(std::string_view text);

/// A number for the configuration, the same for as long as the process runs.
std::int32_t idOf(const EngineConfiguration& configuration);
/// The number of the configuration that the text names; empty if the text is not of that form. Each
/// text is parsed once: a database has each about fifty times.
std::optional<std::int32_t> idFromText(std::string_view text);
/// REQUIRES: idOf or idFromText has returned the id.
EngineConfiguration engineConfigurationOf(std::int32_t id);

}  // namespace ucudnn
