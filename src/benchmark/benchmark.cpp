#include "benchmark/benchmark.hpp"

#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "benchmark/device_benchmark.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

using Clock = DeviceBenchmark::Clock;

/// Sizes for each device: dealt out from the largest down, so that each gets about the same work.
std::vector<std::vector<int>> shares(const std::vector<int>& sizes, std::size_t devices) {
  std::vector<std::vector<int>> result(devices);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    result[(sizes.size() - 1 - i) % devices].push_back(sizes[i]);
  return result;
}

void merge(BenchmarkResult& into, BenchmarkResult&& from) {
  into.measurements.merge(from.measurements);
  into.kernelsMeasured += from.kernelsMeasured;
}

BenchmarkResult runOnDevice(int device,
                            const BenchmarkRequest& request,
                            const std::vector<int>& sizes,
                            Clock::time_point deadline) {
  const RelaxedCapture relaxed;
  const DeviceScope scope(device);
  const CudnnHandle handle = makeOwned<CudnnHandle>(cudnnCreate);
  BenchmarkRequest own = request;
  own.buffers = nullptr;  // the caller's are on another device
  return DeviceBenchmark(handle.get(), own, deadline).run(sizes);
}

}  // namespace

BenchmarkResult benchmarkKernels(cudnnHandle_t handle, const BenchmarkRequest& request) {
  const RelaxedCapture relaxed;
  const auto deadline = request.budgetMs > 0
                            ? Clock::now() + std::chrono::microseconds(
                                                 static_cast<long long>(request.budgetMs * 1000))
                            : Clock::time_point::max();
  const auto parts = shares(request.sizes, request.devices.size() + 1);
  std::vector<std::optional<BenchmarkResult>> results(request.devices.size());
  std::vector<std::exception_ptr> errors(request.devices.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < request.devices.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        results[i] = runOnDevice(request.devices[i], request, parts[i + 1], deadline);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  BenchmarkResult result;
  std::exception_ptr failure;
  try {
    result = DeviceBenchmark(handle, request, deadline).run(parts[0]);
  } catch (...) {
    failure = std::current_exception();
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (results[i]) {
      merge(result, std::move(*results[i]));
      continue;
    }
    try {
      std::rethrow_exception(errors[i]);
    } catch (const std::exception& error) {  // its share is measured here instead
      logWarn("benchmark device {} failed: {}", request.devices[i], error.what());
      merge(result, DeviceBenchmark(handle, request, deadline).run(parts[i + 1]));
    }
  }
  return result;
}

}  // namespace ucudnn
