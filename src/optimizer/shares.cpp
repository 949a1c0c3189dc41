#include "optimizer/shares.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace ucudnn {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();

std::size_t indexOf(int samples) {
  return static_cast<std::size_t>(samples);
}

/// The device's times for 0 to `samples` samples.
std::vector<double> stepTimes(const ShareDevice& device, int samples) {
  std::vector<double> times;
  for (int share = 0; share <= samples; ++share) times.push_back(device.stepMs(share));
  return times;
}

/// The time of the slowest device in the best division of so many samples. Infinite: the devices
/// can't run them.
double fastestSlowestMs(const std::vector<std::vector<double>>& times, int samples) {
  std::vector<double> best(indexOf(samples) + 1, kNever);
  best[0] = 0;
  for (const std::vector<double>& device : times)
    // Goes downwards, so that it reads the totals of the devices before this one only.
    for (int total = samples; total >= 0; --total) {
      double least = kNever;
      for (int share = 0; share <= total; ++share)
        least = std::min(least, std::max(best[indexOf(total - share)], device[indexOf(share)]));
      best[indexOf(total)] = least;
    }
  return best[indexOf(samples)];
}

/// The cheapest way to make each total of samples out of one number of samples for each addend,
/// whose costs are added up.
class LeastSum {
 public:
  explicit LeastSum(int samples) : samples_(samples), least_(indexOf(samples) + 1, kImpossible) {
    least_[0] = 0;
  }

  /// `cost`: the addend's cost by number of samples.
  void add(const std::vector<std::int64_t>& cost) {
    std::vector<std::int64_t> next(least_.size(), kImpossible);
    std::vector<int>& chosen = chosen_.emplace_back(least_.size(), 0);
    for (int share = 0; share <= samples_; ++share) {
      if (cost[indexOf(share)] == kImpossible) continue;
      for (int total = share; total <= samples_; ++total) {
        const std::int64_t before = least_[indexOf(total - share)];
        if (before == kImpossible) continue;
        const std::int64_t sum = before + cost[indexOf(share)];
        if (sum < next[indexOf(total)]) {
          next[indexOf(total)] = sum;
          chosen[indexOf(total)] = share;
        }
      }
    }
    least_ = std::move(next);
  }

  std::int64_t least(int total) const { return least_[indexOf(total)]; }

  /// Each addend's number of samples. REQUIRES: the total is reachable.
  std::vector<int> way(int total) const {
    std::vector<int> numbers(chosen_.size());
    for (std::size_t i = chosen_.size(); i-- > 0; total -= numbers[i])
      numbers[i] = chosen_[i][indexOf(total)];
    return numbers;
  }

 private:
  int samples_;
  std::vector<std::int64_t> least_;
  std::vector<std::vector<int>> chosen_;  ///< by addend and total
};

/// Equal devices.
struct Kind {
  std::vector<std::size_t> devices;
  LeastSum squares;  ///< of their shares
};

/// Shares that take no longer than `mostMs`, the most equal ones. REQUIRES: there are some.
std::vector<int> mostEqualShares(const std::vector<ShareDevice>& devices,
                                 const std::vector<std::vector<double>>& times,
                                 int samples,
                                 double mostMs) {
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) {
      return devices[kind.devices.front()] == devices[i];
    });
    Kind& kind = same != kinds.end() ? *same : kinds.emplace_back(Kind{{}, LeastSum(samples)});
    kind.devices.push_back(i);
    std::vector<std::int64_t> squares;
    for (std::int64_t share = 0; share <= samples; ++share)
      squares.push_back(times[i][static_cast<std::size_t>(share)] <= mostMs ? share * share
                                                                            : kImpossible);
    kind.squares.add(squares);
  }
  LeastSum inequality(samples);
  for (const Kind& kind : kinds) {
    std::vector<std::int64_t> costs;
    const auto count = static_cast<std::int64_t>(kind.devices.size());
    for (std::int64_t total = 0; total <= samples; ++total) {
      const std::int64_t squares = kind.squares.least(static_cast<int>(total));
      // The sum over pairs of (b_i - b_j)^2.
      costs.push_back(squares == kImpossible ? kImpossible : count * squares - total * total);
    }
    inequality.add(costs);
  }
  const std::vector<int> totals = inequality.way(samples);
  std::vector<int> shares(devices.size());
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    std::vector<int> own = kinds[k].squares.way(totals[k]);
    std::sort(own.rbegin(), own.rend());
    for (std::size_t i = 0; i < own.size(); ++i) shares[kinds[k].devices[i]] = own[i];
  }
  return shares;
}

}  // namespace

StepRest restOf(const std::map<int, double>& ms) {
  StepRest rest;
  if (ms.empty()) return rest;
  const auto count = static_cast<double>(ms.size());
  double meanSamples = 0, meanMs = 0;
  for (const auto& [samples, one] : ms) {
    meanSamples += samples / count;
    meanMs += one / count;
  }
  double covariance = 0, variance = 0;
  for (const auto& [samples, one] : ms) {
    covariance += (samples - meanSamples) * (one - meanMs);
    variance += (samples - meanSamples) * (samples - meanSamples);
  }
  if (variance > 0) rest.msPerSample = covariance / variance;
  rest.ms = meanMs - rest.msPerSample * meanSamples;
  return rest;
}

double ShareDevice::stepMs(int samples) const {
  if (samples == 0) return 0;
  if (samples > mostSamples || indexOf(samples) >= timesMs.size()) return kNever;
  const double ms = timesMs[indexOf(samples)] + rest.of(samples);
  if (!std::isfinite(ms)) return kNever;
  return ms;
}

bool ShareDevice::operator==(const ShareDevice& other) const {
  return timesMs == other.timesMs && rest == other.rest && mostSamples == other.mostSamples;
}

double stepMsOf(const std::vector<ShareDevice>& devices,
                const std::vector<int>& samples,
                double exchangeMs) {
  assert(samples.size() == devices.size());
  double slowestMs = 0;
  int taking = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    slowestMs = std::max(slowestMs, devices[i].stepMs(samples[i]));
    if (samples[i] > 0) ++taking;
  }
  return taking > 1 ? slowestMs + exchangeMs : slowestMs;
}

std::optional<Shares> fastestShares(const std::vector<ShareDevice>& devices,
                                    int samples,
                                    double exchangeMs) {
  assert(samples >= 1 && exchangeMs >= 0);
  if (devices.empty()) return std::nullopt;
  std::vector<std::vector<double>> times;
  times.reserve(devices.size());
  for (const ShareDevice& device : devices) times.push_back(stepTimes(device, samples));
  // One device alone exchanges nothing.
  std::size_t alone = 0;
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i].back() < times[alone].back()) alone = i;
  const double aloneMs = times[alone].back();
  const double slowestMs = fastestSlowestMs(times, samples);
  if (std::isinf(slowestMs)) return std::nullopt;
  Shares shares;
  if (aloneMs < slowestMs + exchangeMs) {
    shares.samples.assign(devices.size(), 0);
    shares.samples[alone] = samples;
  } else {
    shares.samples = mostEqualShares(devices, times, samples, slowestMs);
  }
  shares.stepMs = stepMsOf(devices, shares.samples, exchangeMs);
  return shares;
}

std::vector<int> equalShares(int samples, int devices) {
  assert(devices >= 1);
  std::vector<int> shares;
  shares.reserve(indexOf(devices));
  for (int i = 0; i < devices; ++i)
    shares.push_back(samples / devices + (i < samples % devices ? 1 : 0));
  return shares;
}

}  // namespace ucudnn
