// Data parallelism: how many samples of a mini-batch each device of an unequal set takes.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace ucudnn {

/// The rest of a step's time: affine in the number of samples.
struct StepRest {
  double ms = 0, msPerSample = 0;

  double of(int samples) const { return ms + msPerSample * samples; }
  bool operator==(const StepRest& other) const {
    return ms == other.ms && msPerSample == other.msPerSample;
  }
};

/// The rest of timed steps: the line with the least squares through what is known of it, as ms by
/// number of samples. One point: the same for any number. None: nothing.
StepRest restOf(const std::map<int, double>& ms);

/// The time of a step on one device.
struct ShareDevice {
  /// The network's, by number of samples; the first entry, of none, is not read. Times need not
  /// rise. What is infinite, or beyond the end, the device can't run.
  std::vector<double> timesMs;
  StepRest rest;
  int mostSamples = std::numeric_limits<int>::max();  ///< that its memory holds

  /// Infinite: it can't. Nothing for no samples: such a device takes no part.
  double stepMs(int samples) const;
  bool operator==(const ShareDevice& other) const;
};

struct Shares {
  std::vector<int> samples;  ///< by device; they sum to the mini-batch
  double stepMs = 0;
};

/// The time of a step: the slowest device's, and the exchange of gradients where several
/// devices take part. Infinite: one of them can't run its share. REQUIRES: a share for each device.
double stepMsOf(const std::vector<ShareDevice>& devices,
                const std::vector<int>& samples,
                double exchangeMs);

/// The shares with the shortest step; of those, the ones whose slowest device takes the least; of
/// those of several devices, the most equal ones: the sum of (b_i - b_j)^2 over pairs of equal
/// devices is the smallest. So equal devices have equal shares where that costs nothing. Empty: the
/// devices can't run so many samples. Exact: dynamic programming over devices and samples,
/// O(devices x samples^2). REQUIRES: samples >= 1; exchangeMs >= 0.
std::optional<Shares> fastestShares(const std::vector<ShareDevice>& devices,
                                    int samples,
                                    double exchangeMs);

/// As equal as whole samples can be, the larger ones first. REQUIRES: devices >= 1.
std::vector<int> equalShares(int samples, int devices);

}  // namespace ucudnn
