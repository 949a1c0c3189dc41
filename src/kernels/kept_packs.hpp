// The variant packs that an engine's plan is called with.
#pragma once

#include "kernels/backend.hpp"

#if UCUDNN_HAS_ENGINES

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ucudnn {

/// The arguments of a call of an engine's plan. `data` is x, w, y, the bias and z; a graph uses the
/// first few of them.
struct PackContents {
  std::array<const void*, 5> data{};
  const void* workspace = nullptr;
  cudnnHandle_t handle = nullptr;  ///< a variant pack must not be shared between handles
  cudnnBackendDescriptor_t plan = nullptr;

  bool operator==(const PackContents& other) const noexcept {
    return data == other.data && workspace == other.workspace && handle == other.handle &&
           plan == other.plan;
  }
  /// Depends on the order of the buffers: buffers may change roles.
  std::size_t hash() const noexcept {
    auto mixed = reinterpret_cast<std::uintptr_t>(workspace);
    for (const void* const each : data) mixed = mixed * 3 + reinterpret_cast<std::uintptr_t>(each);
    return static_cast<std::size_t>(mixed * 0x9E3779B97F4A7C15u >> 32);
  }
};

/// The variant packs of an engine's last calls. cuDNN 9.19 takes a quarter of a microsecond to make
/// one, and a program that repeats its steps passes the same memory again. A finalized pack is
/// never changed: other contents need another pack. Thread-safe: no call waits for a pack that is
/// in use.
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

  // A network has the same convolution several times, each with its own memory: a ResNet-50 six
  // times.
  std::array<Place, 16> places_;
};

}  // namespace ucudnn

#endif
