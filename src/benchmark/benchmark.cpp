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

// A sample lasts at least this long: 200 times the resolution of an event (0.5 us; CUDA Runtime
// API, cudaEventElapsedTime), so that it is known to better than 1 %.
constexpr double kSampleMs = 0.1;
// Kernels slower than this need no call ahead of the timed one: the gap before a first call,
// measured as 0.03 ms where it enqueues several kernels, is 1 % of it.
constexpr double kLongMs = 3.0;
// A kernel this many times slower than one that needs no more workspace is in no plan: one timing
// is enough.
constexpr double kHopeless = 3.0;
// Kernels within this factor of the front are timed until the stop rule is content.
constexpr double kNearFront = 1.15;
// At sizes that are no power of two, kernels are tried that were within this factor of the fastest
// at a neighbouring power.
constexpr double kPromising = 1.25;

// The stop rule's minimum.
constexpr int kSamplesAtOnce = 3;

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
  std::optional<double> quickTime(const Size& size, const KernelOffer& offer);
  void refine(const Size& size, const KernelOffer& offer, Measurement& measurement);
  bool isNearFastest(const KernelOffer& offer, int batch) const;
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
    const std::optional<double> timeMs = quickTime(size, offer);
    if (!timeMs) continue;
    found.kernels.push_back({offer.kernel, *timeMs, offer.workspaceBytes, offer.deterministic});
    offers.push_back(offer);
    ++result_.kernelsMeasured;
  }
  for (std::size_t i = 0; i < offers.size(); ++i)
    if (found.kernels[i].timeMs < kLongMs &&
        !isDominated(found.kernels[i], found.kernels, kNearFront))
      refine(size, offers[i], found.kernels[i]);
  found.coveredBytes = complete ? request_.limitBytes : buffers_.workspaceBytes;
}

/// One call; empty where cuDNN refuses it. The first call of a kernel may load or compile it: where
/// no smaller size leads to expect a time, or this is far beyond it, it is taken again.
std::optional<double> DeviceBenchmark::quickTime(const Size& size, const KernelOffer& offer) {
  const ConvolutionDescriptors descriptors = size.descriptors->get();
  const double expected = expectedMs(offer.kernel, size.batch);
  const int warmUps = expected > kLongMs ? 0 : 1;
  const auto first = timer_->time(descriptors, size.batch, offer, {1, 1, warmUps});
  if (first.empty()) return std::nullopt;
  // Twice what was expected: kernels scale with the batch at worst, so it must have been loaded
  // meanwhile.
  if (expected > 0 && first[0] < 2 * expected) return first[0];
  const auto second = timer_->time(descriptors, size.batch, offer, {1, 1, 1});
  if (second.empty()) return std::nullopt;
  return std::min(first[0], second[0]);
}

void DeviceBenchmark::refine(const Size& size, const KernelOffer& offer, Measurement& measurement) {
  StopRule rule;
  while (!rule.done()) {
    const double callMs = std::max(rule.count() == 0 ? measurement.timeMs : rule.median(), 1e-4);
    const int calls = static_cast<int>(std::ceil(kSampleMs / callMs));
    const auto samples =
        timer_->time(size.descriptors->get(), size.batch, offer, {kSamplesAtOnce, calls, 1});
    if (samples.empty()) return;
    for (const double sample : samples) rule.add(sample, sample * calls);
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

/// Between powers of two only kernels are tried that were near the fastest at the power below or
/// above: the slower ones that need less workspace are known at the powers. At a power, a kernel is
/// skipped when repeating another at a smaller size needs neither more workspace nor more time than
/// this one took at that size alone (a kernel does not get faster with more samples).
bool DeviceBenchmark::isPromising(const KernelOffer& offer, int batch) const {
  const auto& measured = result_.measurements;
  if (!isPowerOfTwo(batch)) {
    int below = 1;
    while (below * 2 <= batch) below *= 2;
    return isNearFastest(offer, below) || isNearFastest(offer, below * 2);
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

/// Whether the kernel was near the fastest at a size, or near the fastest deterministic one; false
/// where it was not measured, true where nothing was.
bool DeviceBenchmark::isNearFastest(const KernelOffer& offer, int batch) const {
  const auto size = result_.measurements.find(batch);
  if (size == result_.measurements.end() || size->second.kernels.empty())
    return batch < request_.problem.batch();
  std::vector<Measurement> kernels = size->second.kernels;
  for (Measurement& m : kernels) m.workspaceBytes = 0;  // any within the limit is as good
  return std::any_of(kernels.begin(), kernels.end(), [&](const Measurement& m) {
    return m.kernel == offer.kernel && !isDominated(m, kernels, kPromising);
  });
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
