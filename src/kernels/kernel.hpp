// A kernel is one way to compute a problem: as a value, as a source's offer, and as something that
// runs.
#pragma once

#include <cudnn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/native.hpp"

namespace ucudnn {

/// One kernel of an operation: a value that knows no problem.
struct Kernel {
  std::int32_t id = 0;        ///< its source's number for it: for an algorithm cuDNN's enumerator
  std::int32_t mathType = 0;  ///< cudnnMathType_t
  std::int32_t source = 0;    ///< place among the sources (source.hpp)

  bool operator==(const Kernel& other) const noexcept {
    return id == other.id && mathType == other.mathType && source == other.source;
  }
  bool operator<(const Kernel& other) const noexcept {
    return source != other.source ? source < other.source
           : id != other.id       ? id < other.id
                                  : mathType < other.mathType;
  }
};

inline bool contains(const std::vector<Kernel>& kernels, Kernel kernel) {
  return std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
}

/// Which calls a kernel or a plan is made for.
enum class Calls {
  kAll,
  kOverwriting,  ///< those whose beta is 0
};

constexpr double kUnknownError = std::numeric_limits<double>::infinity();

// A kernel's error differs by up to this factor on other data, or when it is measured again: a few
// hundred outputs tell it to about 5 %.
constexpr double kErrorSpread = 1.25;

/// A kernel's needs and promises for one problem.
struct KernelTraits {
  std::size_t workspaceBytes = 0;
  bool deterministic = true;
  bool accurate = true;  ///< rounds no worse than other kernels of its math type
  bool anyCall = true;   ///< runs whatever the call's factors and pointers are; false: only if
                         ///< suitsEngines
  /// Measured: the normalized L2 distance of its output to that in double (exact_outputs.hpp).
  double error = kUnknownError;
  /// The calls that the workspace is known for. An engine may need more to add to its output, or
  /// may be unable to add.
  Calls calls = Calls::kAll;
  bool compiled = false;  ///< cuDNN compiles it when it is built: 0.3 to 1.5 s
};

/// What a kernel must keep to where cuDNN's heuristics choose it.
struct OfferBounds {
  std::size_t limitBytes = 0;
  bool deterministic = false;
  Calls calls = Calls::kAll;

  bool admit(const KernelTraits& kernel) const noexcept {
    return kernel.workspaceBytes <= limitBytes && (kernel.deterministic || !deterministic);
  }
};

/// The time of one call of a kernel.
struct KernelTiming {
  double timeMs = 0;  ///< among many enqueued back to back
  /// Among many replayed as a CUDA graph. Less than timeMs if the host takes longer to enqueue a
  /// call than the device to run it, and because the gaps between kernels are shorter.
  double deviceMs = 0;
};

/// A kernel that a source has for a problem.
struct KernelOffer : KernelTraits {
  Kernel kernel;
};

/// Whether `other` can stand in for `kernel` as far as workspace, determinism and accuracy go.
inline bool canStandInFor(const KernelTraits& other, const KernelTraits& kernel) noexcept {
  return other.workspaceBytes <= kernel.workspaceBytes &&
         (other.deterministic || !kernel.deterministic) && (other.accurate || !kernel.accurate) &&
         (other.anyCall || !kernel.anyCall) && other.error <= kErrorSpread * kernel.error;
}

class Slices;

/// A kernel made ready to run a problem. Immutable: threads share it, and so do handles of devices
/// of the same model.
class BuiltKernel {
 public:
  BuiltKernel() = default;
  BuiltKernel(const BuiltKernel&) = delete;
  BuiltKernel& operator=(const BuiltKernel&) = delete;
  virtual ~BuiltKernel() = default;

  /// Enqueues it on the handle's stream. `fused` is used, and needed, by bias_activation_forward
  /// only; its z has y's layout, and its zDescriptor is not read.
  virtual cudnnStatus_t enqueue(cudnnHandle_t handle,
                                const ConvolutionPointers& pointers,
                                const BiasActivation* fused) const noexcept = 0;

  /// Enqueues `count` micro-batches of `batch` samples, one after another in the same workspace,
  /// and steps over them. `*enqueued` grows by the number that have written their output.
  virtual cudnnStatus_t enqueueRun(
      cudnnHandle_t handle, Slices& slices, int batch, int count, int* enqueued) const noexcept;

  /// The workspace that it wants on this handle, in bytes. Any other status than success: it does
  /// not run there. Asks on the host.
  virtual cudnnStatus_t workspaceSize(cudnnHandle_t handle, std::size_t* bytes) const noexcept = 0;
};

}  // namespace ucudnn
