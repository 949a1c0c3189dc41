#include "planner/measurement_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "kernels/channels_last.hpp"
#include "planner/measured_kernels.hpp"
#include "planner/measurement_rows.hpp"
#include "support/log.hpp"
#include "support/text.hpp"
#include "support/version_text.hpp"

namespace ucudnn {
namespace {

constexpr std::string_view kWithin = " within=", kFolds = " folds";
// The mini-batches in Known::accurateFirst, stored as if they were a question.
constexpr char kAccurateFirst[] = "accurate";
// Likewise: the kernels at each batch size that checks have found right, right and the same twice,
// wrong, and right but not the same twice.
constexpr char kRight[] = "right", kRepeated[] = "repeated";
constexpr char kWrong[] = "wrong", kUnrepeatable[] = "unrepeatable";

KernelSet kernelsIn(const StoredProblem& rows, const char* text, const Problem& problem) {
  KernelSet kernels;
  const auto found = rows.find(text);
  if (found == rows.end()) return kernels;
  for (const auto& [batch, size] : found->second)
    for (const StoredMeasurement& row : size.kernels)
      if (const auto offer = parseKernel(problem, row.kernel))
        kernels.insert({batch, offer->kernel});
  return kernels;
}

/// Whether the question may be about folded columns too, which older versions don't have. Depends
/// on its values alone: all that use a file agree.
bool asksForFolds(const Problem& problem, Kernels kernels) {
  return kernels != Kernels::kLegacy && ChannelsLast::mayFold(problem);
}

/// The text under which a request's question is stored.
std::string questionText(const PlanRequest& request) {
  const QuestionKey question = request.question();
  const char* const folds = asksForFolds(request.problem, question.kernels) ? kFolds.data() : "";
  return fmt::format("{}{}{}{}", toText(question), folds, kWithin, request.limitBytes);
}

/// Takes the mark off a question's text. False: it does not have it.
bool takeFolds(std::string& text) {
  const auto place = text.find(kFolds);
  if (place == std::string::npos) return false;
  text.erase(place, kFolds.size());
  return true;
}

/// The question's text and the limit. Old rows have no limit: it is taken to be all that they
/// cover.
std::pair<std::string, std::size_t> fromQuestionText(const std::string& text) {
  std::size_t limitBytes = std::numeric_limits<std::size_t>::max();
  const auto place = text.find(kWithin);
  if (place == std::string::npos) return {text, limitBytes};
  const char* const number = text.data() + place + kWithin.size();
  std::from_chars(number, text.data() + text.size(), limitBytes);
  return {text.substr(0, place), limitBytes};
}

/// Questions of any mini-batch by their texts. Never destroyed: static destructors use handles.
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

Database& MeasurementFiles::database(const PlanRequest& request) {
  const std::string& path = request.settings->databasePath;
  const bool isKept = namesFolder(path);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Database>& database = databases_[{path, isKept ? request.machine : 0}];
  if (!database)
    database = isKept ? std::make_unique<Database>(
                            fileOfMachine(path, machines_.key(request.machine)), DatabaseUse::kKept)
                      : std::make_unique<Database>(path);
  return *database;
}

StoredKnowledge MeasurementFiles::read(const PlanRequest& request) {
  StoredKnowledge stored;
  // If the setting names a file, only that is read. Measurements of this machine replace shipped
  // ones.
  const bool isKept = namesFolder(request.settings->databasePath);
  if (isKept) addRows(request, shipped_, stored);
  addRows(request, database(request), stored);
  if (stored.measurements.empty() && !stored.isLocked)
    stored.elsewhere = elsewhere(request, isKept ? shipped_ : database(request));
  return stored;
}

Measurements MeasurementFiles::elsewhere(const PlanRequest& request, Database& file) {
  MachineKey other;
  const StoredProblem rows =
      file.loadElsewhere(machines_.key(request.machine), request.problem.text(), other);
  const auto own = rows.find("");
  if (own == rows.end()) return {};
  {
    const std::lock_guard lock(mutex_);
    if (!told_.insert({&file, request.machine}).second)
      return fromStored(request.problem, own->second);
  }
  logInfo(
      "the database has no measurements of this machine: those of {}, CUDA {}, cuDNN {} say which "
      "kernels are timed first",
      excerpt(other.deviceName),
      cudaVersionText(other.cudaVersion),
      cudnnVersionText(other.cudnnVersion));
  return fromStored(request.problem, own->second);
}

/// Rows that can't be true are left out, and their kernels measured. Such a file answers no
/// question.
void MeasurementFiles::addRows(const PlanRequest& request,
                               Database& file,
                               StoredKnowledge& stored) const {
  const MachineKey machine = machines_.key(request.machine);
  const StoredProblem rows = file.loadAll(machine, request.problem.text(), &stored.isLocked);
  const auto checked = [&](const char* text) { return kernelsIn(rows, text, request.problem); };
  stored.right.merge(checked(kRight));
  stored.repeated.merge(checked(kRepeated));
  for (const auto& [batch, kernel] : checked(kWrong)) stored.wrong.insert(kernel);
  for (const auto& [batch, kernel] : checked(kUnrepeatable)) stored.unrepeatable.insert(kernel);
  const auto own = rows.find("");
  if (own == rows.end()) return;
  int refused = 0;
  for (const auto& [batch, size] : fromStored(request.problem, own->second, &refused))
    addMeasurements(stored.measurements[batch], size);
  if (refused > 0) return file.warnOfLies();
  const auto accurate = rows.find(kAccurateFirst);
  if (accurate != rows.end())
    for (const auto& [miniBatch, size] : accurate->second) stored.accurateFirst.insert(miniBatch);
  for (const auto& [text, sizes] : rows) {
    auto [asking, limitBytes] = fromQuestionText(text);
    const bool hasFolds = takeFolds(asking);
    const auto asked = questionsByText().find(asking);
    if (asked == questionsByText().end() ||
        asksForFolds(request.problem, asked->second.kernels) != hasFolds)
      continue;
    for (const auto& [miniBatch, size] : sizes) {
      const auto undivided = stored.measurements.find(miniBatch);
      if (undivided == stored.measurements.end() || undivided->second.kernels.empty()) continue;
      QuestionKey question = asked->second;
      question.miniBatch = miniBatch;
      stored.answered.push_back(
          {question, {std::min(limitBytes, size.coveredBytes), size.coveredBytes}});
    }
  }
}

void MeasurementFiles::add(const PlanRequest& request, const BenchmarkResult& result) {
  if (request.settings->databasePath.empty()) return;
  Database& file = database(request);
  const MachineKey machine = machines_.key(request.machine);
  const std::string text = request.problem.text();
  if (!result.measurements.empty())
    file.store(machine, text, toStored(request.problem, result.measurements));
  // Requests that want replayed times recognize kernels without them.
  const bool isWhole = result.untried == Untried::kNone && result.failures == 0;
  if (result.undividedMeasured && isWhole)
    file.store(machine,
               text + " " + questionText(request),
               {{request.problem.batch(), {answeredWithin(result, request.limitBytes), {}}}});
}

void MeasurementFiles::addAccurateFirst(const PlanRequest& request) {
  if (request.settings->databasePath.empty()) return;
  const std::string text = request.problem.text() + " " + kAccurateFirst;
  database(request).store(machines_.key(request.machine), text, {{request.problem.batch(), {}}});
}

void MeasurementFiles::addRight(const PlanRequest& request, const KernelSet& kernels) {
  addChecked(request, kRight, kernels);
}

void MeasurementFiles::addRepeated(const PlanRequest& request, const KernelSet& kernels) {
  addChecked(request, kRepeated, kernels);
}

void MeasurementFiles::addWrong(const PlanRequest& request, int batch, Kernel kernel) {
  addChecked(request, kWrong, {{batch, kernel}});
}

void MeasurementFiles::addUnrepeatable(const PlanRequest& request, int batch, Kernel kernel) {
  addChecked(request, kUnrepeatable, {{batch, kernel}});
}

/// Stores the kernels and nothing else of their checks.
void MeasurementFiles::addChecked(const PlanRequest& request,
                                  const char* text,
                                  const KernelSet& kernels) {
  if (request.settings->databasePath.empty()) return;
  StoredMeasurements rows;
  for (const auto& [batch, kernel] : kernels)
    rows[batch].kernels.push_back({toText(request.problem.operation, kernel), 0, 0, true, 0, 0});
  database(request).store(
      machines_.key(request.machine), request.problem.text() + " " + text, rows);
}

void MeasurementFiles::warnOfLies(const PlanRequest& request) {
  database(request).warnOfLies();
}

}  // namespace ucudnn
