// The results of a benchmark.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "kernels/kernel.hpp"

namespace ucudnn {

/// One kernel at one batch size.
struct Measurement : KernelOffer, KernelTiming {
  /// cuDNN itself has named the workspace and said that it runs; false: a file has.
  bool confirmed = true;
  /// False: the time on the device is not known, and deviceMs is timeMs.
  bool isReplayTimed = true;
};

/// Every kernel measured at one batch size.
struct SizeMeasurements {
  std::vector<Measurement> kernels;
};

/// Batch size -> the measurements at it.
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

/// The known error of the kernel at `batch`; null: it is not known. A filter gradient's error grows
/// with the number of samples that are added up, so that of fewer samples says nothing.
const KnownError* knownError(const KernelErrors& errors,
                             Operation operation,
                             int batch,
                             Kernel kernel) noexcept;

/// The error of a kernel measured at `batch`: its own, else the largest known error there.
double errorOf(const Measurement& measured,
               Operation operation,
               int batch,
               const KernelErrors& largest) noexcept;

/// Null if the kernel is not among them.
const Measurement* findKernel(const std::vector<Measurement>& kernels, Kernel kernel) noexcept;
const Measurement* findKernel(const Measurements& measurements, int batch, Kernel kernel) noexcept;

/// Null if there is none.
const Measurement* fastestOf(const std::vector<Measurement>& kernels) noexcept;

/// Whether some other kernel of `kernels` makes `kernel` pointless. It needs no more workspace, and
/// takes at most 1/`factor` of the time, enqueued as well as replayed. It is as accurate, and is
/// deterministic if `kernel` is.
bool isDominated(const Measurement& kernel, const std::vector<Measurement>& kernels, double factor);

}  // namespace ucudnn
