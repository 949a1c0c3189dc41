// How blocks of calls are compared.
#pragma once

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "support/simulator.hpp"

namespace ucudnn::test {

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(),
                   values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

template <typename Call>
double nanosecondsPerCall(int calls, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
  if (cudaDeviceSynchronize() != cudaSuccess) std::abort();
  return elapsed.count() / calls;
}

/// Alternates blocks of `bare` and `planned`, which do the same in so many `parts`; counters and
/// times are those of one part.
template <typename Bare, typename Planned>
void compare(benchmark::State& state, int calls, int parts, Bare bare, Planned planned) {
  std::vector<double> bareNs, plannedNs;
  nanosecondsPerCall(calls, bare);  // warms up
  nanosecondsPerCall(calls, planned);
  for (auto _ : state) {
    bareNs.push_back(nanosecondsPerCall(calls, bare) / parts);
    plannedNs.push_back(nanosecondsPerCall(calls, planned) / parts);
    state.SetIterationTime(plannedNs.back() * 1e-9);
  }
  state.counters["bare_ns"] = median(bareNs);
  state.counters["planned_ns"] = median(plannedNs);
  state.counters["overhead_ns"] = median(plannedNs) - median(bareNs);
}

/// The main function of these benchmarks.
inline int runBenchmarks(int argc, char** argv) {
  setArithmetic(Arithmetic::kOff);  // on the simulator
  benchmark::AddCustomContext("simulated", onSimulator() ? "yes" : "no");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace ucudnn::test
