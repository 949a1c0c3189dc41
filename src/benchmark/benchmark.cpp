#include "benchmark/benchmark.hpp"

#include "benchmark/benchmark_run.hpp"
#include "benchmark/helper_devices.hpp"

namespace ucudnn {

BenchmarkResult benchmarkKernels(cudnnHandle_t handle, const BenchmarkRequest& request) {
  const RelaxedCapture relaxed;
  return BenchmarkRun(handle, request).run();
}

void prepareBenchmarkDevices(const std::vector<int>& devices) noexcept {
  for (const int device : devices) HelperDevices::instance().prepare(device);
}

}  // namespace ucudnn
