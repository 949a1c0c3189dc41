#include "benchmark/largest_batches.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "benchmark/selection.hpp"
#include "benchmark/timing_limits.hpp"
#include "kernels/source.hpp"

namespace ucudnn {
namespace {

// Of so many kernels, the fastest: each adds up to four sizes. As many that run any call, and
// others: with engines a plan must be no slower than without.
constexpr int kMostKernels = 4;
// Workspace grows with the batch, mostly along a line, so that a few questions find the largest
// batch; a kernel whose workspace jumps gets one that is a little smaller.
constexpr int kMostQuestions = 8;

/// The largest batch at which a kernel fits.
struct Largest {
  int batch = 0;
  double perSampleMs = 0;
  bool anyCall = false;  ///< the kernel's
};

/// Of a kernel that fits at `fits`: the largest batch below `tooLarge` at which it does.
class LargestBatch {
 public:
  LargestBatch(cudnnHandle_t handle, const Problem& problem, std::size_t limitBytes, Kernel kernel)
      : handle_(handle), problem_(problem), limitBytes_(limitBytes), kernel_(kernel) {}

  /// Empty: it fits at `tooLarge` as well.
  std::optional<int> find(int fits, std::size_t bytesThere, int tooLarge) const {
    auto most = workspaceAt(tooLarge);
    if (most && *most <= limitBytes_) return std::nullopt;
    std::size_t least = bytesThere;
    for (int question = 0; question < kMostQuestions && tooLarge - fits > 1; ++question) {
      const int batch = between(fits, least, tooLarge, most);
      const auto bytes = workspaceAt(batch);
      if (bytes && *bytes <= limitBytes_) {
        fits = batch;
        least = *bytes;
      } else {
        tooLarge = batch;
        most = bytes;
      }
    }
    return fits;
  }

 private:
  std::optional<std::size_t> workspaceAt(int batch) const {
    const Problem part = problem_.withBatch(batch);
    const auto offer =
        offeredKernel(handle_, part, std::make_shared<const ProblemDescriptors>(part), kernel_);
    return offer ? std::optional<std::size_t>(offer->workspaceBytes) : std::nullopt;
  }

  /// Where a line through both ends meets the limit; the middle where cuDNN does not have one.
  int between(int fits,
              std::size_t least,
              int tooLarge,
              const std::optional<std::size_t>& most) const {
    if (!most || *most <= least) return fits + (tooLarge - fits) / 2;
    const double share =
        static_cast<double>(limitBytes_ - least) / static_cast<double>(*most - least);
    const int batch = fits + static_cast<int>(share * (tooLarge - fits));
    return std::clamp(batch, fits + 1, tooLarge - 1);
  }

  cudnnHandle_t handle_;
  const Problem& problem_;
  std::size_t limitBytes_;
  Kernel kernel_;
};

bool hasKernel(const SizeMeasurements& size, Kernel kernel) {
  return std::any_of(size.kernels.begin(), size.kernels.end(), [&](const Measurement& m) {
    return m.kernel == kernel;
  });
}

/// Sizes of which a mini-batch can be made, with parts of at most `largest`.
std::vector<int> partsOf(int miniBatch, int largest) {
  const int parts = (miniBatch + largest - 1) / largest;
  const int even = (miniBatch + parts - 1) / parts;
  return {largest, miniBatch - (parts - 1) * largest, even, miniBatch - (parts - 1) * even};
}

}  // namespace

std::vector<int> largestBatches(cudnnHandle_t handle,
                                const Problem& problem,
                                std::size_t limitBytes,
                                const Measurements& measured) {
  std::vector<Largest> found;
  for (auto size = measured.begin(); size != measured.end(); ++size) {
    const auto next = std::next(size);
    if (next == measured.end()) break;
    for (const Measurement& m : size->second.kernels) {
      // Samples may cost a kernel little beside what any call of it takes: what it may take at the
      // largest batch decides, not what it took at fewer.
      const auto mayWin = [&](int batch) {
        return !isOffFront(measured, batch, hopedFor(measured, m.kernel, batch), m, kNearFront);
      };
      const bool isFarBehind =
          isOffFront(measured, size->first, m, m, kNearFront * kFasterAtLargerBatches);
      if (isFarBehind || hasKernel(next->second, m.kernel) || !mayWin(next->first - 1)) continue;
      const auto batch = LargestBatch(handle, problem, limitBytes, m.kernel)
                             .find(size->first, m.workspaceBytes, next->first);
      if (batch && *batch > size->first && mayWin(*batch))
        found.push_back({*batch, std::min(m.timeMs, m.deviceMs) / size->first, m.anyCall});
    }
  }
  std::sort(found.begin(), found.end(), [](const Largest& a, const Largest& b) {
    return a.perSampleMs < b.perSampleMs;
  });
  std::set<int> sizes;
  int taken[2] = {};
  for (const Largest& largest : found) {
    if (++taken[largest.anyCall ? 1 : 0] > kMostKernels) continue;
    for (const int batch : partsOf(problem.batch(), largest.batch))
      if (batch > 0 && measured.count(batch) == 0) sizes.insert(batch);
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace ucudnn
