#include "host/division.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "cuda/error.hpp"
#include "support/alignment.hpp"

namespace ucudnn {
namespace {

// The most tiles of a division. More than kManyTiles are simulated only while nothing has fitted.
constexpr std::int64_t kManyTiles = 512, kMostTiles = 4096;
// Channels and filters are cut at multiples of this: tensor cores multiply eight at a time, or
// more.
constexpr std::int32_t kChannels = 8;
// More workspace than this many times a tile's tensors gains nothing: kernels copy and transform
// tensors.
constexpr std::size_t kWorkspaceTimes = 4;
constexpr std::size_t kLeastWorkspace = std::size_t{1} << 30;
// A division into more tiles must be faster by this: each tile costs the host, and estimates don't
// know that.
constexpr double kTilesGain = 0.99;
// A division this near to the bound ends the search.
constexpr double kNearBound = 1.05;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// Tries tilings, orders of tiles, and numbers of slots.
class Search {
 public:
  Search(const Problem& whole,
         const HostOperands& operands,
         const Link& link,
         const DeviceBudget& budget,
         const TileKernels& kernels)
      : whole_(whole),
        operands_(operands),
        link_(link),
        budgetBytes_(budget.forTiles()),
        otherBytes_(budget.otherBytes),
        kernels_(kernels) {
    best_.predictedMs = kNever;
  }

  Division run() {
    // First only samples and bands are cut, then filters, then channels, each only if it may pay.
    tryAll(1, 1);
    if (!isNearBound()) tryAll(kMostTiles, 1);
    if (!isNearBound()) tryAll(kMostTiles, kMostTiles);
    if (!isFound()) refuse();
    return best_;
  }

 private:
  bool isFound() const noexcept { return best_.predictedMs < kNever; }

  bool mayCut(Axis axis) const noexcept {
    if (axis == kIns && (whole_.groups > 1 || isFused())) return false;
    // Adding up would round each time.
    return !addsAlong(whole_, axis) || !isRounded(whole_.outputType());
  }
  bool isFused() const noexcept { return whole_.operation == Operation::kBiasActivationForward; }

  /// Sizes of tiles along an axis, the largest first.
  std::vector<std::int32_t> sizesOf(Axis axis, std::size_t spatial, std::int64_t mostParts) const {
    const std::int32_t all = sizeAlong(whole_, axis, spatial);
    if (!mayCut(axis) || all == 1 || mostParts == 1) return {all};
    std::int32_t unit = 1;
    if (axis == kBand && whole_.operation == Operation::kBackwardData)
      unit = whole_.strides[spatial];
    if ((axis == kOuts || axis == kIns) && whole_.groups == 1 && all > kChannels) unit = kChannels;
    std::set<std::int32_t, std::greater<>> sizes = {all};
    for (std::int32_t parts = 2; parts < all; parts *= 2) {
      for (const std::int32_t count : {parts, parts + parts / 2}) {
        if (count != parts && axis != kBand) continue;
        const std::int32_t size = ((all + count - 1) / count + unit - 1) / unit * unit;
        if (size < all) sizes.insert(size);
      }
    }
    if (unit < all) sizes.insert(unit);
    if (axis == kOuts || axis == kIns) sizes.insert(1);
    return {sizes.begin(), sizes.end()};
  }

  void tryAll(std::int64_t mostOuts, std::int64_t mostIns) {
    for (std::size_t spatial = 0;
         spatial + 3 < static_cast<std::size_t>(whole_.dimensions) || spatial == 0;
         ++spatial)
      for (const std::int32_t outs : sizesOf(kOuts, spatial, mostOuts))
        for (const std::int32_t ins : sizesOf(kIns, spatial, mostIns)) tryBands(spatial, outs, ins);
  }

  /// Bands are tried for single samples: more samples are cut by the batch first.
  void tryBands(std::size_t spatial, std::int32_t outs, std::int32_t ins) {
    Tiling tiling;
    tiling.spatial = spatial;
    tiling.size = {0, sizeAlong(whole_, kBand, spatial), outs, ins};
    for (const std::int32_t samples : sizesOf(kSamples, spatial, kMostTiles)) {
      tiling.size[kSamples] = samples;
      tryOrders(tiling);
    }
    if (tiling.size[kSamples] > 1 && whole_.batch() > 1) return;  // it can't be cut
    for (const std::int32_t rows : sizesOf(kBand, spatial, kMostTiles)) {
      tiling.size[kBand] = rows;
      tryOrders(tiling);
    }
  }

  void tryOrders(Tiling tiling) {
    for (const bool bandsOutside : {true, false}) {
      tiling.bandsOutside = bandsOutside;
      if (!trySlots(tiling, 2, kTensors)) {
        trySlots(tiling, 1, kTensors);
        continue;
      }
      trySlots(tiling, 3, kTensors);
      for (const Tensor whole : {kTensorX, kTensorW, kTensorY})
        if (whole != outputTensorOf(whole_.operation)) trySlots(tiling, 2, whole);
    }
  }

  /// `resident`: the tensor all of whose parts stay on the device; kTensors: none. Returns whether
  /// the slots fit.
  bool trySlots(Tiling tiling, int slots, std::size_t resident) {
    const Tiles uncounted(whole_, tiling);
    if (uncounted.count() > (isFound() ? kManyTiles : kMostTiles)) return false;
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY}) {
      const std::int64_t parts = uncounted.partsOf(tensor);
      const bool isResident = tensor == resident;
      if (isResident && parts <= slots + 1) return true;  // as without
      tiling.slots[tensor] =
          static_cast<int>(isResident ? parts : std::min<std::int64_t>(parts, slots));
    }
    const Tiles tiles(whole_, tiling);
    const SlotLayout layout(tiles, operands_);
    if (tiles.tile({}).problem.isLarge()) return false;
    if (isNaming_) return name(tiles, layout);
    if (layout.bytes() > budgetBytes_) return false;
    const std::size_t workspaceBytes = roundDownToAlignment(
        std::min(budgetBytes_ - layout.bytes(), usefulWorkspace(tiles.tile({}).problem)));
    const double ms = simulatedMs(tiles, workspaceBytes);
    // cuDNN is asked for the workspace only if the division is the best so far.
    if (ms == kNever) return true;
    const std::size_t least = leastWorkspace(tiles, layout);
    if (least > budgetBytes_ - layout.bytes()) return false;
    best_ = {tiles.tiling(), layout.bytes(), std::max(workspaceBytes, least), ms};
    return true;
  }

  /// Nothing fits. Repeats the search for the least bytes that would, and throws an Error that
  /// names them.
  [[noreturn]] void refuse() {
    isNaming_ = true;
    tryAll(kMostTiles, kMostTiles);
    const std::string problem =
        whole_.text() + " N=" + std::to_string(whole_.batch()) + " on host memory";
    if (leastBytes_ == kNoWorkspace)
      throw Error(CUDNN_STATUS_NOT_SUPPORTED, "cuDNN has no algorithm for tiles of " + problem);
    throw Error(CUDNN_STATUS_ALLOC_FAILED,
                "the smallest tiles of " + problem + " need " +
                    std::to_string(leastBytes_ + otherBytes_) +
                    " bytes of device memory, and UCUDNN_DEVICE_MEMORY is " +
                    std::to_string(budgetBytes_ + otherBytes_));
  }
  bool name(const Tiles& tiles, const SlotLayout& layout) {
    if (layout.bytes() >= leastBytes_) return false;
    const std::size_t workspaceBytes = leastWorkspace(tiles, layout);
    if (workspaceBytes < leastBytes_ - layout.bytes())
      leastBytes_ = layout.bytes() + workspaceBytes;
    return false;
  }

  /// Within which kernels run for all tiles: the last ones along an axis are others. kNoWorkspace:
  /// one has no kernel.
  std::size_t leastWorkspace(const Tiles& tiles, const SlotLayout& layout) const {
    std::size_t most = 0;
    for (unsigned last = 0; last < 1U << kAxes; ++last) {
      TileIndex index{};
      bool exists = true;
      for (const Axis axis : {kSamples, kBand, kOuts, kIns}) {
        if ((last >> axis & 1U) == 0) continue;
        index[axis] = tiles.count(axis) - 1;
        exists = exists && index[axis] > 0;
      }
      if (!exists) continue;
      const Problem tile = layout.inPlace(whole_, tiles.tile(index).problem);
      most = std::max(most, kernels_.leastWorkspace(tile));
    }
    return most == kNoWorkspace ? most : roundUpToAlignment(most);
  }

  /// The time of the division's calls, simulated. kNever if the best one so far is as good.
  double simulatedMs(const Tiles& tiles, std::size_t workspaceBytes) const {
    const KernelTime kernelTime = [&](const Problem& tile) {
      return kernels_.ms(tile, workspaceBytes);
    };
    const bool hasMore = isFound() && tiles.count() > Tiles(whole_, best_.tiling).count();
    const double most = best_.predictedMs * (hasMore ? kTilesGain : 1);
    if (kernelTime(tiles.tile({}).problem) * wholeTiles(tiles) >= most) return kNever;
    const double ms = predictedMs(tiles, operands_, link_, kernelTime, most);
    if (ms < most) return ms;
    return kNever;
  }

  /// How many tiles have full size.
  double wholeTiles(const Tiles& tiles) const {
    double count = 1;
    for (const Axis axis : {kSamples, kBand, kOuts, kIns}) {
      const std::int32_t all = sizeAlong(whole_, axis, tiles.tiling().spatial);
      count *= std::max(1, all / tiles.tiling().size[axis]);
    }
    return count;
  }

  /// Whether no division can be much faster, because the kernels, or one direction of the link,
  /// must take as long.
  bool isNearBound() const {
    if (!isFound()) return false;
    const double bytes[] = {static_cast<double>(whole_.xBytes()),
                            static_cast<double>(whole_.wBytes()),
                            static_cast<double>(whole_.yBytes())};
    double ms[2] = {0, 0};
    const Tensor output = outputTensorOf(whole_.operation);
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY}) {
      if (operands_.places[tensor] == Place::kDevice) continue;
      if (tensor != output || operands_.readsOutput) ms[0] += bytes[tensor] / link_.bytesPerMs[0];
      if (tensor == output) ms[1] += bytes[tensor] / link_.bytesPerMs[1];
    }
    const Tiles tiles(whole_, best_.tiling);
    const double kernels =
        kernels_.ms(tiles.tile({}).problem, best_.workspaceBytes) * wholeTiles(tiles);
    return best_.predictedMs <= kNearBound * std::max({ms[0], ms[1], kernels});
  }

  const Problem& whole_;
  const HostOperands& operands_;
  const Link& link_;
  const std::size_t budgetBytes_, otherBytes_;
  const TileKernels& kernels_;
  Division best_;
  bool isNaming_ = false;  ///< looks for the least bytes, as nothing fits
  std::size_t leastBytes_ = kNoWorkspace;
};

}  // namespace

std::size_t usefulWorkspace(const Problem& tile) noexcept {
  const std::size_t tensorBytes = tile.xBytes() + tile.wBytes() + tile.yBytes();
  return std::max(kLeastWorkspace, kWorkspaceTimes * tensorBytes);
}

Division chooseDivision(const Problem& whole,
                        const HostOperands& operands,
                        const Link& link,
                        const DeviceBudget& budget,
                        const TileKernels& kernels) {
  return Search(whole, operands, link, budget, kernels).run();
}

}  // namespace ucudnn
