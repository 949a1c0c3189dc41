// The key of a captured call. Its graph stands for all calls with an equal key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/call_stream.hpp"
#include "plan/call.hpp"
#include "plan/plan.hpp"

namespace ucudnn {

/// All that a call's kernels are given: a graph holds it as it was when it was captured. Compared
/// word by word.
struct ReplayKey {
  static constexpr std::size_t kWords = 24;

  std::uint64_t owner = 0;  ///< names the handle that captured it
  std::uint64_t plan = 0;
  /// The stream of the launch. Launches of one graph run one after another, so each stream has its
  /// own.
  std::uint64_t stream = 0;
  std::array<std::uint64_t, kWords> words{};  ///< pointers, factors, and what a fused call has

  bool operator==(const ReplayKey& other) const noexcept {
    return owner == other.owner && plan == other.plan && stream == other.stream &&
           words == other.words;
  }
  std::uint64_t hash() const noexcept;

  struct Hash {
    std::size_t operator()(const ReplayKey& key) const noexcept {
      return static_cast<std::size_t>(key.hash());
    }
  };
};

/// Empty for a call that cuDNN will refuse: a pointer is missing, or a descriptor can't be read.
std::optional<ReplayKey> replayKey(std::uint64_t owner,
                                   const Plan& plan,
                                   const ConvolutionCall& call,
                                   const CallStream& stream) noexcept;

}  // namespace ucudnn
