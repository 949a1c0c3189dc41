// What replay does to calls whose addresses repeat, rotate or never repeat. Run:
// ucudnn_replay_benchmark, on a GPU or under misc/with-simulator.
//   hostTime/L:    a call under a limit of L MiB, one at a time: planned_ns replayed, bare_ns
//   enqueued missedCall:    overhead_ns of a call whose addresses never repeat, against one without
//   replay rotation/K:    time with the device's, over K sets of x and y: planned_ns with replay,
//   bare_ns
//                  without; hit_rate of the calls that are timed
//   neverRepeated: the same where no set comes twice
// The convolution is AlexNet's second, forward, TF32. Blocks alternate, counters are medians.
#include <functional>

#include "convolution.hpp"

namespace ucudnn::test {
namespace {

constexpr int kBatch = 256, kChannels = 64, kFilters = 192, kImage = 27, kKernel = 5;
constexpr auto kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr int kReplayBlocks = 101;
constexpr int kReplayCalls = 16;  ///< two rounds of eight sets
// cuDNN's kernels are chosen for addresses that are multiples of this.
constexpr std::size_t kAlignment = 256;

/// The same convolution with and without replay.
struct Pair {
  explicit Pair(std::size_t limitBytes, int sets = 1, int batch = kBatch)
      : replayed(batch, kChannels, kFilters, kImage, kKernel, limitBytes, sets),
        enqueued(batch, kChannels, kFilters, kImage, kKernel, limitBytes, sets) {
    for (const Convolution* const each : {&replayed, &enqueued}) each->setMath(CUDNN_DEFAULT_MATH);
    replayed.plan();
    CHECK(enqueued.handle().setGraphMemory(0));
    enqueued.plan();
  }
  Convolution replayed, enqueued;
};

long long replayedCalls() {
  ucudnnStatistics_t statistics;
  CHECK(ucudnnGetStatistics(&statistics));
  return statistics.replayedCalls;
}

int microBatches(const Convolution& convolution) {
  int count = 0;
  for (const ucudnnMicroBatches_t& step : convolution.plan()) count += step.count;
  return count;
}

/// Of each call in a row, the median: the first one after a rest of the device takes the host
/// longer.
template <typename Call>
double medianCallNs(Call call) {
  std::vector<double> times;
  for (int i = 0; i < kReplayCalls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - begin;
    times.push_back(elapsed.count());
  }
  CHECK(cudaDeviceSynchronize());
  return median(times);
}

void hostTime(benchmark::State& state) {
  const Pair pair(static_cast<std::size_t>(state.range(0)) * kMebibyte);
  state.counters["micro_batches"] = microBatches(pair.replayed);
  std::vector<double> bareNs, plannedNs;
  for (auto _ : state) {
    bareNs.push_back(
        medianCallNs([&] { pair.enqueued.forward(pair.enqueued.handle(), kAlgorithm); }));
    plannedNs.push_back(
        medianCallNs([&] { pair.replayed.forward(pair.replayed.handle(), kAlgorithm); }));
    state.SetIterationTime(plannedNs.back() * 1e-9);
  }
  state.counters["bare_ns"] = median(bareNs);
  state.counters["planned_ns"] = median(plannedNs);
}

/// Calls whose y lies at another address every time. REQUIRES: two sets.
class Wandering {
 public:
  explicit Wandering(const Convolution& convolution) : convolution_(convolution) {}
  void operator()() {
    convolution_.forwardTo(convolution_.handle(),
                           kAlgorithm,
                           convolution_.x(),
                           static_cast<char*>(convolution_.y()) + kAlignment * calls_++);
  }

 private:
  const Convolution& convolution_;
  std::size_t calls_ = 0;
};

/// At a batch of 32, of few micro-batches: the host runs ahead of nothing.
void missedCall(benchmark::State& state) {
  const Pair pair(32 * kMebibyte, 2, 32);
  state.counters["micro_batches"] = microBatches(pair.replayed);
  const long long before = replayedCalls();
  Wandering bare(pair.enqueued), planned(pair.replayed);
  compare(state, kReplayCalls, 1, std::ref(bare), std::ref(planned));
  if (replayedCalls() != before) state.SkipWithError("addresses have repeated");
}

/// Blocks are timed to the end of the device's work.
template <typename Bare, typename Planned>
void compareWhole(benchmark::State& state, Bare bare, Planned planned) {
  const auto block = [](auto call) {
    const auto begin = std::chrono::steady_clock::now();
    nanosecondsPerCall(kReplayCalls, call);
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - begin;
    return elapsed.count() / kReplayCalls;
  };
  std::vector<double> bareNs, plannedNs;
  block(bare);
  block(planned);
  const long long before = replayedCalls();
  for (auto _ : state) {
    bareNs.push_back(block(bare));
    plannedNs.push_back(block(planned));
    state.SetIterationTime(plannedNs.back() * 1e-9);
  }
  state.counters["bare_ns"] = median(bareNs);
  state.counters["planned_ns"] = median(plannedNs);
  state.counters["hit_rate"] = static_cast<double>(replayedCalls() - before) /
                               (kReplayCalls * static_cast<double>(bareNs.size()));
}

void rotation(benchmark::State& state) {
  const int sets = static_cast<int>(state.range(0));
  const Pair pair(64 * kMebibyte, sets);
  int bare = 0, planned = 0;
  compareWhole(
      state,
      [&] { pair.enqueued.forward(pair.enqueued.handle(), kAlgorithm, bare++ % sets); },
      [&] { pair.replayed.forward(pair.replayed.handle(), kAlgorithm, planned++ % sets); });
}

void neverRepeated(benchmark::State& state) {
  const Pair pair(static_cast<std::size_t>(state.range(0)) * kMebibyte, 2);
  Wandering bare(pair.enqueued), planned(pair.replayed);
  compareWhole(state, std::ref(bare), std::ref(planned));
}

BENCHMARK(hostTime)->Arg(64)->Arg(16)->Arg(8)->UseManualTime()->Iterations(kReplayBlocks);
BENCHMARK(missedCall)->UseManualTime()->Iterations(kReplayBlocks);
BENCHMARK(rotation)->RangeMultiplier(2)->Range(1, 8)->UseManualTime()->Iterations(kReplayBlocks);
BENCHMARK(neverRepeated)->Arg(64)->Arg(8)->UseManualTime()->Iterations(kReplayBlocks);

}  // namespace
}  // namespace ucudnn::test

int main(int argc, char** argv) {
  return ucudnn::test::runBenchmarks(argc, argv);
}
