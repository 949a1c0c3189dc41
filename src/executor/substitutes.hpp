// Runs calls that cuDNN refuses because their workspace is too small for the named algorithm, and
// names one for calls that have none.
#pragma once

#include <cstddef>
#include <optional>

#include "executor/executor.hpp"
#include "kernels/fitting.hpp"
#include "support/bounded_map.hpp"

namespace ucudnn {

/// Runs such a call with another algorithm, and remembers which. Not thread-safe.
class Substitutes {
 public:
  /// Empty if the named algorithm fits, if none does, or if the other one fails as well. cuDNN's
  /// answer to the call as it was made stands then. `deterministicOnly` is the setting. Without it
  /// a named deterministic algorithm is replaced by a non-deterministic one if nothing else fits,
  /// which is logged. REQUIRES: the call's descriptors have the problem's values.
  std::optional<cudnnStatus_t> run(cudnnHandle_t handle,
                                   const Problem& problem,
                                   const ConvolutionCall& call,
                                   bool deterministicOnly) noexcept;

  /// For a call of any algorithm: the first by cuDNN's heuristics that fits its workspace. Empty if
  /// none does, or cuDNN fails.
  std::optional<int> first(cudnnHandle_t handle,
                           const Problem& problem,
                           const ConvolutionCall& call,
                           bool deterministicOnly) noexcept;

  void clear() noexcept { known_.clear(); }

 private:
  struct Key {
    Problem problem;
    std::size_t workspaceBytes;
    int algorithm;
    Determinism determinism;
    bool operator==(const Key& other) const noexcept {
      return workspaceBytes == other.workspaceBytes && algorithm == other.algorithm &&
             determinism == other.determinism && problem == other.problem;
    }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return key.problem.hash() ^ key.workspaceBytes ^ static_cast<std::size_t>(key.algorithm);
    }
  };

  const std::optional<int>& find(cudnnHandle_t handle, const Key& key, const ConvolutionCall& call);
  static std::optional<int> choose(cudnnHandle_t handle,
                                   const Key& key,
                                   const ConvolutionCall& call);

  // Shapes and workspaces may change for ever. Choosing again costs some host time and a log line.
  BoundedMap<Key, std::optional<int>, Hash> known_{1024};
};

}  // namespace ucudnn
