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

/// Fits a line to the rest of timed steps by least squares; the rest is known in ms for some
/// numbers of samples. One point gives a constant, none gives 0.
StepRest restOf(const std::map<int, double>& ms);

/// The time of a step on one device.
struct ShareDevice {
  /// The network's time in ms by number of samples. Entry 0 is not read. Times need not rise. The
  /// device can't run a number whose time is infinite, or is not there.
  std::vector<double> timesMs;
  StepRest rest;
  int mostSamples = std::numeric_limits<int>::max();  ///< that its memory holds

  /// The time of a step with so many samples. Infinite: the device can't run it. 0 without samples,
  /// because such a device takes no part.
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

/// The shares with the shortest step. If there are several, those whose slowest device takes the
/// least; then those that are most equal between equal devices: the sum of (b_i - b_j)^2 over their
/// pairs is the smallest. Empty: the devices can't run so many samples. Exact: dynamic programming
/// over devices and samples, O(devices x samples^2). REQUIRES: samples >= 1; exchangeMs >= 0.
std::optional<Shares> fastestShares(const std::vector<ShareDevice>& devices,
                                    int samples,
                                    double exchangeMs);

/// As equal as whole samples can be, the larger ones first. REQUIRES: devices >= 1.
std::vector<int> equalShares(int samples, int devices);

}  // namespace ucudnn
