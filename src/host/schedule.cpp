#include "host/schedule.hpp"

#include <algorithm>
#include <map>

#include "support/alignment.hpp"

namespace ucudnn {
namespace {

/// Which parts of a tensor its slots hold.
class SlotTable {
 public:
  explicit SlotTable(int slots) : held_(static_cast<std::size_t>(slots)) {}

  /// -1: no slot holds the part.
  int find(std::int64_t part) const noexcept {
    for (std::size_t i = 0; i < held_.size(); ++i)
      if (held_[i].part == part) return static_cast<int>(i);
    return -1;
  }
  /// The slot that was used longest ago gets the part.
  int replace(std::int64_t part) noexcept {
    const auto oldest = std::min_element(
        held_.begin(), held_.end(), [](auto& a, auto& b) { return a.lastUse < b.lastUse; });
    oldest->part = part;
    return static_cast<int>(oldest - held_.begin());
  }
  void use(int slot) noexcept { held_[static_cast<std::size_t>(slot)].lastUse = ++uses_; }

 private:
  struct Held {
    std::int64_t part = -1;
    std::int64_t lastUse = 0;
  };
  std::vector<Held> held_;
  std::int64_t uses_ = 0;
};

std::int64_t partAt(const Tiles& tiles, Tensor tensor, const TileIndex& index) noexcept {
  std::int64_t part = 0;
  for (const Axis axis : {kSamples, kBand, kOuts, kIns})
    if (dependsOn(tiles.whole(), tensor, axis)) part = part * tiles.count(axis) + index[axis];
  return part;
}

/// The loops from the outermost to the innermost: those that add are innermost, so that a part of
/// the output stays where it is until it is complete.
std::array<Axis, kAxes> loopsOf(const Tiles& tiles) {
  std::array<Axis, kAxes> order = {kSamples, kBand, kOuts, kIns};
  if (!tiles.tiling().bandsOutside) order = {kOuts, kIns, kSamples, kBand};
  std::stable_partition(
      order.begin(), order.end(), [&](Axis axis) { return !addsAlong(tiles.whole(), axis); });
  return order;
}

/// The next tile's index. Returns false behind the last one.
bool advance(const Tiles& tiles, const std::array<Axis, kAxes>& loops, TileIndex& index) {
  for (auto axis = loops.rbegin(); axis != loops.rend(); ++axis) {
    if (++index[*axis] < tiles.count(*axis)) return true;
    index[*axis] = 0;
  }
  return false;
}

bool isLastOfItsOutput(const Tiles& tiles, const TileIndex& index) noexcept {
  for (const Axis axis : {kSamples, kBand, kOuts, kIns})
    if (addsAlong(tiles.whole(), axis) && index[axis] + 1 < tiles.count(axis)) return false;
  return true;
}

/// The bytes of a slot: those of a full tile's part, or of the last band's if that is larger. The
/// last band of backward data has another padding, so it may read more rows.
std::size_t slotBytes(const Tiles& tiles, Tensor tensor) {
  std::size_t bytes = 0;
  for (const std::int32_t band : {0, tiles.count(kBand) - 1}) {
    const Problem problem = tiles.tile({0, band, 0, 0}).problem;
    const Layout layout = tensor == kTensorX   ? layoutOfX(problem)
                          : tensor == kTensorW ? layoutOfW(problem)
                                               : layoutOfY(problem);
    bytes = std::max(bytes, layout.bytes());
  }
  return roundUpToAlignment(bytes);
}

}  // namespace

bool HostOperands::isPageable() const noexcept {
  return z == Place::kPageable || bias == Place::kPageable ||
         std::find(places.begin(), places.end(), Place::kPageable) != places.end();
}

bool HostOperands::isOnHost() const noexcept {
  return isPageable() || z == Place::kPinned || bias == Place::kPinned ||
         std::find(places.begin(), places.end(), Place::kPinned) != places.end();
}

void forEachVisit(const Tiles& tiles, const std::function<bool(const Visit&)>& visit) {
  const Tensor halo = haloTensorOf(tiles.whole().operation);
  const std::array<Axis, kAxes> loops = loopsOf(tiles);
  std::vector<SlotTable> tables;
  for (const Tensor tensor : {kTensorX, kTensorW, kTensorY})
    tables.emplace_back(tiles.tiling().slots[tensor]);
  TileIndex index{};
  do {
    Visit next;
    next.index = index;
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY}) {
      SlotTable& table = tables[tensor];
      Visit::Use& use = next.uses[tensor];
      const std::int64_t part = partAt(tiles, tensor, index);
      use.slot = table.find(part);
      use.isNew = use.slot < 0;
      if (use.isNew) {
        if (tensor == halo && index[kBand] > 0) {
          TileIndex neighbour = index;
          --neighbour[kBand];
          use.haloSlot = table.find(partAt(tiles, tensor, neighbour));
        }
        use.slot = table.replace(part);
        if (use.haloSlot == use.slot) use.haloSlot = -1;
      }
      table.use(use.slot);
    }
    next.isLast = isLastOfItsOutput(tiles, index);
    if (!visit(next)) return;
  } while (advance(tiles, loops, index));
}

SlotLayout::SlotLayout(const Tiles& tiles, const HostOperands& operands) {
  const bool zIsElsewhere = operands.z.value_or(Place::kDevice) != Place::kDevice;
  for (const Tensor tensor : {kTensorX, kTensorW, kTensorY}) {
    const bool isStaged = operands.places[tensor] != Place::kDevice || tiles.isCut(tensor) ||
                          (tensor == kTensorY && zIsElsewhere);
    if (!isStaged) continue;
    bytes_[tensor] = slotBytes(tiles, tensor);
    offsets_[tensor] = all_;
    all_ += bytes_[tensor] * static_cast<std::size_t>(tiles.tiling().slots[tensor]);
  }
  if (!operands.z || !isStaged(kTensorY)) return;
  zOffset_ = all_;  // never 0, because y is before it
  all_ += bytes_[kTensorY] * static_cast<std::size_t>(tiles.tiling().slots[kTensorY]);
}

Problem SlotLayout::inPlace(const Problem& whole, Problem tile) const noexcept {
  if (!isStaged(kTensorX)) tile.xStrides = whole.xStrides;
  if (!isStaged(kTensorY)) tile.yStrides = whole.yStrides;
  return tile;
}

namespace {

/// The number of copies that a full part takes, and of the rows in them.
struct Copies {
  double count = 0, rows = 0;
  double ms(const Link& link, double bytesMs) const noexcept {
    return count * link.copyMs + bytesMs + rows * link.rowMs;
  }
};

/// The clocks of one call: of both copy streams, the caller's, and each slot.
class PipelineClock {
 public:
  PipelineClock(const Tiles& tiles,
                const HostOperands& operands,
                const Link& link,
                const KernelTime& kernelTime)
      : tiles_(tiles),
        operands_(operands),
        link_(link),
        kernelTime_(kernelTime),
        slots_(tiles, operands),
        output_(outputTensorOf(tiles.whole().operation)) {
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY})
      free_[tensor].resize(static_cast<std::size_t>(tiles.tiling().slots[tensor]));
    filled_ = free_;
  }

  /// Returns the time at which everything so far has ended.
  double visit(const Visit& visit) {
    copyHalo(visit);
    double ready = computed_;
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY})
      if (slots_.isStaged(tensor)) ready = std::max(ready, fill(visit, tensor));
    computed_ = ready;
    computed_ += kernelMs(visit.index);
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY})
      free_[tensor][slotOf(visit, tensor)] = computed_;
    if (visit.isLast && slots_.isStaged(output_)) {
      written_ =
          std::max(written_, computed_) + copyMs(output_, visit, operands_.places[output_], 1);
      free_[output_][slotOf(visit, output_)] = written_;
    }
    return std::max(computed_, written_);
  }

 private:
  static std::size_t slotOf(const Visit& visit, Tensor tensor) noexcept {
    return static_cast<std::size_t>(visit.uses[tensor].slot);
  }

  /// Copies the first rows of a part from its neighbour's slot, on the stream of the kernels.
  void copyHalo(const Visit& visit) {
    const Tensor tensor = haloTensorOf(tiles_.whole().operation);
    const int slot = visit.uses[tensor].haloSlot;
    if (slot < 0 || !slots_.isStaged(tensor)) return;
    const double bytes = bytesOf(tensor, visit, haloRows(visit).count);
    computed_ += copiesOf(tensor, visit.index).ms(link_, bytes / link_.deviceBytesPerMs);
    free_[tensor][static_cast<std::size_t>(slot)] = computed_;
  }

  /// Copies the rest of a part to its slot if it isn't there. Returns when the slot may be used.
  double fill(const Visit& visit, Tensor tensor) {
    const std::size_t slot = slotOf(visit, tensor);
    double& filled = filled_[tensor][slot];
    if (!visit.uses[tensor].isNew) return filled;
    filled = free_[tensor][slot];
    const auto copy = [&](Place place) {
      filled = read_ = std::max(read_, filled) + copyMs(tensor, visit, place, 0);
    };
    if (tensor != output_ || operands_.readsOutput) copy(operands_.places[tensor]);
    if (tensor == kTensorY && operands_.z) copy(*operands_.z);
    return filled;
  }

  double copyMs(Tensor tensor, const Visit& visit, Place place, std::size_t direction) {
    const bool hasHalo = tensor == haloTensorOf(tiles_.whole().operation);
    const Range band = hasHalo ? tiles_.bandRows(visit.index[kBand]).rows
                               : tiles_.range(kBand, visit.index[kBand]);
    const std::int32_t rows = band.count - (hasHalo ? haloRows(visit).count : 0);
    const double rate = place == Place::kDevice   ? link_.deviceBytesPerMs
                        : place == Place::kPinned ? link_.bytesPerMs[direction]
                                                  : link_.pageableBytesPerMs;
    return copiesOf(tensor, visit.index).ms(link_, bytesOf(tensor, visit, rows) / rate);
  }

  /// The rows of a part that come from its neighbour's slot.
  Range haloRows(const Visit& visit) const {
    Range rows = tiles_.bandRows(visit.index[kBand]).rows;
    const bool isThere = visit.uses[haloTensorOf(tiles_.whole().operation)].haloSlot >= 0;
    const std::int32_t end = isThere ? tiles_.bandRows(visit.index[kBand] - 1).rows.end() : 0;
    rows.count = std::clamp(end - rows.first, 0, rows.count);
    return rows;
  }

  /// The bytes of so many rows of a tile's part.
  double bytesOf(Tensor tensor, const Visit& visit, std::int32_t rows) const {
    const Problem& whole = tiles_.whole();
    const Layout layout = tensor == kTensorX   ? layoutOfX(whole)
                          : tensor == kTensorW ? layoutOfW(whole)
                                               : layoutOfY(whole);
    auto bytes = static_cast<double>(layout.bytes());
    const std::size_t spatial = tiles_.tiling().spatial;
    for (const Axis axis : {kSamples, kOuts, kIns})
      if (dependsOn(whole, tensor, axis))
        bytes *= static_cast<double>(tiles_.range(axis, visit.index[axis]).count) /
                 sizeAlong(whole, axis, spatial);
    if (dependsOn(whole, tensor, kBand))
      bytes *= rows / static_cast<double>(layout.sizes[2 + spatial]);
    return bytes;
  }

  const Copies& copiesOf(Tensor tensor, const TileIndex& index) {
    std::optional<Copies>& known = copies_[tensor];
    if (known) return *known;
    known.emplace();
    const Tile tile = tiles_.tile(index);
    const Problem& whole = tiles_.whole();
    const Problem& problem = tile.problem;
    const std::vector<Rows> all =
        tensor == kTensorX
            ? rowsOf(tile.parts[tensor].sizes, layoutOfX(whole), 0, problem.xStrides, 0)
        : tensor == kTensorW
            ? rowsOf(tile.parts[tensor].sizes, layoutOfW(whole), 0, layoutOfW(problem).strides, 0)
            : rowsOf(tile.parts[tensor].sizes, layoutOfY(whole), 0, problem.yStrides, 0);
    for (const Rows& rows : all) {
      known->count += 1;
      known->rows += static_cast<double>(rows.height);
    }
    return *known;
  }

  /// Tiles differ only in whether they are the last, smaller ones along an axis.
  double kernelMs(const TileIndex& index) {
    std::size_t shape = 0;
    for (const Axis axis : {kSamples, kBand, kOuts, kIns})
      shape = 2 * shape + (index[axis] + 1 == tiles_.count(axis) ? 1 : 0);
    double& known = kernelMs_[shape];
    if (known == 0) known = kernelTime_(tiles_.tile(index).problem);
    return known;
  }

  const Tiles& tiles_;
  const HostOperands& operands_;
  const Link& link_;
  const KernelTime& kernelTime_;
  const SlotLayout slots_;
  const Tensor output_;
  std::array<std::vector<double>, kTensors> free_, filled_;
  std::array<std::optional<Copies>, kTensors> copies_;
  std::array<double, 1 << kAxes> kernelMs_{};
  double read_ = 0, computed_ = 0, written_ = 0;
};

}  // namespace

double predictedMs(const Tiles& tiles,
                   const HostOperands& operands,
                   const Link& link,
                   const KernelTime& kernelTime,
                   double mostMs) {
  PipelineClock clock(tiles, operands, link, kernelTime);
  double end = 0;
  forEachVisit(tiles, [&](const Visit& visit) {
    end = clock.visit(visit);
    return end <= mostMs;
  });
  return end <= mostMs ? end : std::numeric_limits<double>::infinity();
}

}  // namespace ucudnn
