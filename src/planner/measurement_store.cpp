#include "planner/measurement_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "cuda/calling_threads.hpp"
#include "planner/confirmation.hpp"
#include "planner/measured_kernels.hpp"
#include "planner/measurement_rows.hpp"

namespace ucudnn {
namespace {

// What others held is asked again so much later: not more often than a person would notice.
constexpr std::chrono::milliseconds kRetryLocked{100};
// What another thread reads of a file is waited for: far longer than that takes, shorter than a
// hang.
constexpr std::chrono::milliseconds kLoadPatience{1000};
constexpr std::string_view kWithin = " within=";
// Stored like a question, with the mini-batches that Known::accurateFirst has.
constexpr char kAccurateFirst[] = "accurate";

bool areReplayTimed(const Measurements& measurements) {
  for (const auto& [batch, size] : measurements)
    for (const Measurement& m : size.kernels)
      if (!m.isReplayTimed) return false;
  return true;
}

/// What a question within a limit is stored under.
std::string lookText(const QuestionKey& question, std::size_t limitBytes) {
  return fmt::format("{}{}{}", toText(question), kWithin, limitBytes);
}

/// The question's text, and the limit. Without one, as once, it is taken to be all that is covered.
std::pair<std::string, std::size_t> fromLookText(const std::string& text) {
  std::size_t limitBytes = std::numeric_limits<std::size_t>::max();
  const auto place = text.find(kWithin);
  if (place == std::string::npos) return {text, limitBytes};
  const char* const number = text.data() + place + kWithin.size();
  std::from_chars(number, text.data() + text.size(), limitBytes);
  return {text.substr(0, place), limitBytes};
}

KernelsAtSizes kernelsOf(const Measurements& measurements) {
  KernelsAtSizes kernels;
  for (const auto& [batch, size] : measurements)
    for (const Measurement& m : size.kernels) kernels[batch].push_back(m.kernel);
  return kernels;
}

/// Of any mini-batch, by their texts. Never destroyed: handles are used in static destructors.
const std::map<std::string, QuestionKey>& questionsByText() {
  static const auto& all = *[] {
    auto* const questions = new std::map<std::string, QuestionKey>;
    for (const Kernels kernels : {Kernels::kLegacy, Kernels::kEngines, Kernels::kAll})
      for (const BatchSizePolicy policy : kBatchSizePolicies)
        for (const Tuning tuning : {Tuning::kExhaustive, Tuning::kFast})
          for (const bool errors : {false, true})
            for (const bool borrows : {false, true}) {
              const QuestionKey question{0, policy, kernels, tuning, errors, borrows};
              questions->emplace(toText(question), question);
            }
    return questions;
  }();
  return all;
}

}  // namespace

/// Measurements belong to the problem at any mini-batch.
KnownKey MeasurementStore::keyOf(const PlanRequest& request) {
  return {request.machine, request.problem.withBatch(0)};
}

Database& MeasurementStore::database(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Database>& database = databases_[path];
  if (!database) database = std::make_unique<Database>(path);
  return *database;
}

bool MeasurementStore::knows(int machine, const Problem& problem) const {
  const std::lock_guard lock(mutex_);
  return known_.peek({machine, problem.withBatch(0)}) != nullptr;
}

bool MeasurementStore::answers(const PlanRequest& request) const {
  return read(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->answers(request.limitBytes);
  });
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

std::vector<Measurement> MeasurementStore::undivided(const PlanRequest& request) {
  const int miniBatch = request.problem.batch();
  Measurements found = read(request, [&](const Known* known, const KnownQuestion*) {
    Measurements within;
    if (known != nullptr)
      within[miniBatch].kernels = kernelsWithin(known->measurements, miniBatch, request.limitBytes);
    return within;
  });
  PreparedKernels prepared(request.handle, request.problem);
  confirmAll(request, prepared, found);
  return kernelsWithin(found, miniBatch, request.limitBytes);
}

bool MeasurementStore::load(const PlanRequest& request) {
  if (!beginLoad(request)) return false;
  try {
    const bool isAnswered = addLoaded(request, readFile(request));
    endLoad(request);
    return isAnswered;
  } catch (...) {
    endLoad(request);
    throw;
  }
}

/// False: the file is not to be read now, or another thread has just done so.
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

bool MeasurementStore::addLoaded(const PlanRequest& request, const Loaded& loaded) {
  return update(request, [&](Known& known, KnownQuestion&) {
    known.loadedFrom = request.settings->databasePath;
    if (loaded.isLocked) {
      known.loadedFrom.clear();
      known.loadAgainAt = KnownQuestion::Clock::now() + kRetryLocked;
      return false;
    }
    for (const auto& [size, found] : loaded.measurements) {
      statistics_.kernelsLoaded += static_cast<long long>(found.kernels.size());
      addUnconfirmed(known.measurements[size], found);
    }
    // A process without replay has not asked all that this one has to know, if it can find it out.
    const bool lacksReplays = request.replay() != Replay::kNever &&
                              !areReplayTimed(loaded.measurements) &&
                              callingThreads(request.device).mayCapture();
    const bool lacksErrors = largestErrors(loaded.measurements).empty();
    for (const auto& [question, coverage] : loaded.answered)
      if (!lacksReplays && !(question.errors && lacksErrors))
        known.question(question).addCoverage(coverage);
    known.accurateFirst.insert(loaded.accurateFirst.begin(), loaded.accurateFirst.end());
    known.dropPlans();  // made without the file, by whoever found it locked or did not wait
    known.loadAgainAt = {};
    return known.question(request.question()).answersClosely(request.limitBytes);
  });
}

/// What is missing because it can't be true is measured, so the file has answered nothing.
MeasurementStore::Loaded MeasurementStore::readFile(const PlanRequest& request) {
  Loaded loaded;
  Database& file = database(request.settings->databasePath);
  const MachineKey machine = machines_.key(request.machine);
  const StoredProblem stored = file.loadAll(machine, request.problem.text(), &loaded.isLocked);
  const auto own = stored.find("");
  if (own == stored.end()) return loaded;
  int refused = 0;
  loaded.measurements = fromStored(request.problem, own->second, &refused);
  if (refused > 0) {
    file.warnOfLies();
    return loaded;
  }
  const auto accurate = stored.find(kAccurateFirst);
  if (accurate != stored.end())
    for (const auto& [miniBatch, size] : accurate->second) loaded.accurateFirst.insert(miniBatch);
  for (const auto& [text, sizes] : stored) {
    const auto [asking, limitBytes] = fromLookText(text);
    const auto asked = questionsByText().find(asking);
    if (asked == questionsByText().end()) continue;
    for (const auto& [miniBatch, size] : sizes) {
      const auto undivided = loaded.measurements.find(miniBatch);
      if (undivided == loaded.measurements.end() || undivided->second.kernels.empty()) continue;
      QuestionKey question = asked->second;
      question.miniBatch = miniBatch;
      loaded.answered.push_back(
          {question, {std::min(limitBytes, size.coveredBytes), size.coveredBytes}});
    }
  }
  return loaded;
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
    asked.addAttempt(result, request.limitBytes);
    asked.why = why;
  });
  const std::string& path = request.settings->databasePath;
  if (path.empty()) return;
  const MachineKey machine = machines_.key(request.machine);
  const std::string text = request.problem.text();
  if (!result.measurements.empty())
    database(path).store(machine, text, toStored(request.problem, result.measurements));
  // Replays that are missing are seen in the kernels, by those who want them.
  const bool isWhole = result.untried == Untried::kNone && result.failures == 0;
  if (result.undividedMeasured && isWhole)
    database(path).store(
        machine,
        text + " " + lookText(request.question(), request.limitBytes),
        {{request.problem.batch(), {answeredWithin(result, request.limitBytes), {}}}});
}

bool MeasurementStore::confirm(const PlanRequest& request,
                               PreparedKernels& prepared,
                               const KernelsAtSizes& wanted,
                               Measurements& measurements,
                               Asking asking) {
  auto confirmation = Confirmation::kAsAssumed;
  std::vector<Measurement> larger;
  for (auto place = wanted.rbegin(); place != wanted.rend(); ++place) {
    const int batch = place->first;
    const auto size = measurements.find(batch);
    if (size == measurements.end()) continue;
    const auto kernels = asking == Asking::kAll
                             ? place->second
                             : withoutCovered(place->second, size->second, larger);
    int failures = 0;
    const Calls calls = request.callsAt(batch);
    confirmation = std::max(
        confirmation, ucudnn::confirm(prepared, batch, kernels, calls, size->second, &failures));
    for (const Measurement& m : size->second.kernels)
      if (contains(kernels, m.kernel)) larger.push_back(m);
    if (failures > 0) continue;  // to be asked again
    const std::lock_guard lock(mutex_);
    addConfirmed(known_[keyOf(request)].measurements[batch], kernels, size->second);
  }
  if (confirmation == Confirmation::kLie) database(request.settings->databasePath).warnOfLies();
  return confirmation == Confirmation::kAsAssumed;
}

bool MeasurementStore::ranksAccurateFirst(const PlanRequest& request) const {
  return read(request, [&](const Known* known, const KnownQuestion*) {
    return known != nullptr && known->accurateFirst.count(request.problem.batch()) > 0;
  });
}

void MeasurementStore::addAccurateFirst(const PlanRequest& request) {
  const int miniBatch = request.problem.batch();
  update(request, [&](Known& known, KnownQuestion&) { known.accurateFirst.insert(miniBatch); });
  const std::string& path = request.settings->databasePath;
  if (path.empty()) return;
  const std::string text = request.problem.text() + " " + kAccurateFirst;
  database(path).store(machines_.key(request.machine), text, {{miniBatch, {}}});
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

bool MeasurementStore::confirmAll(const PlanRequest& request,
                                  PreparedKernels& prepared,
                                  Measurements& measurements) {
  return confirm(request, prepared, kernelsOf(measurements), measurements);
}

}  // namespace ucudnn
