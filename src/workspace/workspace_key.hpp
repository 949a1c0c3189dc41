// Identifies a network: handles that agree in all of this share a workspace total.
#pragma once

#include <cstddef>
#include <tuple>

#include "support/settings.hpp"

namespace ucudnn {

struct WorkspaceKey {
  int device = 0;
  std::size_t totalBytes = 0;
  bool divides = false;  ///< else the network shares the total
  BatchSizePolicy batchSizePolicy = BatchSizePolicy::kPowerOfTwo;
  Kernels kernels = Kernels::kLegacy;
  Tuning tuning = Tuning::kExhaustive;
  double maxError = 0;
  bool deterministic = false;
  const void* plans = nullptr;  ///< the file of plans; null: none
  bool plansStrict = false;
  bool borrowOutput = true;

  auto tied() const noexcept {
    return std::tie(device,
                    totalBytes,
                    divides,
                    batchSizePolicy,
                    kernels,
                    tuning,
                    maxError,
                    deterministic,
                    plans,
                    plansStrict,
                    borrowOutput);
  }
  bool operator<(const WorkspaceKey& other) const noexcept { return tied() < other.tied(); }
};

}  // namespace ucudnn
