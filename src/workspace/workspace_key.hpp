// Identifies a network: handles that agree in all of this share a workspace total.
#pragma once

#include <cstddef>
#include <limits>
#include <tuple>

#include "support/settings.hpp"

namespace ucudnn {

/// A capture's workspace is as large as the network's convolutions need, within the total.
constexpr std::size_t kGraphWorkspaceAsNeeded = std::numeric_limits<std::size_t>::max();

struct WorkspaceKey {
  int device = 0;
  std::size_t totalBytes = 0;
  bool divides = false;  ///< else the network shares the total
  BatchSizePolicy batchSizePolicy = BatchSizePolicy::kPowerOfTwo;
  Kernels kernels = Kernels::kLegacy;
  Tuning tuning = Tuning::kExhaustive;
  double maxError = 0;
  bool deterministic = false;
  std::size_t graphBytes = kGraphWorkspaceAsNeeded;  ///< of each capture; 0: none
  const void* plans = nullptr;                       ///< the file of plans; null: none
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
                    graphBytes,
                    plans,
                    plansStrict,
                    borrowOutput);
  }
  bool operator<(const WorkspaceKey& other) const noexcept { return tied() < other.tied(); }
};

}  // namespace ucudnn
