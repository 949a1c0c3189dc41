// Settings whose values have names.
#pragma once

#include <string>

namespace ucudnn {

/// Which micro-batch sizes are tried (μ-cuDNN paper, section III-D).
enum class BatchSizePolicy {
  kUndivided,  ///< the mini-batch only
  /// 1, 2, 4, ..., and the mini-batch itself. Also the largest batches at which fast kernels fit
  /// the limit, and the rest of the mini-batch beside them (benchmark/largest_batches.hpp). The
  /// paper has powers of two only; but if a kernel just misses the limit, a part half as large is
  /// slower.
  kPowerOfTwo,
  kAll,  ///< every size from 1 to the mini-batch
};

constexpr BatchSizePolicy kBatchSizePolicies[] = {
    BatchSizePolicy::kUndivided, BatchSizePolicy::kPowerOfTwo, BatchSizePolicy::kAll};

/// "undivided", "powerOfTwo", "all".
const char* toText(BatchSizePolicy policy) noexcept;

/// Throws std::invalid_argument that says why, without the text.
BatchSizePolicy batchSizePolicyFromText(const std::string& text);

/// Which kernels plans are made of.
enum class Kernels {
  kLegacy,   ///< the algorithms of cuDNN's legacy API
  kEngines,  ///< the engines of its graph API
  kAll,
};

/// "legacy", "engines", "all".
const char* toText(Kernels kernels) noexcept;

/// Throws std::invalid_argument.
Kernels kernelsFromText(const std::string& text);

/// How many kernels are timed to find plans.
enum class Tuning {
  kExhaustive,  ///< all that could be in a best plan
  kFast,        ///< those that probably are, by the times at a middle size
};

/// "exhaustive", "fast".
const char* toText(Tuning tuning) noexcept;

/// Throws std::invalid_argument.
Tuning tuningFromText(const std::string& text);

/// How one workspace total serves all convolutions.
enum class TotalWorkspacePolicy {
  kDivide,  ///< each convolution owns a segment
  kShare,   ///< streams take one or a few arenas in turn
  kAuto,    ///< the same as kShare
};

/// "divide", "share", "auto".
const char* toText(TotalWorkspacePolicy policy) noexcept;

/// Throws std::invalid_argument; also for "divide" in a build without UCUDNN_DIVIDE.
TotalWorkspacePolicy totalWorkspacePolicyFromText(const std::string& text);

}  // namespace ucudnn
