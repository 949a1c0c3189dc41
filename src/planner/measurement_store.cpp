#include "planner/measurement_store.hpp"

#include <algorithm>

#include "cuda/calling_threads.hpp"
#include "planner/measured_kernels.hpp"

namespace ucudnn {
namespace {

// A database that others held is read again after this time: not more often than a person would
// notice.
constexpr std::chrono::milliseconds kRetryLocked{100};
// Longest wait for another thread that reads a file: far longer than reading takes, shorter than a
// hang.
constexpr std::chrono::milliseconds kLoadPatience{1000};

bool areReplayTimed(const Measurements& measurements) {
  for (const auto& [batch, size] : measurements)
    for (const Measurement& m : size.kernels)
      if (!m.isReplayTimed) return false;
  return true;
}

}  // namespace

/// Measurements belong to the problem at any mini-batch.
KnownKey MeasurementStore::keyOf(const PlanRequest& request) {
  return {request.machine, request.problem.withBatch(0)};
}

bool MeasurementStore::answers(const PlanRequest& request) const {
  return read(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->answers(request.limitBytes);
  });
}

std::vector<Kernel> MeasurementStore::likelyKernels(const PlanRequest& request) const {
  std::vector<Kernel> kernels;
  if (const Known* const known = known_.peek(keyOf(request))) {
    const auto hinted = known->hinted.find(request.problem.batch());
    if (hinted != known->hinted.end() && !hinted->second.empty()) return hinted->second;
  }
  QuestionKey wanted = request.question();
  wanted.miniBatch = 0;
  neighbours_.forEach(keyOf(request), [&](const KnownKey& key) {
    const Known* const known = known_.peek(key);
    if (known == nullptr) return false;
    for (const KnownQuestion& asked : known->questions) {
      QuestionKey other = asked.key;
      other.miniBatch = 0;
      if (kernels.empty() && other == wanted) kernels = kernelsOfPlans(asked, request.limitBytes);
    }
    return !kernels.empty();
  });
  return kernels;
}

Measurements MeasurementStore::measurements(const PlanRequest& request) const {
  const int miniBatch = request.problem.batch();
  const bool isSplit = request.sizes().size() > 1;
  return read(request, [&](const Known* known, const KnownQuestion*) {
    Measurements found;
    if (known == nullptr) return found;
    for (const auto& [batch, size] : known->measurements)
      if (batch == miniBatch || (isSplit && batch < miniBatch)) found.emplace(batch, size);
    return found;
  });
}

bool MeasurementStore::load(const PlanRequest& request) {
  if (!beginLoad(request)) return false;
  const std::shared_ptr<void> loading(this, [&](void*) { endLoad(request); });
  return addLoaded(request, files_.read(request));
}

/// Returns false if the file is not to be read now, or another thread has just read it.
bool MeasurementStore::beginLoad(const PlanRequest& request) {
  const KnownKey key = keyOf(request);
  std::unique_lock lock(mutex_);
  loadEnded_.wait_for(lock, kLoadPatience, [&] {
    const Known* const known = known_.peek(key);
    return known == nullptr || !known->isLoading;
  });
  Known& known = known_[key];
  if (known.isLoading || !known.mayLoad(request.settings->databasePath)) return false;
  known.isLoading = true;
  return true;
}

void MeasurementStore::endLoad(const PlanRequest& request) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (Known* const known = known_.find(keyOf(request))) known->isLoading = false;
  }
  loadEnded_.notify_all();
}

bool MeasurementStore::addLoaded(const PlanRequest& request, const StoredKnowledge& stored) {
  return update(request, [&](Known& known, KnownQuestion&) {
    known.loadedFrom = request.settings->databasePath;
    if (stored.isLocked) {
      known.loadedFrom.clear();
      known.loadAgainAt = KnownQuestion::Clock::now() + kRetryLocked;
      return false;
    }
    for (const auto& [size, found] : stored.measurements) {
      statistics_.kernelsLoaded += static_cast<long long>(found.kernels.size());
      // What this process has measured itself stays.
      std::vector<Measurement>& kernels = known.measurements[size].kernels;
      kernels.reserve(kernels.size() + found.kernels.size());
      for (const Measurement& m : found.kernels)
        if (findKernel(kernels, m.kernel) == nullptr) kernels.push_back(m);
    }
    // Rows of processes without replay lack replayed times, which matters if this one can measure
    // them.
    const bool lacksReplays = request.replay() != Replay::kNever &&
                              !areReplayTimed(stored.measurements) &&
                              callingThreads(request.device).mayCapture();
    const bool lacksErrors = largestErrors(stored.measurements).empty();
    for (const auto& [question, coverage] : stored.answered)
      if (!lacksReplays && !(question.errors && lacksErrors))
        known.question(question).addCoverage(coverage);
    if (!stored.answered.empty()) neighbours_.add(keyOf(request));
    known.accurateFirst.insert(stored.accurateFirst.begin(), stored.accurateFirst.end());
    known.right.insert(stored.right.begin(), stored.right.end());
    known.right.insert(stored.repeated.begin(), stored.repeated.end());
    known.repeated.insert(stored.repeated.begin(), stored.repeated.end());
    known.wrong.insert(stored.wrong.begin(), stored.wrong.end());
    known.unrepeatable.insert(stored.unrepeatable.begin(), stored.unrepeatable.end());
    known.dropWrong();
    for (const auto& [size, found] : stored.elsewhere)
      addMeasurements(known.elsewhere[size], found);
    known.dropPlans();  // made without the file by calls that found it locked or did not wait
    known.loadAgainAt = {};
    return known.question(request.question()).answersClosely(request.limitBytes);
  });
}

void MeasurementStore::addResult(const PlanRequest& request,
                                 const BenchmarkResult& result,
                                 const std::string& why) {
  update(request, [&](Known& known, KnownQuestion& asked) {
    for (const auto& [size, found] : result.measurements)
      addMeasurements(known.measurements[size], found);
    for (const auto& [size, kernels] : result.refused) {
      std::vector<Kernel>& place = known.refused[size];
      place.insert(place.end(), kernels.begin(), kernels.end());
    }
    known.dropWrong();
    asked.addAttempt(result, request.limitBytes, known.hasMeasured(request.problem.batch()));
    asked.why = why;
    if (asked.isAnswered()) neighbours_.add(keyOf(request));
  });
  files_.add(request, result);
}

void MeasurementStore::addPart(const PlanRequest& request, Measurements measurements) {
  update(request, [&](Known& known, KnownQuestion&) {
    for (const auto& [size, found] : measurements) addMeasurements(known.measurements[size], found);
    known.dropWrong();
  });
  BenchmarkResult part;
  part.measurements = std::move(measurements);
  part.untried = Untried::kTime;
  files_.add(request, part);
}

bool MeasurementStore::ranksAccurateFirst(const PlanRequest& request) const {
  return read(request, [&](const Known* known, const KnownQuestion*) {
    return known != nullptr && known->accurateFirst.count(request.problem.batch()) > 0;
  });
}

void MeasurementStore::addAccurateFirst(const PlanRequest& request) {
  const int miniBatch = request.problem.batch();
  update(request, [&](Known& known, KnownQuestion&) { known.accurateFirst.insert(miniBatch); });
  files_.addAccurateFirst(request);
}

void MeasurementStore::addConfirmed(const PlanRequest& request,
                                    int batch,
                                    const std::vector<Kernel>& asked,
                                    const SizeMeasurements& confirmed) {
  const std::lock_guard lock(mutex_);
  std::vector<Measurement>& kernels = known_[keyOf(request)].measurements[batch].kernels;
  std::vector<Measurement> kept;
  kept.reserve(kernels.size());
  for (const Measurement& m : kernels) {
    const bool isOpen = !m.confirmed && contains(asked, m.kernel);
    const Measurement* const known = isOpen ? findKernel(confirmed.kernels, m.kernel) : &m;
    if (known != nullptr) kept.push_back(*known);
  }
  kernels = std::move(kept);
  known_[keyOf(request)].dropWrong();
}

void MeasurementStore::addRight(const PlanRequest& request, const KernelSet& kernels) {
  update(request,
         [&](Known& known, KnownQuestion&) { known.right.insert(kernels.begin(), kernels.end()); });
  files_.addRight(request, kernels);
}

void MeasurementStore::addRepeated(const PlanRequest& request, const KernelSet& kernels) {
  update(request, [&](Known& known, KnownQuestion&) {
    known.right.insert(kernels.begin(), kernels.end());
    known.repeated.insert(kernels.begin(), kernels.end());
  });
  files_.addRepeated(request, kernels);
}

void MeasurementStore::addWrong(const PlanRequest& request, int batch, Kernel kernel) {
  update(request, [&](Known& known, KnownQuestion&) {
    known.wrong.insert(kernel);
    known.dropWrong();
    known.dropPlans();
  });
  files_.addWrong(request, batch, kernel);
}

void MeasurementStore::addUnrepeatable(const PlanRequest& request, int batch, Kernel kernel) {
  update(request, [&](Known& known, KnownQuestion&) {
    known.unrepeatable.insert(kernel);
    known.dropWrong();
    known.dropPlans();
  });
  files_.addUnrepeatable(request, batch, kernel);
}

void MeasurementStore::refuse(const PlanRequest& request, int batch, Kernel kernel) {
  update(request, [&](Known& known, KnownQuestion&) {
    known.refused[batch].push_back(kernel);
    std::vector<Measurement>& kernels = known.measurements[batch].kernels;
    kernels.erase(std::remove_if(kernels.begin(),
                                 kernels.end(),
                                 [&](const Measurement& m) { return m.kernel == kernel; }),
                  kernels.end());
  });
}

}  // namespace ucudnn
