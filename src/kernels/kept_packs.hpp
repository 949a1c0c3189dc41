// The variant packs that an engine's plan is called with.
#pragma once

#include "kernels/backend.hpp"

#if UCUDNN_HAS_ENGINES

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ucudnn {

/// What a call of an engine's plan is given. Of x, w, y, the bias and z a graph has the first few.
struct PackContents {
  std::array<const void*, 5> data{};
  const void* workspace = nullptr;
  cudnnHandle_t handle = nullptr;  ///< a variant pack must not be shared between handles
  cudnnBackendDescriptor_t plan = nullptr;

  bool operator==(const PackContents& other) const noexcept {
    return data == other.data && workspace == other.workspace && handle == other.handle &&
           plan == other.plan;
  }
  /// Buffers that change roles give other numbers.
  std::size_t hash() const noexcept {
    auto mixed = reinterpret_cast<std::uintptr_t>(workspace);
    for (const void* const each : data) mixed = mixed * 3 + reinterpret_cast<std::uintptr_t>(each);
    return static_cast<std::size_t>(mixed * 0x9E3779B97F4A7C15u >> 32);
  }
};

/// The variant packs of an engine's last calls. To make one takes cuDNN 9.19 a quarter of a
/// microsecond, and a program that repeats brings the same memory. A finalized pack is never
/// changed: other contents are another pack. Thread-safe: a pack that is in use is not waited for.
class KeptPacks {
 public:
  cudnnStatus_t execute(const PackContents& contents, std::int64_t tensors) noexcept;

 private:
  struct Place {
    std::atomic<bool> isTaken{false};
    PackContents contents;
    BackendDescriptor pack;  ///< null: none, or it has failed
  };

  static cudnnStatus_t executeIn(Place& place,
                                 const PackContents& contents,
                                 std::int64_t tensors) noexcept;

  // A network has a convolution several times over, each with memory of its own: a ResNet-50 six
  // times.
  std::array<Place, 16> places_;
};

}  // namespace ucudnn

#endif
