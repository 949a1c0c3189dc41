#include "benchmark/benchmark.hpp"

#include <algorithm>

#include "benchmark/benchmark_run.hpp"
#include "benchmark/helper_devices.hpp"

namespace ucudnn {

std::size_t BenchmarkRequest::limitAt(int batch) const noexcept {
  std::size_t borrowed = room.borrowed(problem.batch() - batch);
  if (buffers == nullptr && borrowed > room.limitBytes) {
    const std::size_t tensors = scratchBytesOf(problem.withBatch(batch), 0, false);
    borrowed = std::min(borrowed, memory.mostBytes > tensors ? memory.mostBytes - tensors : 0);
  }
  return std::max(room.limitBytes, borrowed);
}

BenchmarkResult benchmarkKernels(cudnnHandle_t handle, const BenchmarkRequest& request) {
  const RelaxedCapture relaxed;
  BenchmarkRun run(handle, request);
  while (run.advance()) {
  }
  return run.finish();
}

bool hasMemoryToBenchmark(const BenchmarkRequest& request) {
  return request.buffers != nullptr ||
         scratchBytesOf(request.problem, 0, request.hasZBesideY()) <= request.memory.bytes();
}

void prepareBenchmarkDevices(const std::vector<int>& devices) noexcept {
  for (const int device : devices) HelperDevices::instance().prepare(device);
}

}  // namespace ucudnn
