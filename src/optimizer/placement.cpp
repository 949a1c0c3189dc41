#include "optimizer/placement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ucudnn {
namespace {

// After these iterations random problems are within 4e-3 of the optimum, most within 1e-4; VGG-16
// takes some hundred. A third of the pace, or three times, ends farther off.
constexpr int kIterations = 5000;
constexpr double kPace = 30;
constexpr double kGap = 1e-4;

/// The times of a call's kernels, its copies to the device, and its copies to the host.
using Times = std::array<double, 3>;

Times timesOf(const PlacementProblem& problem,
              const PlacementProblem::Call& call,
              const std::vector<double>& onDevice) {
  Times times{call.kernelMs, 0, 0};
  for (const std::size_t tensor : call.reads)
    times[1] += (1 - onDevice[tensor]) * problem.tensorBytes[tensor] / problem.bytesPerMs[0];
  for (const std::size_t tensor : call.writes)
    times[2] += (1 - onDevice[tensor]) * problem.tensorBytes[tensor] / problem.bytesPerMs[1];
  return times;
}

/// The iterations' state.
class Ascent {
 public:
  explicit Ascent(const PlacementProblem& problem)
      : problem_(problem),
        onDevice_(problem.tensorBytes.size(), 0),
        mean_(onDevice_),
        ranges_(problem.calls.size(), 1e-12),
        sums_(problem.calls.size()),
        last_(sums_) {}

  PlacementBound run() {
    PlacementBound bound{0, std::numeric_limits<double>::infinity()};
    for (int i = 1; i <= kIterations; ++i) {
      bound.leastMs = std::max(bound.leastMs, step(i));
      bound.foundMs = std::min(bound.foundMs, problem_.ms(mean_));
      if (bound.foundMs <= (1 + kGap) * bound.leastMs) break;
    }
    return bound;
  }

 private:
  /// Returns a bound.
  double step(int iteration) {
    double ms = 0;
    std::vector<double> saved(onDevice_.size(), 0);  // by each tensor's byte
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const Times weights = weightsOf(i, iteration);
      const PlacementProblem::Call& call = problem_.calls[i];
      ms += weights[0] * call.kernelMs;
      for (const std::size_t tensor : call.reads)
        saved[tensor] += weights[1] / problem_.bytesPerMs[0];
      for (const std::size_t tensor : call.writes)
        saved[tensor] += weights[2] / problem_.bytesPerMs[1];
    }
    place(saved);
    for (std::size_t i = 0; i < onDevice_.size(); ++i) {
      ms += (1 - onDevice_[i]) * problem_.tensorBytes[i] * saved[i];
      mean_[i] += (onDevice_[i] - mean_[i]) * 2 / (iteration + 1);  // later ones count more
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      last_[i] = timesOf(problem_, problem_.calls[i], onDevice_);
      const auto [least, most] = std::minmax_element(last_[i].begin(), last_[i].end());
      ranges_[i] = std::max(ranges_[i], *most - *least);
      for (std::size_t j = 0; j < last_[i].size(); ++j) sums_[i][j] += last_[i][j];
    }
    return ms;
  }

  /// The weight of each kind of work grows with how long the call has waited for it so far, the
  /// last iteration counted twice. The weights sum to 1.
  Times weightsOf(std::size_t call, int iteration) const {
    Times weights{};
    for (std::size_t j = 0; j < weights.size(); ++j)
      weights[j] = kPace / std::sqrt(iteration) * (sums_[call][j] + last_[call][j]) / ranges_[call];
    const double most = *std::max_element(weights.begin(), weights.end());
    for (double& weight : weights) weight = std::exp(weight - most);
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight /= all;
    return weights;
  }

  /// The tensors that save most for each byte, and a part of the next one.
  void place(const std::vector<double>& saved) {
    std::vector<std::size_t> order(saved.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return saved[a] > saved[b];
    });
    double left = problem_.deviceBytes;
    for (const std::size_t tensor : order) {
      onDevice_[tensor] = std::min(1.0, left / problem_.tensorBytes[tensor]);
      left -= onDevice_[tensor] * problem_.tensorBytes[tensor];
    }
  }

  const PlacementProblem& problem_;
  std::vector<double> onDevice_, mean_;
  std::vector<double> ranges_;      ///< of each call's times
  std::vector<Times> sums_, last_;  ///< over iterations
};

}  // namespace

double PlacementProblem::ms(const std::vector<double>& onDevice) const {
  double ms = 0;
  for (const Call& call : calls) {
    const Times times = timesOf(*this, call, onDevice);
    ms += *std::max_element(times.begin(), times.end());
  }
  return ms;
}

PlacementBound boundPlacement(const PlacementProblem& problem) {
  return Ascent(problem).run();
}

}  // namespace ucudnn
