// What the benchmark finds out.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "kernels/kernel.hpp"

namespace ucudnn {

/// One kernel at one batch size.
struct Measurement : KernelOffer, KernelTiming {
  /// Workspace and support are cuDNN's own word, not a file's.
  bool confirmed = true;
  /// False: it is not known what the device needs, and deviceMs is timeMs.
  bool isReplayTimed = true;
};

/// Every kernel measured at one batch size.
struct SizeMeasurements {
  std::vector<Measurement> kernels;
};

/// Batch size -> what was measured at it.
using Measurements = std::map<int, SizeMeasurements>;

/// Batch size -> some of the kernels at it.
using KernelsAtSizes = std::map<int, std::vector<Kernel>>;

/// A kernel's largest error at any size, and the largest size where it was measured.
struct KnownError {
  double error = 0;
  int batch = 0;
};
using KernelErrors = std::map<Kernel, KnownError>;
/// Adds those of the kernels, measured at `batch`, whose error is known.
void addErrors(KernelErrors& to, int batch, const std::vector<Measurement>& kernels);
KernelErrors largestErrors(const Measurements& measurements);

/// What is known of the kernel's error at `batch`; null: nothing. A filter gradient's grows with
/// what is added up: that of fewer samples says nothing.
const KnownError* knownError(const KernelErrors& errors,
                             Operation operation,
                             int batch,
                             Kernel kernel) noexcept;

/// The error of a kernel measured at `batch`: its own, else the largest that is known of it there.
double errorOf(const Measurement& measured,
               Operation operation,
               int batch,
               const KernelErrors& largest) noexcept;

/// Null: it is not among them.
const Measurement* findKernel(const std::vector<Measurement>& kernels, Kernel kernel) noexcept;
const Measurement* findKernel(const Measurements& measurements, int batch, Kernel kernel) noexcept;

/// Null: there is none.
const Measurement* fastestOf(const std::vector<Measurement>& kernels) noexcept;

/// Whether some other kernel of `kernels` makes `kernel` pointless: it needs no more workspace,
/// takes at most 1/`factor` of the time, enqueued as well as replayed, and is deterministic where
/// `kernel` is, and as accurate.
bool isDominated(const Measurement& kernel, const std::vector<Measurement>& kernels, double factor);

}  // namespace ucudnn
