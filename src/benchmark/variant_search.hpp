// Searches for kernels that cuDNN doesn't propose: variants of the fastest known ones.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "benchmark/findings.hpp"
#include "benchmark/question.hpp"

namespace ucudnn {

/// The variants of one kernel at one size, from the best so far.
struct VariantClimb {
  std::shared_ptr<const ProblemDescriptors> descriptors;
  int batch = 0;
  Measurement start, best;
  double glancedMs = 0;  ///< the best one's; 0: not yet
  std::vector<Kernel> tried;
  std::vector<std::vector<Kernel>> variants;  ///< of the best when its choice began
  Kernel before;                              ///< the best then
  int round = 0;
  std::size_t choice = 0, place = 0;
  bool gains = false;  ///< in this round
};

/// Climbs from the kernels that are fastest at one size, one choice after the other, and times the
/// results at sizes nearby. Not thread-safe.
class VariantSearch {
 public:
  using IsReady = std::function<bool(const KernelCall&)>;
  using Time = std::function<TimingOutcome(const TimingTask&)>;
  /// All arguments outlive the search. A kernel that isn't ready is asked about again at the next
  /// step.
  VariantSearch(const BenchmarkRequest& request,
                const Question& question,
                Findings& findings,
                IsReady isReady,
                Time time)
      : request_(request),
        question_(question),
        findings_(findings),
        isReady_(std::move(isReady)),
        time_(std::move(time)) {}

  /// Times one variant, or nothing. False: it is over. REQUIRES: all else has been measured.
  bool step(cudnnHandle_t handle);

 private:
  bool isWanted() const;
  bool begin();
  bool beginNextClimb();
  /// False: it is at its end.
  bool stepClimb(VariantClimb& climb);
  void endClimb(const VariantClimb& climb);
  Measurements measuredForPlans() const;
  bool isAsGood(const VariantClimb& climb, const KernelOffer& variant) const;
  bool isFaster(VariantClimb& climb, const KernelOffer& variant);
  std::optional<Measurement> known(int batch, Kernel kernel) const;
  std::optional<double> glance(const VariantClimb& climb, const KernelOffer& offer);
  std::optional<Measurement> timeCarefully(const KernelCall& call, double expectedMs);
  std::vector<int> sizesNear(int batch) const;
  /// False: the kernel is not ready.
  bool timeNearby(int size);

  const BenchmarkRequest& request_;
  const Question& question_;
  Findings& findings_;
  const IsReady isReady_;
  const Time time_;
  cudnnHandle_t handle_ = nullptr;  ///< of this step

  int batch_ = 0;                     ///< the size; 0: not begun
  std::vector<Measurement> kernels_;  ///< there, the fastest first
  std::size_t next_ = 0;
  std::vector<Kernel> kinds_;  ///< begun with
  std::optional<VariantClimb> climb_;
  Measurement best_;         ///< of the last climb
  std::vector<int> nearby_;  ///< sizes where the best is yet to be timed
};

}  // namespace ucudnn
