#include "benchmark/device_benchmark.hpp"

#include <algorithm>
#include <cmath>

#include "benchmark/selection.hpp"

namespace ucudnn {
namespace {

// A sample lasts at least this long: 600 times the resolution of an event (0.5 us; CUDA Runtime
// API, cudaEventElapsedTime), so that it is known to better than 1 %.
constexpr double kSampleMs = 0.3;
// Where the host takes longer to enqueue a call (20 to 70 us, measured on an H200) than the device
// to run it, the host's pace is what is timed, and it takes some twenty calls to settle.
constexpr double kHostPacedMs = 0.08;
constexpr double kHostPacedSampleMs = 1.0;
// The host may be slow, by half, for longer than a kernel is timed (measured, too): kernels at its
// pace are timed once more when all others have been, and the better time counts.
constexpr double kSlowHostPacedMs = 0.1;
constexpr StopRule::Limits kHostPacedAtFirst{2, 2, 0.01, 4.0};
constexpr StopRule::Limits kHostPacedAgain{1, 1, 0.01, 1.0};
// To find out what the device alone takes, so many calls are enqueued behind others, each long
// enough for the host to gain on the device.
constexpr int kCallsBehind = 8;
constexpr double kAheadMs = 3 * kHostPacedMs;
// Where that differs by less than the noise of timings, the host paces nothing.
constexpr double kHostPaced = 0.98;
// What a single timing has of the gap before a first call: measured on an H200 where the call
// enqueues several kernels.
constexpr double kFirstCallGapMs = 0.03;
// Kernels slower than this need no call ahead of the timed one: the gap is 1 % of it. One timing is
// enough for them.
constexpr double kLongMs = 100 * kFirstCallGapMs;
// Kernels within this factor of the front of all anchors are timed until the stop rule is content.
constexpr double kNearFront = 1.15;
// Between anchors there are many sizes, and only what wins by more than this matters.
constexpr StopRule::Limits kBetween{2, 5, 0.02, 2.0};

bool isPowerOfTwo(int n) noexcept {
  return (n & (n - 1)) == 0;
}

}  // namespace

DeviceBenchmark::DeviceBenchmark(cudnnHandle_t handle,
                                 const BenchmarkRequest& request,
                                 Clock::time_point deadline)
    : handle_(handle), request_(request), deadline_(deadline) {}

BenchmarkResult DeviceBenchmark::run(const std::vector<int>& batches) {
  const int miniBatch = request_.problem.batch();
  const auto isAnchor = [&](int batch) { return isPowerOfTwo(batch) || batch == miniBatch; };
  if (request_.known != nullptr)
    for (const auto& [batch, size] : *request_.known)
      if (isAnchor(batch)) anchors_[batch] = size;

  std::vector<Size> sizes;
  for (const int batch : batches) {
    if (!isAnchor(batch)) continue;
    const Problem problem = request_.problem.withBatch(batch);
    Size size{batch, std::make_unique<ProblemDescriptors>(problem), {}};
    for (const KernelOffer& offer : offeredKernels(handle_, problem, size.descriptors->get()))
      if (!isKnown(batch, offer.kernel)) size.offers.push_back(offer);
    sizes.push_back(std::move(size));
  }
  allocate(sizes, sizes.size() < batches.size());
  for (Size& size : sizes) measureAnchor(size);
  findAhead();
  for (const Size& size : sizes) refineAnchor(size);
  for (const Size& size : sizes) lookAgain(size);
  for (const int batch : batches)
    if (!isAnchor(batch)) measureBetween(batch);
  // SHIM until the benchmark says it itself.
  if (bufferBatch_ >= miniBatch) {
    result_.undividedMeasured = true;
    result_.everyOfferFits = true;
    const ProblemDescriptors whole(request_.problem);
    for (const KernelOffer& offer : offeredKernels(handle_, request_.problem, whole.get())) {
      if (offer.workspaceBytes > request_.limitBytes) result_.everyOfferFits = false;
      else if (offer.workspaceBytes > buffers_.workspaceBytes) {
        result_.untried = Untried::kMemory;
        result_.undividedMeasured = false;
      }
    }
  } else result_.untried = Untried::kMemory;
  return std::move(result_);
}

/// Memory for what fits the limit at the anchors; a kernel that does not fit there may between
/// them.
void DeviceBenchmark::allocate(const std::vector<Size>& sizes, bool sizesBetween) {
  bufferBatch_ = request_.problem.batch();
  if (request_.buffers != nullptr) {
    buffers_ = *request_.buffers;
  } else {
    cudaStream_t stream = nullptr;
    UCUDNN_CHECK_CUDNN(cudnnGetStream(handle_, &stream));
    scratch_.emplace(request_.problem, stream);
    bufferBatch_ = scratch_->batch();
    std::vector<std::size_t> wanted;
    for (const Size& size : sizes)
      for (const KernelOffer& offer : size.offers)
        if (offer.workspaceBytes > 0)
          wanted.push_back(std::min(offer.workspaceBytes, request_.limitBytes));
    // No size between wants more than the mini-batch does, which may have been measured before.
    if (sizesBetween) {
      const ProblemDescriptors whole(request_.problem);
      for (const KernelOffer& offer : offeredKernels(handle_, request_.problem, whole.get()))
        if (offer.workspaceBytes > 0)
          wanted.push_back(std::min(offer.workspaceBytes, request_.limitBytes));
    }
    scratch_->allocateWorkspace(std::move(wanted));
    buffers_ = scratch_->get();
  }
  timer_.emplace(handle_, request_.problem, buffers_, bufferBatch_);
}

bool DeviceBenchmark::isTooLate(int batch) const {
  return batch > bufferBatch_ || (batch != request_.problem.batch() && Clock::now() > deadline_);
}

bool DeviceBenchmark::fits(const KernelOffer& offer) const {
  return offer.workspaceBytes <= std::min(request_.limitBytes, buffers_.workspaceBytes);
}

bool DeviceBenchmark::isKnown(int batch, Kernel kernel) const {
  if (request_.known == nullptr) return false;
  const auto size = request_.known->find(batch);
  if (size == request_.known->end()) return false;
  const auto& kernels = size->second.kernels;
  return std::any_of(
      kernels.begin(), kernels.end(), [&](const Measurement& m) { return m.kernel == kernel; });
}

void DeviceBenchmark::add(int batch, const KernelOffer& offer, double timeMs, double deviceMs) {
  result_.measurements[batch].kernels.push_back(
      {offer.kernel, timeMs, offer.workspaceBytes, offer.deterministic, offer.accurate, deviceMs});
  ++result_.kernelsMeasured;
}

/// Takes one timing of each kernel that may matter.
void DeviceBenchmark::measureAnchor(Size& size) {
  const std::vector<KernelOffer> offers = std::move(size.offers);
  size.offers.clear();
  if (isTooLate(size.batch)) return;
  SizeMeasurements& found = result_.measurements[size.batch];
  found.coveredBytes = request_.limitBytes;
  for (const KernelOffer& offer : offers) {
    if (offer.workspaceBytes > request_.limitBytes) continue;
    if (!fits(offer)) {
      found.coveredBytes = buffers_.workspaceBytes;
      continue;
    }
    if (size.batch != request_.problem.batch() && !isWorthTrying(anchors_, offer, size.batch))
      continue;
    const std::optional<double> timeMs = quickTime(size, offer);
    if (!timeMs) continue;
    add(size.batch, offer, *timeMs, *timeMs);
    size.offers.push_back(offer);
  }
  auto& anchor = anchors_[size.batch].kernels;
  anchor.insert(anchor.end(), found.kernels.begin(), found.kernels.end());
}

/// Times again what is near the front of all anchors.
void DeviceBenchmark::refineAnchor(const Size& size) {
  for (std::size_t i = 0; i < size.offers.size(); ++i) {
    Measurement& measurement = result_.measurements[size.batch].kernels[i];
    const double hopedMs = std::max(measurement.timeMs - kFirstCallGapMs, measurement.timeMs / 2);
    if (measurement.timeMs > kLongMs ||
        isOffFront(anchors_, size.batch, hopedMs, size.offers[i], kNearFront))
      continue;
    const StopRule rule = hopedMs < kHostPacedMs ? StopRule(kHostPacedAtFirst) : StopRule();
    const auto timeMs = carefulTime(size, size.offers[i], measurement.timeMs, rule);
    measurement.timeMs = timeMs.value_or(measurement.timeMs);
    measurement.deviceMs = deviceTime(size, size.offers[i], measurement.timeMs);
  }
}

/// Times again what the host was found to pace, some time after the first timing.
void DeviceBenchmark::lookAgain(const Size& size) {
  for (std::size_t i = 0; i < size.offers.size(); ++i) {
    Measurement& measurement = result_.measurements[size.batch].kernels[i];
    if (measurement.deviceMs >= measurement.timeMs) continue;
    const auto timeMs =
        carefulTime(size, size.offers[i], measurement.timeMs, StopRule(kHostPacedAgain));
    measurement.timeMs =
        std::clamp(timeMs.value_or(measurement.timeMs), measurement.deviceMs, measurement.timeMs);
  }
}

void DeviceBenchmark::measureBetween(int batch) {
  if (isTooLate(batch)) return;
  const Problem problem = request_.problem.withBatch(batch);
  Size size{batch, std::make_unique<ProblemDescriptors>(problem), {}};
  SizeMeasurements& found = result_.measurements[batch];
  found.coveredBytes = request_.limitBytes;
  for (const Kernel kernel : neighbouringKernels(anchors_, batch)) {
    if (isKnown(batch, kernel)) continue;
    const auto offer = offeredKernel(handle_, problem, size.descriptors->get(), kernel.algorithm);
    if (!offer || offer->workspaceBytes > request_.limitBytes) continue;
    if (!fits(*offer)) {
      found.coveredBytes = buffers_.workspaceBytes;
      continue;
    }
    const double hopedMs = hopedForMs(anchors_, kernel, batch);
    if (needsNoSplit(anchors_, *offer, request_.problem.batch()) ||
        isOffFront(anchors_, batch, hopedMs, *offer, kNearFront))
      continue;
    const auto timeMs = carefulTime(size, *offer, hopedMs, StopRule(kBetween));
    if (timeMs) add(batch, *offer, *timeMs, deviceTime(size, *offer, *timeMs));
  }
}

/// One call; empty where cuDNN refuses it. The first call of a kernel may load or compile it: where
/// no smaller size leads to expect a time, or this is far beyond it, it is taken again. The better
/// of two where it is so short that a hiccup of the host would leave the kernel out at larger
/// sizes.
std::optional<double> DeviceBenchmark::quickTime(const Size& size, const KernelOffer& offer) {
  const double expected = expectedMs(anchors_, offer.kernel, size.batch);
  const auto fastest = [&](int warmUps) {
    const int samples = expected > 0 && expected < 2 * kSampleMs ? 2 : 1;
    const auto times = timer_->time(size.call(offer), {samples, 1, warmUps});
    return times.empty() ? std::nullopt
                         : std::optional(*std::min_element(times.begin(), times.end()));
  };
  const auto first = fastest(expected > kLongMs ? 0 : 1);
  // Twice what was expected: kernels scale with the batch at worst, so it must have been loaded
  // meanwhile.
  if (!first || (expected > 0 && *first < 2 * expected)) return first;
  const auto second = fastest(1);
  return second ? std::min(first, second) : second;
}

/// Until the rule is content; empty where cuDNN refuses the kernel.
std::optional<double> DeviceBenchmark::carefulTime(const Size& size,
                                                   const KernelOffer& offer,
                                                   double estimateMs,
                                                   StopRule rule) {
  while (!rule.done()) {
    const double callMs = std::max(rule.count() == 0 ? estimateMs : rule.median(), 1e-4);
    KernelTimer::Schedule schedule;
    schedule.samples = callMs >= rule.budgetMs() ? 1 : rule.minimumSamples();
    const double sampleMs = callMs < kHostPacedMs ? kHostPacedSampleMs : kSampleMs;
    schedule.calls = static_cast<int>(std::ceil(std::min(sampleMs / callMs, 100.0)));
    const auto samples = timer_->time(size.call(offer), schedule);
    if (samples.empty()) return std::nullopt;
    for (const double sample : samples) rule.add(sample, sample * schedule.calls);
  }
  return rule.median();
}

/// Chooses the shortest kernel that is long enough: what is timed behind it waits for no longer
/// than it must.
void DeviceBenchmark::findAhead() {
  for (const auto& [batch, size] : anchors_)
    for (const Measurement& m : size.kernels) {
      if (m.timeMs < kAheadMs || (ahead_ && m.timeMs >= ahead_->timeMs)) continue;
      if (batch > bufferBatch_ || m.workspaceBytes > buffers_.workspaceBytes) continue;
      ahead_.emplace();
      ahead_->size.batch = batch;
      ahead_->offer = {m.kernel, m.workspaceBytes, m.deterministic, m.accurate};
      ahead_->timeMs = m.timeMs;
    }
  if (!ahead_) return;
  ahead_->size.descriptors =
      std::make_unique<ProblemDescriptors>(request_.problem.withBatch(ahead_->size.batch));
}

/// What the device needs of `timeMs`; `timeMs` itself for calls that are too long to be paced by
/// the host, and where there is nothing to let it run ahead.
double DeviceBenchmark::deviceTime(const Size& size, const KernelOffer& offer, double timeMs) {
  if (timeMs >= kSlowHostPacedMs || !ahead_) return timeMs;
  const double headStartMs = kCallsBehind * timeMs;
  const int aheadCalls = static_cast<int>(headStartMs / (ahead_->timeMs - kHostPacedMs)) + 1;
  const auto deviceMs = timer_->timeBehind(
      ahead_->size.call(ahead_->offer), aheadCalls, size.call(offer), kCallsBehind);
  return deviceMs && *deviceMs < kHostPaced * timeMs ? *deviceMs : timeMs;
}

}  // namespace ucudnn
