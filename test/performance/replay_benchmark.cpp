// The effect of replay on calls whose addresses repeat, rotate or never repeat. Run:
// ucudnn_replay_benchmark, on a GPU or under misc/with-simulator.
//   hostTime/L:    a call under a limit of L MiB, one after another: planned_ns replayed,
//                  bare_ns enqueued; idle_ns replayed, where the device has come to rest before
//   graph/L:       what the launch of that call's graph takes where the client captures it:
//                  launch_ns, idle_ns; whole_ns with the device's time; and what it is made of
//                  (captured_graph.hpp). Replay clears memory by kernels instead of its memsets.
//   missedCall:    overhead_ns of a call whose addresses never repeat, against one without replay
//   rotation/K:    time with the device's, over K sets of x and y: planned_ns with replay, bare_ns
//                  without; hit_rate of the calls that are timed
//   neverRepeated: the same where no set comes twice
// The convolution is AlexNet's second, forward, TF32. Blocks alternate, counters are medians.
#include <functional>

#include "captured_graph.hpp"
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
  statistics.size = sizeof(statistics);
  CHECK(ucudnnGetStatistics(&statistics));
  return statistics.replayedCalls;
}

void describePlan(benchmark::State& state, const Convolution& convolution) {
  const std::vector<ucudnnMicroBatches_t> plan = convolution.plan();
  std::string text;
  for (const ucudnnMicroBatches_t& step : plan)
    text +=
        std::to_string(step.count) + " x " + step.kernel + " N=" + std::to_string(step.batch) + " ";
  state.counters["micro_batches"] = microBatchesOf(plan);
  state.SetLabel(text);
}

enum class Device { kBusy, kIdle };

/// The median over calls in a row: the first one after a rest of the device takes the host longer.
/// kIdle: each call comes after such a rest.
template <typename Call>
double medianCallNs(Device before, Call call) {
  std::vector<double> times;
  for (int i = 0; i < kReplayCalls; ++i) {
    if (before == Device::kIdle) CHECK(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - begin;
    times.push_back(elapsed.count());
  }
  CHECK(cudaDeviceSynchronize());
  return median(times);
}

/// The time of a call, to the end of the device's work.
template <typename Call>
double wholeBlockNs(Call call) {
  const auto begin = std::chrono::steady_clock::now();
  nanosecondsPerCall(kReplayCalls, call);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
  return elapsed.count() / kReplayCalls;
}

void hostTime(benchmark::State& state) {
  const Pair pair(static_cast<std::size_t>(state.range(0)) * kMebibyte);
  describePlan(state, pair.replayed);
  const auto callNs = [](Device before, const Convolution& convolution) {
    return medianCallNs(before, [&] { convolution.forward(convolution.handle(), kAlgorithm); });
  };
  std::vector<double> bareNs, plannedNs, idleNs;
  for (auto _ : state) {
    bareNs.push_back(callNs(Device::kBusy, pair.enqueued));
    plannedNs.push_back(callNs(Device::kBusy, pair.replayed));
    idleNs.push_back(callNs(Device::kIdle, pair.replayed));
    state.SetIterationTime(plannedNs.back() * 1e-9);
  }
  state.counters["bare_ns"] = median(bareNs);
  state.counters["planned_ns"] = median(plannedNs);
  state.counters["idle_ns"] = median(idleNs);
}

/// A client's capture takes the same plan as a replayed call.
void graph(benchmark::State& state) {
  const Convolution convolution(kBatch,
                                kChannels,
                                kFilters,
                                kImage,
                                kKernel,
                                static_cast<std::size_t>(state.range(0)) * kMebibyte);
  convolution.setMath(CUDNN_DEFAULT_MATH);
  describePlan(state, convolution);
  CapturedGraph captured(convolution.handle(),
                         [&] { convolution.forward(convolution.handle(), kAlgorithm); });
  captured.describe(state);
  const auto launchNs = [&](Device before) {
    return medianCallNs(before, [&] { captured.launch(); });
  };
  std::vector<double> busyNs, idleNs, wholeNs;
  for (auto _ : state) {
    busyNs.push_back(launchNs(Device::kBusy));
    idleNs.push_back(launchNs(Device::kIdle));
    wholeNs.push_back(wholeBlockNs([&] { captured.launch(); }));
    state.SetIterationTime(busyNs.back() * 1e-9);
  }
  state.counters["launch_ns"] = median(busyNs);
  state.counters["whole_ns"] = median(wholeNs);
  state.counters["idle_ns"] = median(idleNs);
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
  describePlan(state, pair.replayed);
  const long long before = replayedCalls();
  Wandering bare(pair.enqueued), planned(pair.replayed);
  compare(state, kReplayCalls, 1, std::ref(bare), std::ref(planned));
  if (replayedCalls() != before) state.SkipWithError("addresses have repeated");
}

/// Blocks are timed to the end of the device's work.
template <typename Bare, typename Planned>
void compareWhole(benchmark::State& state, Bare bare, Planned planned) {
  std::vector<double> bareNs, plannedNs;
  wholeBlockNs(bare);
  wholeBlockNs(planned);
  const long long before = replayedCalls();
  for (auto _ : state) {
    bareNs.push_back(wholeBlockNs(bare));
    plannedNs.push_back(wholeBlockNs(planned));
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
BENCHMARK(graph)->Arg(64)->Arg(16)->Arg(8)->UseManualTime()->Iterations(kReplayBlocks);
BENCHMARK(missedCall)->UseManualTime()->Iterations(kReplayBlocks);
BENCHMARK(rotation)->RangeMultiplier(2)->Range(1, 8)->UseManualTime()->Iterations(kReplayBlocks);
BENCHMARK(neverRepeated)->Arg(64)->Arg(8)->UseManualTime()->Iterations(kReplayBlocks);

}  // namespace
}  // namespace ucudnn::test

int main(int argc, char** argv) {
  return ucudnn::test::runBenchmarks(argc, argv);
}
