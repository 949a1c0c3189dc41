#include "planner/parts.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "planner/plan_builder.hpp"
#include "support/workspace_room.hpp"

namespace ucudnn {
namespace {

// Even the smallest part takes an engine 20 us, of which 10 stand for a launch. So parts that are
// estimated to be shorter than kShortestPartMs are mostly overhead, and at most kFew of them are
// made.
constexpr double kShortestPartMs = 0.015;
constexpr int kFew = 4;
// Equal parts take one engine and one check, and often sizes that suit the kernel. So many times
// the fewest parts are worth that. A third more are not: in four parts rather than three a ViT's
// first layer forward takes an H200 1.2 times as long within 64 MiB
// (misc/results/first_layers_h200.json, first_layers_64mib_h200.json).
constexpr double kMoreIfEqual = 7.0 / 6;
// So many numbers of parts are tried one by one. That takes cuDNN as long as a call.
constexpr int kAskedOneByOne = 4;
// Parts with copies behind them are not all of one size.
constexpr std::size_t kFewSizes = 2;

/// The least number of equal parts that is at least `count`. 0: it is too large, or they are too
/// short.
int equalParts(const Problem& problem, int count) {
  const int miniBatch = problem.batch();
  const int most = std::min(miniBatch, static_cast<int>(count * kMoreIfEqual));
  while (count <= most && miniBatch % count != 0) ++count;
  const bool suits =
      count <= most &&
      (count <= kFew || estimatedMs(problem.withBatch(miniBatch / count)) >= kShortestPartMs);
  return suits ? count : 0;
}

/// Parts have a multiple of so many samples where that makes no more of them. A kernel is checked
/// anew at the first odd size, and at the first even one.
int unitOf(int miniBatch) noexcept {
  return miniBatch % 2 == 0 ? 2 : 1;
}

/// Of `parts` parts of `samples` samples, the size of the i-th.
int aboutEqual(int samples, int parts, int i, int unit) noexcept {
  const int all = samples / unit;
  return (all / parts + (i < all % parts ? 1 : 0)) * unit;
}

/// How many different ones there are.
std::size_t countOfSizes(const std::vector<int>& sizes) {
  return std::set<int>(sizes.begin(), sizes.end()).size();
}

/// What is left of a workspace without what is in the output.
std::size_t callersBytes(std::size_t workspaceBytes, std::size_t elsewhere) noexcept {
  return workspaceBytes - std::min(workspaceBytes, elsewhere);
}

/// Such bytes of a kernel; 0 if it can't run the problem. Throws Error.
std::size_t bytesOf(std::size_t (*bytes)(const Problem&, Kernel),
                    const Problem& problem,
                    Kernel kernel) try {
  return bytes(problem, kernel);
} catch (const Error& error) {
  if (!isRefusal(error.status())) throw;
  return 0;
}

}  // namespace

int partsWithin(const PlanRequest& request, double bytes) {
  const std::size_t limitBytes = std::max<std::size_t>(request.limitBytes, 1);
  const double wanted = std::ceil(bytes / static_cast<double>(limitBytes));
  return static_cast<int>(std::min<double>(wanted, request.problem.batch()));
}

int Parts::largest() const noexcept {
  int largest = 0;
  for (const auto& part : configuration_.microBatches) largest = std::max(largest, part.batch);
  return largest;
}

std::optional<KernelOffer> Parts::offer(int batch, std::size_t elsewhere) {
  leastBytes_ = bytesOf(copiedBytes, request_.problem.withBatch(batch), kernel_);
  if (callersBytes(leastBytes_, elsewhere) > request_.limitBytes) return std::nullopt;
  ++asked_;
  auto found = prepared_.offer(batch, kernel_, request_.callsAt(batch), &failures_);
  leastBytes_ = found ? found->workspaceBytes : 0;
  if (!found || callersBytes(leastBytes_, elsewhere) > request_.limitBytes ||
      (request_.deterministic && !found->deterministic))
    return std::nullopt;
  return found;
}

std::size_t Parts::outputCopyBytes(int batch) const {
  return bytesOf(ucudnn::outputCopyBytes, request_.problem.withBatch(batch), kernel_);
}

bool Parts::add(int batch, int count, std::size_t elsewhere) {
  if (count == 0) return true;
  const auto found = offer(batch, elsewhere);
  if (!found) return false;
  configuration_.microBatches.push_back({batch, 0, count, false});
  elsewhere_.push_back(elsewhere);
  configuration_.workspaceBytes =
      std::max(configuration_.workspaceBytes, callersBytes(found->workspaceBytes, elsewhere));
  measurements_[batch].kernels.push_back({*found, {}});
  left_ -= batch * count;
  return true;
}

void Parts::clear() {
  configuration_ = {};
  elsewhere_.clear();
  measurements_.clear();
  left_ = request_.problem.batch();
}

std::shared_ptr<const Plan> Parts::plan() const {
  auto plan = std::make_shared<Plan>(
      *buildPlan(prepared_, request_, configuration_, Pace::kHost, measurements_));
  plan->measured = false;
  plan->predictedMs = 0;
  for (std::size_t i = 0; i < elsewhere_.size(); ++i)
    plan->steps[i].outputCopyBytes = elsewhere_[i];
  if (plan->borrows()) plan->runs = CallKind::kOverwriting;
  const auto outcome = checks_.check(request_, *plan, Measuring::kWhenItPays);
  return outcome == KernelChecks::Outcome::kFailed ? nullptr : plan;
}

/// Sizes of parts, fewer than `count` and multiples of `unit`. Behind each but the last is room for
/// the copy of its output, so that the limit need hold only the rest of its workspace. `fitting`
/// samples run within the limit, with `bytes` of workspace. The last part has as many as do, the
/// one before it at most about as many. The others are about equal, and may be twice as large: each
/// further size would take an engine and a check. Empty: there are none. Throws Error.
std::vector<int> Parts::sizesWithCopiesBehind(int fitting, std::size_t bytes, int count, int unit) {
  const WorkspaceRoom room = request_.room();
  const int miniBatch = request_.problem.batch();
  if (count <= 2 || room.sampleBytes == 0) return {};
  const std::size_t copy = outputCopyBytes(fitting);
  if (copy == 0 || bytes <= copy) return {};
  const auto samplesOf = [&](std::size_t most, std::size_t ofFitting) {
    const double times = static_cast<double>(most) / static_cast<double>(ofFitting);
    const auto samples = static_cast<int>(std::min<double>(times * fitting, miniBatch - 1));
    return samples - samples % unit;
  };
  const auto mostBefore = [&](int behind) {
    int most = std::min(samplesOf(request_.limitBytes, bytes - copy),
                        samplesOf(room.forCopy(behind), copy));
    while (most > 0 && outputCopyBytes(most) > room.forCopy(behind))
      most -= unit;  // it is rounded up
    return most;
  };
  const auto endingWith = [&](int last) -> std::vector<int> {
    if (last == 0) return {};
    int next = std::min(miniBatch - last, mostBefore(last));
    int left = miniBatch - last - next;
    if (left > 0 && left < next) {
      next -= (next - left) / unit / 2 * unit;
      left = miniBatch - last - next;
    }
    const int most = mostBefore(last + next);
    if (next == 0 || most == 0) return {};
    const int parts = (left + most - 1) / most;
    if (parts + 2 >= count) return {};
    std::vector<int> sizes(static_cast<std::size_t>(parts));
    for (int i = 0; i < parts; ++i)
      sizes[static_cast<std::size_t>(i)] = aboutEqual(left, parts, i, unit);
    sizes.insert(sizes.end(), {next, last});
    return haveRoomBehind(sizes) ? sizes : std::vector<int>();
  };
  const int known = fitting - fitting % unit;
  int last = std::max(known, samplesOf(request_.limitBytes, bytes));
  if (request_.problem.withBatch(last).isLarge()) last = known;
  std::vector<int> sizes = endingWith(last);
  if (last > known && !sizes.empty() && !offer(last)) sizes = endingWith(known);
  return sizes;
}

/// Whether behind each but the last is room for the copy of its output, and none is large. Throws
/// Error.
bool Parts::haveRoomBehind(const std::vector<int>& sizes) const {
  int behind = request_.problem.batch();
  for (const int size : sizes) {
    behind -= size;
    if (request_.problem.withBatch(size).isLarge() ||
        (behind > 0 && outputCopyBytes(size) > request_.room().forCopy(behind)))
      return false;
  }
  return behind == 0;
}

/// Adds the fewest of such parts, and of these the fewest sizes, each of which takes an engine: in
/// multiples of a power of two, the largest ones first, which make halves of the batch. Within 64
/// MiB, 128 samples of ResNet-18 run as 64 + 32 + 32 rather than 50 + 38 + 40. Returns false,
/// without any, if there are none that run within the limit. Throws Error.
bool Parts::addWithCopiesBehind(int fitting, std::size_t bytes, int count) {
  std::vector<int> any = sizesWithCopiesBehind(fitting, bytes, count, 1);
  if (any.empty()) return false;
  const int fewest = static_cast<int>(any.size()), miniBatch = request_.problem.batch();
  std::vector<std::vector<int>> choices;
  for (int unit = miniBatch & -miniBatch; unit > 1; unit /= 2) {
    std::vector<int> sizes = sizesWithCopiesBehind(fitting, bytes, fewest + 1, unit);
    if (sizes.empty()) continue;
    choices.push_back(std::move(sizes));
    if (countOfSizes(choices.back()) <= kFewSizes) break;
  }
  choices.push_back(std::move(any));
  std::stable_sort(choices.begin(), choices.end(), [](const auto& one, const auto& other) {
    return countOfSizes(one) < countOfSizes(other);
  });
  return std::any_of(choices.begin(), choices.end(), [this](const std::vector<int>& sizes) {
    return addWithCopiesBehind(sizes);
  });
}

/// Adds such parts. Returns false, without any, if there are none or they don't run within the
/// limit. Throws Error.
bool Parts::addWithCopiesBehind(const std::vector<int>& sizes) {
  const auto last = sizes.end() - 1;
  bool isAdded = true;
  for (auto group = sizes.begin(); group != last && isAdded;) {
    const auto next = std::find_if(group, last, [&](int size) { return size != *group; });
    isAdded = add(*group, static_cast<int>(next - group), outputCopyBytes(*group));
    group = next;
  }
  if (isAdded && add(*last, 1)) return true;
  clear();
  return false;
}

/// Adds so many parts, about equal. Returns false, without any, if they are empty or large, or
/// don't run within the limit. Throws Error.
bool Parts::addAboutEqual(int count, int unit) {
  const int miniBatch = request_.problem.batch();
  const int largest = aboutEqual(miniBatch, count, 0, unit);
  const int least = aboutEqual(miniBatch, count, count - 1, unit);
  const int more = miniBatch / unit % count;
  if (least > 0 && !request_.problem.withBatch(largest).isLarge() && add(largest, more) &&
      add(least, count - more))
    return true;
  clear();
  return false;
}

bool Parts::divide(int count) {
  const int miniBatch = request_.problem.batch();
  const int askedBefore = asked_;
  int step = 1, last = miniBatch, size = 0;
  count = std::max(2, count);
  while (true) {
    count = std::min(count, miniBatch);
    // Each size is smaller than the last: of many parts, one more may not be.
    size = std::min(last - 1, (miniBatch + count - 1) / count);
    if (size == 0) return false;
    last = size;
    count = (miniBatch + size - 1) / size;
    const Problem part = request_.problem.withBatch(size);
    if (!part.isLarge()) {
      if (estimatedMs(part) < kShortestPartMs && count > kFew) return false;
      if (offer(size)) break;
      // The workspace of most kernels grows with the batch, from what the filter alone takes. The
      // farther the size is from one that fits, the wider the steps. So many parts of a size may
      // hold more than the batch, which makes the steps wider still. A kernel on our copies is
      // asked about few sizes: such steps would pass over one that fits.
      if (leastBytes_ > 0) {
        const bool areCopied = bytesOf(copiedBytes, part, kernel_) > 0;
        const double times = areCopied ? static_cast<double>(miniBatch) / size : count;
        const double bytes = static_cast<double>(leastBytes_) * times;
        count = std::max(count, partsWithin(request_, bytes) - 1);
      }
      if (asked_ - askedBefore >= kAskedOneByOne) step *= 2;
    }
    count += std::min(step, miniBatch);
  }
  const std::size_t bytes = leastBytes_;
  if (addWithCopiesBehind(size, bytes, count)) return true;
  const int unit = unitOf(miniBatch);
  const int equal = equalParts(request_.problem, count);
  if (equal != 0 && add(miniBatch / equal, equal)) return true;
  return (unit > 1 && addAboutEqual(count, unit)) || addAboutEqual(count, 1);
}

}  // namespace ucudnn
