// The order in which tiles are copied and computed, and how long that takes.
#pragma once

#include <functional>
#include <limits>
#include <optional>

#include "host/place.hpp"
#include "host/tiling.hpp"

namespace ucudnn {

/// Where a call's tensors are, and how they are used.
struct HostOperands {
  /// The places of x, w and y. The output's says how its parts are written back.
  std::array<Place, kTensors> places{Place::kDevice, Place::kDevice, Place::kDevice};
  bool readsOutput = false;  ///< beta is not 0
  std::optional<Place> z;    ///< of bias_activation_forward with alpha2 != 0
  std::optional<Place> bias;
  std::size_t biasElementBytes = 0;

  /// Whether a tensor is pageable: then a call waits until it is done.
  bool isPageable() const noexcept;
  bool isOnHost() const noexcept;
  bool operator==(const HostOperands& other) const noexcept {
    return places == other.places && readsOutput == other.readsOutput && z == other.z &&
           bias == other.bias && biasElementBytes == other.biasElementBytes;
  }
};

/// The rates of the link between host and device, each with the other direction busy.
struct Link {
  double bytesPerMs[2] = {25e6, 25e6};  ///< pinned memory, to the device and to the host
  double pageableBytesPerMs = 5e6;      ///< through a pinned buffer
  double deviceBytesPerMs = 5e8;        ///< within the device
  double copyMs = 0.005;                ///< what each copy takes beside its bytes
  double rowMs = 1e-4;                  ///< and each row
};

/// A tile in the order of computation.
struct Visit {
  struct Use {
    int slot = 0;
    bool isNew = false;  ///< the slot gets another part
    int haloSlot = -1;   ///< where the neighbour band is that has the first rows; -1: nowhere
  };
  TileIndex index{};
  std::array<Use, kTensors> uses;
  bool isLast = true;  ///< of the tiles that add to its part of the output
};

/// Calls `visit` for each tile until it returns false.
void forEachVisit(const Tiles& tiles, const std::function<bool(const Visit&)>& visit);

/// The device memory that a division takes.
class SlotLayout {
 public:
  SlotLayout(const Tiles& tiles, const HostOperands& operands);

  /// Whether the tensor's parts are copied; else it is used where it is.
  bool isStaged(Tensor tensor) const noexcept { return bytes_[tensor] > 0; }
  bool hasZ() const noexcept { return zOffset_ > 0; }
  /// The tile's problem as it is computed: a tensor that stays where it is keeps its strides.
  Problem inPlace(const Problem& whole, Problem tile) const noexcept;
  std::size_t bytes() const noexcept { return all_; }
  std::size_t offset(Tensor tensor, int slot) const noexcept {
    return offsets_[tensor] + static_cast<std::size_t>(slot) * bytes_[tensor];
  }
  std::size_t offsetOfZ(int slot) const noexcept {
    return zOffset_ + static_cast<std::size_t>(slot) * bytes_[kTensorY];
  }

 private:
  std::array<std::size_t, kTensors> bytes_{}, offsets_{};
  std::size_t zOffset_ = 0, all_ = 0;
};

/// The time of a tile's kernels in ms.
using KernelTime = std::function<double(const Problem&)>;

/// When a call of these tiles ends, by a simulation of both copy streams and the caller's.
/// Infinite if that is after `mostMs`.
double predictedMs(const Tiles& tiles,
                   const HostOperands& operands,
                   const Link& link,
                   const KernelTime& kernelTime,
                   double mostMs = std::numeric_limits<double>::infinity());

}  // namespace ucudnn
