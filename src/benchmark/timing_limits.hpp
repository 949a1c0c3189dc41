// Numbers that say how long to time what, as found on an H200.
#pragma once

#include <algorithm>
#include <cstddef>

#include "benchmark/stop_rule.hpp"

namespace ucudnn {

// A sample lasts at least this long: 600 times the resolution of an event (0.5 us; CUDA Runtime
// API, cudaEventElapsedTime), so that it is known to better than 1 %.
constexpr double kSampleMs = 0.3;
// Of a single call that is shorter the better of two counts: a hiccup of the host is much of it.
constexpr double kTakenTwiceMs = 2 * kSampleMs;
// Where the host takes longer to enqueue a call (20 to 70 us, measured on an H200) than the device
// to run it, the host's pace is what is timed, and it takes some twenty calls to settle.
constexpr double kHostPacedMs = 0.08;
constexpr double kHostPacedSampleMs = 1.0;
// An engine's call takes the host 4 to 6 us: five times that leaves no doubt.
constexpr double kHostPacedEngineMs = 0.03;
// The host may be slow, by half, for longer than a kernel is timed (measured, too): kernels at its
// pace are timed once more when all others have been, and the better time counts.
constexpr double kSlowHostPacedMs = 0.1;
constexpr StopRule::Limits kHostPacedAtFirst{2, 2, 0.01, 4.0};
constexpr StopRule::Limits kHostPacedAgain{1, 1, 0.01, 1.0};
// Below this a slow host may pace calls of several kernels (0.13 ms were seen): what they take when
// they are replayed decides even about the first single timing.
constexpr double kShortMs = 0.2;
// Between nodes of a graph the gap is shorter than between launches, by 3 us for each of a call's
// kernels: 1 % of this.
constexpr double kReplayMattersMs = 1.5;
// So many calls make up the graph for a single timing, and for longer kernels. Of two, the launch
// is too much of the shortest.
constexpr int kFewReplayed = 4;
// Short ones are replayed over the whole mini-batch, or so many micro-batches of it: over fewer the
// device's cache holds what a plan finds in memory, which is 5 % of their time.
constexpr int kMostReplayed = 16;
// Calls of engines that last so long cover the host's launch of a graph behind them (10 to 50 us).
// What an algorithm's takes below kShortMs may be the host's pace.
constexpr double kCoversLaunchMs = 0.1;
static_assert(kCoversLaunchMs <= kFewReplayed * kHostPacedEngineMs, "no more ahead than replayed");
// What a launch of a graph adds on the device, where it follows another one.
constexpr double kReplayMs = 2e-3;
// Where that differs by less than the noise of timings, the host paces nothing.
constexpr double kHostPaced = 0.98;
// What a single timing has of the gap before a first call: measured on an H200 where the call
// enqueues several kernels.
constexpr double kFirstCallGapMs = 0.03;
// Kernels slower than this need no call ahead of the timed one: the gap is 1 % of it. One timing is
// enough for them.
constexpr double kLongMs = 100 * kFirstCallGapMs;
// Fast tuning calls none ahead from where it is 3 %: what is near the front is timed again.
constexpr double kLongFastMs = kLongMs / 3;
// Kernels within this factor of the front of all anchors are timed until the stop rule is content.
constexpr double kNearFront = 1.15;
// Fast tuning, between anchors: what is hoped for is the better of two guesses, and seldom kept.
// Without it an H200 times a fifteenth more kernels, for plans that are no faster.
constexpr double kNearFrontFast = 1.05;
// cuDNN's algorithms for the whole mini-batch have to be no worse than what Find finds: one call of
// many short kernels may take that much longer than many calls, and code may take longer to load.
constexpr double kNearFrontWhole = 2;
// So those that may be faster than this are called once ahead of the timed call.
constexpr double kLongWholeMs = 20;
// Fast tuning: how much less time for a sample a kernel may take at larger batches than where it
// was timed.
constexpr double kFasterAtLargerBatches = 1.25;
// And how many times as long as others one may take that need half of the workspace, where only a
// part of the batch would be run.
constexpr double kFarBehind = 2;
// With fewer samples no kernel gets faster: so few percent are the noise of timings, and what is
// slower than others in half the limit is in no plan within so much. With recorded times of an H200
// a quarter fewer kernels are timed for AlexNet in 120 MiB, for plans as fast, than with
// kFarBehind.
constexpr double kBehindWithFewer = 1.02;
// Within so much less than the limit plans are looked for anew before they need fewer samples of
// what fits. Without it a tenth more is timed; with half of it, plans from what is known within a
// sixteenth of the limit are slower by more than 5 %.
constexpr std::size_t kMuchLess = 16;
// A kernel of more than kLongMs is not called at more samples where it would take so many times as
// long as the fastest in any workspace: some take 100 ms, 25 times as long. What needs no workspace
// may take 10 times as long as an FFT, and be the best within less.
constexpr double kHopeless = 16;
// So much of a call's time may be the same at any larger batch: launches, and a device that is half
// idle. Without it an H200's fastest undivided kernels were missed: one of 0.06 ms; and, with 0.03,
// one that takes 0.08 ms at 16 samples as at 32, and 0.13 at 128, where 0.21 was found.
constexpr double kFixedMs = 0.08;
// Fast tuning begins where an eighth of the batch is, but with no fewer samples than this: below,
// most kernels leave a device half idle, which says nothing of larger batches.
constexpr int kFirstPart = 8;
constexpr int kFirstBatch = 16;
// Fewer will do that have so many multiply-adds, which take an H200 0.5 ms: a few samples of 3-D
// images fill a device, and some kernels take a second for eight.
constexpr double kFirstMultiplyAdds = 2.5e10;
// Fast tuning, of kernels between anchors that could take one another's place: so many are timed,
// where samples are enough to fill the device. Without it an H200 times a tenth more, for plans
// that are no faster: engines differ by choices that make little difference. Of few samples what is
// hoped for says too little.
constexpr int kMostBetween = 3;
// So many calls tell whether a variant may be faster.
constexpr double kMostGlanced = 8;
// Fast tuning is content with two samples that agree.
constexpr StopRule::Limits kRefinedFast{2, 7, 0.01, 20};
// Between anchors there are many sizes, and only what wins by more than this matters.
constexpr StopRule::Limits kBetween{2, 5, 0.02, 2.0};

/// The least that a kernel may take of which a single timing says `timeMs`.
inline double withoutGap(double timeMs) {
  return std::max(timeMs - kFirstCallGapMs, timeMs / 2);
}

}  // namespace ucudnn
