#include "benchmark/benchmark.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "benchmark/kernel_timer.hpp"
#include "benchmark/stop_rule.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

using Clock = std::chrono::steady_clock;

// One timing lasts at least this long: 200 times the resolution of an event (0.5 us, CUDA Runtime
// API, cudaEventElapsedTime), so that it is known to better than 1 %.
constexpr double kSampleMs = 0.3;
// Calls shorter than this are timed behind a call that keeps the device busy: the gap before the
// first one, about 5 us, would be more than 1 % of a sample.
constexpr double kPrimedBelowMs = 0.25;
// A kernel this many times slower than one that needs no more workspace is in no plan: one timing
// is enough.
constexpr double kHopeless = 3.0;
// Kernels within this factor of the front are timed until the stop rule is content.
constexpr double kNearFront = 1.15;
// At sizes that are no power of two, kernels are tried that were within this factor at a
// neighbouring power.
constexpr double kPromising = 1.4;

bool isPowerOfTwo(int n) noexcept {
  return (n & (n - 1)) == 0;
}

/// Measures one device's share of the sizes.
class DeviceBenchmark {
 public:
  DeviceBenchmark(cudnnHandle_t handle, const BenchmarkRequest& request, Clock::time_point deadline)
      : handle_(handle), request_(request), deadline_(deadline) {}

  BenchmarkResult run(std::vector<int> sizes);

 private:
  struct Size {
    int batch;
    std::unique_ptr<ProblemDescriptors> descriptors;
    std::vector<KernelOffer> offers;
  };

  std::vector<Size> prepare(const std::vector<int>& sizes);
  void allocate(const std::vector<Size>& sizes);
  void measure(const Size& size);
  double quickTime(KernelTimer& timer, const Size& size, const KernelOffer& offer);
  void refine(KernelTimer& timer,
              const Size& size,
              const KernelOffer& offer,
              Measurement& measurement);
  bool isPromising(const KernelOffer& offer, int batch) const;
  bool isKnown(int batch, Kernel kernel) const;
  /// What the kernel took at the largest smaller size, scaled up; 0 where it is not known.
  double expectedMs(Kernel kernel, int batch) const;

  cudnnHandle_t handle_;
  const BenchmarkRequest& request_;
  Clock::time_point deadline_;
  TensorBuffers buffers_;
  int bufferBatch_ = 0;
  std::optional<ScratchBuffers> scratch_;
  std::optional<KernelTimer> timer_;
  BenchmarkResult result_;
};

std::vector<DeviceBenchmark::Size> DeviceBenchmark::prepare(const std::vector<int>& batches) {
  std::vector<Size> sizes;
  for (const int batch : batches) {
    const Problem problem = request_.problem.withBatch(batch);
    Size size{batch, std::make_unique<ProblemDescriptors>(problem), {}};
    for (const KernelOffer& offer : offeredKernels(handle_, problem, size.descriptors->get()))
      if (offer.workspaceBytes <= request_.limitBytes && !isKnown(batch, offer.kernel))
        size.offers.push_back(offer);
    sizes.push_back(std::move(size));
  }
  return sizes;
}

void DeviceBenchmark::allocate(const std::vector<Size>& sizes) {
  bufferBatch_ = request_.problem.batch();
  if (request_.buffers != nullptr) {
    buffers_ = *request_.buffers;
    return;
  }
  cudaStream_t stream = nullptr;
  UCUDNN_CHECK_CUDNN(cudnnGetStream(handle_, &stream));
  scratch_.emplace(request_.problem, stream);
  bufferBatch_ = scratch_->batch();
  std::vector<std::size_t> wanted;
  for (const Size& size : sizes)
    if (size.batch <= bufferBatch_)
      for (const KernelOffer& offer : size.offers)
        if (offer.workspaceBytes > 0) wanted.push_back(offer.workspaceBytes);
  scratch_->allocateWorkspace(std::move(wanted));
  buffers_ = scratch_->get();
}

BenchmarkResult DeviceBenchmark::run(std::vector<int> batches) {
  const std::vector<Size> sizes = prepare(batches);
  const bool nothingToTime =
      std::all_of(sizes.begin(), sizes.end(), [](const Size& size) { return size.offers.empty(); });
  if (!nothingToTime) {
    allocate(sizes);
    timer_.emplace(handle_, request_.problem, buffers_, bufferBatch_);
  }
  // Powers of two first: what they show decides what is tried in between.
  for (const bool powers : {true, false})
    for (const Size& size : sizes) {
      const bool early = isPowerOfTwo(size.batch) || size.batch == request_.problem.batch();
      if (early == powers) measure(size);
    }
  return std::move(result_);
}

void DeviceBenchmark::measure(const Size& size) {
  SizeMeasurements& found = result_.measurements[size.batch];
  const bool mustTry = size.batch == request_.problem.batch();
  if (size.offers.empty()) {
    found.coveredBytes = request_.limitBytes;
    return;
  }
  if (size.batch > bufferBatch_ || (Clock::now() > deadline_ && !mustTry)) return;
  bool complete = true;
  std::vector<KernelOffer> offers;  // in step with found.kernels
  for (const KernelOffer& offer : size.offers) {
    if (!mustTry && !isPromising(offer, size.batch)) continue;
    if (offer.workspaceBytes > buffers_.workspaceBytes) {
      complete = false;
      continue;
    }
    const double timeMs = quickTime(*timer_, size, offer);
    if (timeMs < 0) continue;
    found.kernels.push_back({offer.kernel, timeMs, offer.workspaceBytes, offer.deterministic});
    offers.push_back(offer);
    ++result_.kernelsMeasured;
  }
  for (std::size_t i = 0; i < offers.size(); ++i)
    if (!isDominated(found.kernels[i], found.kernels, kNearFront))
      refine(*timer_, size, offers[i], found.kernels[i]);
  found.coveredBytes = complete ? request_.limitBytes : buffers_.workspaceBytes;
}

/// One call, or -1 where cuDNN refuses it. The first call of a kernel may load or compile it, so a
/// time beyond what the size before leads to expect, and one of a kernel that may matter, is taken
/// again.
double DeviceBenchmark::quickTime(KernelTimer& timer, const Size& size, const KernelOffer& offer) {
  const ConvolutionDescriptors descriptors = size.descriptors->get();
  const auto first = timer.time(descriptors, size.batch, offer, 1, false);
  if (!first) return -1;
  const std::vector<Measurement>& others = result_.measurements[size.batch].kernels;
  const Measurement measured{offer.kernel, *first, offer.workspaceBytes, offer.deterministic};
  const double expected = expectedMs(offer.kernel, size.batch);
  if (expected > 0 && *first < 2 * expected && isDominated(measured, others, kHopeless))
    return *first;
  const bool primed = *first < kPrimedBelowMs;
  return timer.time(descriptors, size.batch, offer, 1, primed).value_or(-1);
}

void DeviceBenchmark::refine(KernelTimer& timer,
                             const Size& size,
                             const KernelOffer& offer,
                             Measurement& measurement) {
  StopRule rule;
  while (!rule.done()) {
    const double callMs = std::max(rule.count() == 0 ? measurement.timeMs : rule.median(), 1e-4);
    const int calls = static_cast<int>(std::ceil(kSampleMs / callMs));
    const bool primed = callMs < kPrimedBelowMs;
    const auto elapsedMs = timer.time(size.descriptors->get(), size.batch, offer, calls, primed);
    if (!elapsedMs) return;
    rule.add(*elapsedMs / calls, *elapsedMs);
  }
  measurement.timeMs = rule.median();
}

bool DeviceBenchmark::isKnown(int batch, Kernel kernel) const {
  if (request_.known == nullptr) return false;
  const auto size = request_.known->find(batch);
  if (size == request_.known->end()) return false;
  const auto& kernels = size->second.kernels;
  return std::any_of(
      kernels.begin(), kernels.end(), [&](const Measurement& m) { return m.kernel == kernel; });
}

double DeviceBenchmark::expectedMs(Kernel kernel, int batch) const {
  for (auto size = std::make_reverse_iterator(result_.measurements.lower_bound(batch));
       size != result_.measurements.rend();
       ++size)
    for (const Measurement& measurement : size->second.kernels)
      if (measurement.kernel == kernel) return measurement.timeMs * batch / size->first;
  return 0;
}

/// Between powers of two only kernels are tried that were near the front at the power below or
/// above. At a power, a kernel is skipped when repeating another at a smaller size needs neither
/// more workspace nor more time than this one took at that size alone (a kernel does not get faster
/// with more samples).
bool DeviceBenchmark::isPromising(const KernelOffer& offer, int batch) const {
  const auto& measured = result_.measurements;
  const auto isNearFront = [&](int power) {
    const auto size = measured.find(power);
    if (size == measured.end() || size->second.kernels.empty()) return true;  // nothing known
    const auto& kernels = size->second.kernels;
    return std::any_of(kernels.begin(), kernels.end(), [&](const Measurement& m) {
      return m.kernel == offer.kernel && !isDominated(m, kernels, kPromising);
    });
  };
  if (!isPowerOfTwo(batch)) {
    int below = 1;
    while (below * 2 <= batch) below *= 2;
    return isNearFront(below) || (measured.count(below * 2) > 0 && isNearFront(below * 2));
  }
  for (auto size = std::make_reverse_iterator(measured.lower_bound(batch)); size != measured.rend();
       ++size)
    for (const Measurement& m : size->second.kernels)
      if (m.kernel == offer.kernel) {
        const Measurement here{m.kernel, m.timeMs, offer.workspaceBytes, m.deterministic};
        return !isDominated(here, size->second.kernels, static_cast<double>(batch) / size->first);
      }
  return true;
}

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
