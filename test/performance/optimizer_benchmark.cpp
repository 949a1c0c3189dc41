// WR, fronts and division at the sizes that the targets name. Run: ucudnn_optimizer_benchmark
//   fastest/all/256 <= 1 ms, fastest/all/1024 <= 15 ms (8 candidates a size)
//   resnet50Fronts/powerOfTwo <= 100 ms, /all <= 1000 ms: all 159 convolutions, as recorded on an
//   H200 resnet50Divide/powerOfTwo <= 50 ms, /all <= 500 ms: by MiB each front: one of random
//   kernels; divide: 159 of them, no two alike
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "division/workspace_division.hpp"
#include "optimizer/policy.hpp"
#include "optimizer/workspace_reuse.hpp"
#include "support/resnet50.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

/// Kernels as cuDNN has them: faster per sample at larger sizes, the faster ones needing more
/// workspace, with noise so that many of them stay on the front.
CandidateTable syntheticTable(BatchSizePolicy policy,
                              int miniBatch,
                              int kernels,
                              unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  CandidateTable table;
  for (const int size : microBatchSizes(policy, miniBatch)) {
    for (int kernel = 0; kernel < kernels; ++kernel) {
      const double timeMs = (0.02 + 0.004 * size) * noise(random) / (1 + 0.3 * kernel);
      const double workspaceBytes = 1e5 * kernel * size * noise(random);
      table[size].push_back({kernel, timeMs, static_cast<std::size_t>(workspaceBytes)});
    }
  }
  return table;
}

void fastest(benchmark::State& state, BatchSizePolicy policy) {
  const int miniBatch = static_cast<int>(state.range(0));
  const CandidateTable table = syntheticTable(policy, miniBatch, 8);
  for (auto _ : state) {
    benchmark::DoNotOptimize(fastestConfiguration(table, miniBatch, {64 << 20}, 0.002));
  }
}

void front(benchmark::State& state, BatchSizePolicy policy) {
  const int miniBatch = static_cast<int>(state.range(0));
  const CandidateTable table = syntheticTable(policy, miniBatch, 6);
  std::size_t points = 0;
  for (auto _ : state) {
    points = paretoFront(table, miniBatch, {kNoLimit}, 0.002).size();
  }
  state.counters["points"] = static_cast<double>(points);
}

void divideAll(benchmark::State& state, const std::vector<DivisionItem>& items) {
  if (!workspaceDivisionAvailable()) {
    state.SkipWithError("built without UCUDNN_DIVIDE");
    return;
  }
  std::size_t points = 0;
  for (const DivisionItem& item : items) points += item.options.size();
  DivisionSettings settings;
  settings.totalBytes = (static_cast<std::size_t>(state.range(0)) << 20) * items.size();
  bool optimal = true;
  for (auto _ : state) {
    const auto division = divideWorkspace(items, settings);
    optimal = optimal && division && division->optimal;
  }
  state.counters["points"] = static_cast<double>(points);
  state.counters["optimal"] = optimal ? 1 : 0;
}

void divide(benchmark::State& state, BatchSizePolicy policy) {
  constexpr unsigned kConvolutions = 159;  // as many as ResNet-50 has
  std::vector<CandidateTable> tables;
  for (unsigned i = 0; i < kConvolutions; ++i)
    tables.push_back(syntheticTable(policy, 128, 6, i + 1));
  divideAll(state, test::divisionItems(tables));
}

/// ResNet-50 with TF32; sizes between the recorded powers of two are interpolated.
std::vector<CandidateTable> resnet50(BatchSizePolicy policy) {
  std::vector<CandidateTable> tables = test::resnet50Tables("tf32");
  if (policy == BatchSizePolicy::kAll)
    for (CandidateTable& table : tables) table = test::atAllSizes(table);
  return tables;
}

void resnet50Fronts(benchmark::State& state, BatchSizePolicy policy) {
  const auto tables = resnet50(policy);
  for (auto _ : state) benchmark::DoNotOptimize(test::divisionItems(tables));
}

void resnet50Divide(benchmark::State& state, BatchSizePolicy policy) {
  divideAll(state, test::divisionItems(resnet50(policy)));
}

/// GLPK works on a thread of its own: only real time sees it.
void eachMebibytes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1)->Arg(8)->Arg(32)->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(resnet50Fronts, powerOfTwo, BatchSizePolicy::kPowerOfTwo)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(resnet50Fronts, all, BatchSizePolicy::kAll)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(resnet50Divide, powerOfTwo, BatchSizePolicy::kPowerOfTwo)->Apply(eachMebibytes);
BENCHMARK_CAPTURE(resnet50Divide, all, BatchSizePolicy::kAll)->Apply(eachMebibytes);
BENCHMARK_CAPTURE(fastest, powerOfTwo, BatchSizePolicy::kPowerOfTwo)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fastest, all, BatchSizePolicy::kAll)
    ->Arg(256)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(front, powerOfTwo, BatchSizePolicy::kPowerOfTwo)
    ->Arg(128)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(front, all, BatchSizePolicy::kAll)->Arg(128)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(divide, powerOfTwo, BatchSizePolicy::kPowerOfTwo)->Apply(eachMebibytes);
BENCHMARK_CAPTURE(divide, all, BatchSizePolicy::kAll)->Apply(eachMebibytes);

}  // namespace
}  // namespace ucudnn

BENCHMARK_MAIN();
