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

// The largest batches of so many kernels are looked for: the fastest of those that run any call, as
// many of the others, and fewer that borrow. Each adds three or four sizes to time. A plan with
// engines must be no slower than one without. For AlexNet within 8 MiB an H200 times 1386 kernels
// so, and 1413 with four; plans take 12.5 ms.
constexpr int kMostKernels = 3, kMostBorrowers = 2;
// Workspace grows with the batch, mostly along a line, so that a few queries find the largest
// batch. For a kernel whose workspace jumps they find one that is a little smaller.
constexpr int kMostQuestions = 8;
// Behind a part that borrows, a smaller one may borrow, and so on. The last are about powers of
// two.
constexpr int kMostBorrowing = 3;

/// The largest batch at which a kernel fits.
struct Largest {
  int batch = 0;
  bool borrows = false;
  double perSampleMs = 0;
  bool anyCall = false;  ///< the kernel's
};

/// Finds the largest batch below `tooLarge` at which a kernel that fits at `fits` still fits.
class LargestBatch {
 public:
  LargestBatch(cudnnHandle_t handle, const BenchmarkRequest& request, Kernel kernel)
      : handle_(handle), request_(request), kernel_(kernel) {}

  struct Fit {
    int batch;
    std::size_t workspaceBytes;
  };
  /// Empty: it fits at `tooLarge` as well.
  std::optional<Fit> find(Fit fits, int tooLarge) const {
    auto most = workspaceAt(tooLarge);
    if (most && *most <= request_.limitAt(tooLarge)) return std::nullopt;
    for (int question = 0; question < kMostQuestions && tooLarge - fits.batch > 1; ++question) {
      const int batch = between(fits, tooLarge, most);
      const auto bytes = workspaceAt(batch);
      if (bytes && *bytes <= request_.limitAt(batch)) {
        fits = {batch, *bytes};
      } else {
        tooLarge = batch;
        most = bytes;
      }
    }
    return fits;
  }

 private:
  std::optional<std::size_t> workspaceAt(int batch) const {
    const Problem part = request_.problem.withBatch(batch);
    if (!mayBePlanned(part, kernel_)) return std::nullopt;
    const auto offer = offeredKernel(handle_,
                                     part,
                                     std::make_shared<const ProblemDescriptors>(part),
                                     kernel_,
                                     nullptr,
                                     request_.callsAt(batch));
    return offer ? std::optional<std::size_t>(offer->workspaceBytes) : std::nullopt;
  }

  /// Where a line through both ends meets the limit; the middle if cuDNN does not have the larger
  /// one.
  int between(Fit fits, int tooLarge, const std::optional<std::size_t>& most) const {
    if (!most || *most <= fits.workspaceBytes) return fits.batch + (tooLarge - fits.batch) / 2;
    const auto left = static_cast<double>(request_.limitAt(fits.batch) - fits.workspaceBytes);
    const auto lacking = static_cast<double>(*most - request_.limitAt(tooLarge));
    const int batch =
        fits.batch + static_cast<int>(left / (left + lacking) * (tooLarge - fits.batch));
    return std::clamp(batch, fits.batch + 1, tooLarge - 1);
  }

  cudnnHandle_t handle_;
  const BenchmarkRequest& request_;
  Kernel kernel_;
};

bool hasKernel(const SizeMeasurements& size, Kernel kernel, std::size_t limitBytes) {
  return std::any_of(size.kernels.begin(), size.kernels.end(), [&](const Measurement& m) {
    return m.kernel == kernel && m.workspaceBytes <= limitBytes;
  });
}

/// Sizes that can make up a mini-batch with parts of at most `largest`.
std::vector<int> partsOf(int miniBatch, int largest) {
  const int parts = (miniBatch + largest - 1) / largest;
  const int even = (miniBatch + parts - 1) / parts;
  return {largest, miniBatch - (parts - 1) * largest, even, miniBatch - (parts - 1) * even};
}

/// The first part whose workspace is in the output, and those that follow it. Each has about the
/// same share of the samples that are left before it.
std::vector<int> partsThatBorrow(int miniBatch, int largest) {
  std::vector<int> parts;
  for (std::int64_t left = miniBatch; static_cast<int>(parts.size()) < kMostBorrowing;) {
    parts.push_back(static_cast<int>(left * largest / miniBatch));
    left -= parts.back();
  }
  return parts;
}

void addLargest(cudnnHandle_t handle,
                const BenchmarkRequest& request,
                const Measurements& measured,
                std::vector<Largest>& found) {
  for (auto size = measured.begin(); size != measured.end(); ++size) {
    const auto next = std::next(size);
    if (next == measured.end()) break;
    for (const Measurement& m : size->second.kernels) {
      if (m.workspaceBytes > request.limitAt(size->first)) continue;
      // More samples may cost a kernel little beside the fixed time of a call. So the time hoped
      // for at the largest batch decides, not the time at fewer samples.
      const auto mayWin = [&](int batch) {
        return !isOffFront(measured, batch, hopedFor(measured, m.kernel, batch), m, kNearFront);
      };
      const bool isFarBehind =
          isOffFront(measured, size->first, m, m, kNearFront * kFasterAtLargerBatches);
      if (isFarBehind || hasKernel(next->second, m.kernel, request.limitAt(next->first)) ||
          !mayWin(next->first - 1))
        continue;
      const auto fit = LargestBatch(handle, request, m.kernel)
                           .find({size->first, m.workspaceBytes}, next->first);
      const bool borrows = fit && fit->workspaceBytes > request.room.limitBytes;
      if (fit && fit->batch > size->first && mayWin(fit->batch) &&
          borrows == (request.room.sampleBytes > 0))
        found.push_back(
            {fit->batch, borrows, std::min(m.timeMs, m.deviceMs) / size->first, m.anyCall});
    }
  }
}

}  // namespace

std::vector<int> largestBatches(cudnnHandle_t handle,
                                const BenchmarkRequest& request,
                                const Measurements& measured) {
  std::vector<Largest> found;
  if (request.room.sampleBytes > 0) addLargest(handle, request, measured, found);
  BenchmarkRequest withinLimit = request;
  withinLimit.room.sampleBytes = 0;
  addLargest(handle, withinLimit, measured, found);
  std::sort(found.begin(), found.end(), [](const Largest& a, const Largest& b) {
    return a.perSampleMs < b.perSampleMs;
  });
  std::set<int> sizes;
  int taken[2] = {}, borrowers = 0;
  for (const Largest& largest : found) {
    const bool isMore = largest.borrows ? ++borrowers > kMostBorrowers
                                        : ++taken[largest.anyCall ? 1 : 0] > kMostKernels;
    if (isMore) continue;
    const int miniBatch = request.problem.batch();
    for (const int batch : largest.borrows ? partsThatBorrow(miniBatch, largest.batch)
                                           : partsOf(miniBatch, largest.batch))
      if (batch > 0 && measured.count(batch) == 0) sizes.insert(batch);
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace ucudnn
