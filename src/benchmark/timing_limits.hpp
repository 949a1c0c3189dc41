// How long kernels are timed: numbers found on an H200.
#pragma once

#include <algorithm>

#include "benchmark/stop_rule.hpp"

namespace ucudnn {

// A sample lasts at least this long: 600 times the resolution of an event (0.5 us; CUDA Runtime
// API, cudaEventElapsedTime), so that it is known to better than 1 %.
constexpr double kSampleMs = 0.3;
// Of a shorter call two timings are taken, and the better one counts: a hiccup of the host is a
// large part of it.
constexpr double kTakenTwiceMs = 2 * kSampleMs;
// If the host takes longer to enqueue a call (20 to 70 us, measured on an H200) than the device to
// run it, the timing shows the host's pace, which takes some twenty calls to settle.
constexpr double kHostPacedMs = 0.08;
constexpr double kHostPacedSampleMs = 1.0;
// An engine's call takes the host 4 to 6 us: five times that leaves no doubt.
constexpr double kHostPacedEngineMs = 0.03;
// The host may be slower by half for longer than a kernel is timed (measured, too). So kernels at
// its pace are timed once more after all others, and the better time counts.
constexpr double kSlowHostPacedMs = 0.1;
constexpr StopRule::Limits kHostPacedAtFirst{2, 2, 0.01, 4.0};
constexpr StopRule::Limits kHostPacedAgain{1, 1, 0.01, 1.0};
// A slow host may pace calls of several kernels that are shorter than this (0.13 ms were seen). So
// their time when replayed decides, even after the first single timing.
constexpr double kShortMs = 0.2;
// Between nodes of a graph the gap is shorter than between launches, by 3 us for each of a call's
// kernels: 1 % of this time.
constexpr double kReplayMattersMs = 1.5;
// How many calls a graph has for a single timing, and for longer kernels. With two, the launch
// would be too large a part of the shortest calls.
constexpr int kFewReplayed = 4;
// Short kernels are replayed over the whole mini-batch, or so many micro-batches of it. With fewer,
// the device's cache would hold data that a plan finds in memory: 5 % of their time.
constexpr int kMostReplayed = 16;
// Calls of engines that last so long cover the host's launch of a graph behind them (10 to 50 us).
// An algorithm's time below kShortMs may be the host's pace.
constexpr double kCoversLaunchMs = 0.1;
static_assert(kCoversLaunchMs <= kFewReplayed * kHostPacedEngineMs, "no more ahead than replayed");
// The device's time for the launch of a graph that follows another one.
constexpr double kReplayMs = 2e-3;
// If the two times differ by less than the noise of timings, the host paces nothing.
constexpr double kHostPaced = 0.98;
// The part of a single timing that is the gap before a first call: measured on an H200 for a call
// that enqueues several kernels.
constexpr double kFirstCallGapMs = 0.03;
// Kernels slower than this need no call ahead of the timed one: the gap is 1 % of their time. One
// timing is enough for them.
constexpr double kLongMs = 100 * kFirstCallGapMs;
// Fast tuning makes no such call for kernels of whose time the gap is 3 %, because those near the
// front are timed again.
constexpr double kLongFastMs = kLongMs / 3;
// Kernels within this factor of the front of all anchors are timed until the stop rule is content.
constexpr double kNearFront = 1.15;
// A single timing of more than so many times what other sizes let expect is not believed.
constexpr double kDoubtful = 1.25;
// Fast tuning, between anchors: a hoped-for time must be within this factor of the front. It is the
// better of two guesses, and seldom reached. With a larger factor an H200 times a fifteenth more
// kernels, for plans that are no faster.
constexpr double kNearFrontFast = 1.05;
// The undivided algorithm must be no worse than the one that cuDNN's Find finds: one call of many
// short kernels may take that much longer than many calls, and code may take longer to load.
constexpr double kNearFrontWhole = 2;
// So kernels that may be faster than this are called once ahead of the timed call.
constexpr double kLongWholeMs = 20;
// Fast tuning: a kernel may take this much less time for a sample at larger batches than where it
// was timed.
constexpr double kFasterAtLargerBatches = 1.25;
// Fast tuning: a kernel may take this many times as long as others that need half of the workspace,
// if only a part of the batch would run with it.
constexpr double kFarBehind = 2;
// A kernel of more than kLongMs is not called with more samples if it would take this many times as
// long as the fastest in any workspace. Some take 100 ms, 25 times as long. But a kernel without
// workspace may take 10 times as long as an FFT, and be the best within a smaller limit.
constexpr double kHopeless = 16;
// So much of a call's time may be the same at any larger batch: launches, and a device that is half
// idle. With less, an H200's fastest undivided kernels were missed. One of them takes 0.06 ms;
// another takes 0.08 ms at 16 samples as at 32, and 0.13 at 128, where 0.21 was found with 0.03.
constexpr double kFixedMs = 0.08;
// Fast tuning begins at an eighth of the batch, but with no fewer samples than this. Fewer leave a
// device half idle with most kernels, which says nothing of larger batches.
constexpr int kFirstPart = 8;
constexpr int kFirstBatch = 16;
// Fewer samples do if they have this many multiply-adds, which take an H200 0.5 ms: a few samples
// of 3-D images fill a device, and some kernels take a second for eight.
constexpr double kFirstMultiplyAdds = 2.5e10;
// Fast tuning, between anchors: so many are timed of the kernels that could take one another's
// place, if there are enough samples to fill the device. With more, an H200 times a tenth more
// kernels, for plans that are no faster, because engines differ by choices that matter little. With
// few samples hoped-for times say too little.
constexpr int kMostBetween = 3;
// So many calls tell whether a variant may be faster.
constexpr double kMostGlanced = 8;
// Fast tuning is content with two samples that agree.
constexpr StopRule::Limits kRefinedFast{2, 7, 0.01, 20};
// Between anchors there are many sizes, and only a gain of more than this matters.
constexpr StopRule::Limits kBetween{2, 5, 0.02, 2.0};

/// The least time of a kernel for which a single timing says `timeMs`.
inline double withoutGap(double timeMs) {
  return std::max(timeMs - kFirstCallGapMs, timeMs / 2);
}

}  // namespace ucudnn
