#include "cache/stored_rows.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace ucudnn {
namespace {

/// Of one problem: all sizes of a mini-batch of 4096, with several kernels each.
constexpr std::size_t kMostRows = 1 << 16;
/// Of a file that is read as a whole, which takes a millisecond or two then: six AlexNets.
constexpr std::int64_t kMostPagesOfWhole = 128;
constexpr std::size_t kMostRowsOfWhole = 1 << 12;

enum Column {
  kBatch,
  kCovered,
  kKernel,
  kTime,
  kWorkspace,
  kDeterministic,
  kDeviceTime,
  kError,
  kProblemId,
  kProblem
};

/// CROSS JOIN keeps this order: by itself SQLite would read all sizes of the machine for a problem.
/// Made when it is needed: handles are used in static destructors too, when a static one may be
/// gone.
std::string ofMachine(bool withErrors) {
  return std::string(
             "SELECT size.batch, size.covered_bytes, measurement.kernel, measurement.time_ms, "
             "measurement.workspace_bytes, measurement.deterministic, measurement.device_ms, ") +
         (withErrors ? "error.value" : "NULL") +
         ", problem.id, problem.text FROM machine CROSS JOIN problem CROSS JOIN size "
         "ON size.machine_id = machine.id AND size.problem_id = problem.id "
         "LEFT JOIN measurement ON measurement.size_id = size.id " +
         (withErrors ? "LEFT JOIN error ON error.size_id = measurement.size_id "
                       "AND error.kernel = measurement.kernel "
                     : "") +
         "WHERE device_name = ? AND compute_capability = ? AND multiprocessor_count = ? "
         "AND driver_version = ? AND cuda_version = ? AND cudnn_version = ? AND simulated = ?";
}

/// Reads one row into `found`. False when a value is not what it should be: the size that it
/// belongs to is then not to be trusted.
bool readRow(const SqliteStatement& row, StoredMeasurements& found, int& batch) {
  batch = 0;
  if (!row.has(kBatch, SQLITE_INTEGER)) return false;
  const std::int64_t storedBatch = row.integer(kBatch);
  if (storedBatch < 1 || storedBatch > std::numeric_limits<int>::max()) return false;
  batch = static_cast<int>(storedBatch);
  if (!row.has(kCovered, SQLITE_INTEGER) || row.integer(kCovered) < 0) return false;
  StoredSize& size = found[batch];
  size.coveredBytes = fromStoredBytes(row.integer(kCovered));
  if (row.has(kKernel, SQLITE_NULL)) return true;  // Tried, and nothing is offered.

  const bool typed = row.has(kKernel, SQLITE_TEXT) && row.has(kTime, SQLITE_FLOAT) &&
                     row.has(kWorkspace, SQLITE_INTEGER) &&
                     row.has(kDeterministic, SQLITE_INTEGER) &&
                     row.has(kDeviceTime, SQLITE_FLOAT) &&
                     (row.has(kError, SQLITE_FLOAT) || row.has(kError, SQLITE_NULL));
  if (!typed || row.integer(kWorkspace) < 0 || row.bytes(kKernel) > kLongestKernel) return false;
  StoredMeasurement measurement{row.text(kKernel),
                                row.real(kTime),
                                static_cast<std::size_t>(row.integer(kWorkspace)),
                                row.integer(kDeterministic) != 0,
                                row.real(kDeviceTime),
                                row.has(kError, SQLITE_NULL) ? 0 : row.real(kError)};
  if (!isPossible(measurement)) return false;
  size.kernels.push_back(std::move(measurement));
  return true;
}

/// All texts that begin with the problem's and a space come before this one.
std::string behind(const std::string& problem) {
  return problem + static_cast<char>(' ' + 1);
}

StoredProblem partOf(const std::map<std::string, StoredMeasurements>& problems,
                     const std::string& problem) {
  StoredProblem part;
  const auto end = problems.lower_bound(behind(problem));
  for (auto each = problems.lower_bound(problem); each != end; ++each) {
    const std::string& text = each->first;
    if (text.size() == problem.size())
      part.emplace("", each->second);
    else if (text[problem.size()] == ' ')
      part.emplace(text.substr(problem.size() + 1), each->second);
  }
  return part;
}

}  // namespace

bool isPossible(const StoredMeasurement& measurement) {
  const auto isNumber = [](double value) { return std::isfinite(value) && value >= 0; };
  return !measurement.kernel.empty() && measurement.kernel.size() <= kLongestKernel &&
         isNumber(measurement.timeMs) && isNumber(measurement.deviceMs) &&
         isNumber(measurement.error);
}

StoredProblem StoredRows::read(const MachineKey& machine,
                               const std::string& problem,
                               bool* isValid) {
  // One transaction: each locks the file anew and looks at its schema.
  std::optional<SqliteTransaction> transaction;
  if (!whole_ || whole_->machine != machine ||
      whole_->header != file_.connection.rawBytes(kHeaderBytes)) {
    whole_.reset();
    transaction.emplace(file_.connection, SqliteTransaction::Kind::kRead);
    checkSchema(file_);
    // Once: a file that changes would be read over and over.
    if (std::exchange(mayReadWhole_, false)) whole_ = readWhole(machine, isValid);
  }
  StoredProblem found = whole_ ? partOf(whole_->problems, problem)
                               : partOf(readProblem(machine, problem, isValid), problem);
  if (transaction) transaction->commit();
  return found;
}

/// Empty: there are more rows than `most`.
std::optional<StoredRows::Problems> StoredRows::collect(SqliteStatement& rows,
                                                        std::size_t most,
                                                        bool* isValid) const {
  Problems problems;
  StoredMeasurements* found = nullptr;
  std::int64_t id = 0;
  std::vector<std::pair<StoredMeasurements*, int>> distrusted;
  int batch = 0;
  for (std::size_t count = 0; rows.step(); ++count) {
    if (count == most) {
      rows.reset();
      return std::nullopt;
    }
    if (found == nullptr || rows.integer(kProblemId) != id) found = &problems[rows.text(kProblem)];
    id = rows.integer(kProblemId);
    if (!readRow(rows, *found, batch)) distrusted.emplace_back(found, batch);
  }
  rows.reset();
  for (const auto& [bad, size] : distrusted) bad->erase(size);
  *isValid = *isValid && distrusted.empty();
  return problems;
}

/// Empty where the file is too large, or damaged: the problem that is asked for may still be there.
std::optional<StoredRows::Whole> StoredRows::readWhole(const MachineKey& machine, bool* isValid) {
  SqliteConnection& connection = file_.connection;
  try {
    if (connection.integer("PRAGMA page_count") > kMostPagesOfWhole) return std::nullopt;
    SqliteStatement rows(connection, ofMachine(file_.hasErrors).c_str());
    bindMachine(rows, machine);
    auto problems = collect(rows, kMostRowsOfWhole, isValid);
    if (!problems) return std::nullopt;
    return Whole{connection.rawBytes(kHeaderBytes), machine, std::move(*problems)};
  } catch (const SqliteError& error) {
    if (error.code() != SQLITE_CORRUPT) throw;
    return std::nullopt;
  }
}

StoredRows::Problems StoredRows::readProblem(const MachineKey& machine,
                                             const std::string& problem,
                                             bool* isValid) {
  if (!ofProblem_ || hadErrors_ != file_.hasErrors) {
    hadErrors_ = file_.hasErrors;
    const std::string text = ofMachine(hadErrors_) + " AND problem.text >= ? AND problem.text < ?";
    ofProblem_.emplace(file_.connection, text.c_str());
  }
  const std::string end = behind(problem);
  bindMachine(*ofProblem_, machine, problem, end);
  auto problems = collect(*ofProblem_, kMostRows, isValid);
  if (!problems) throw DatabaseRefused("it holds too many rows of one problem");
  return std::move(*problems);
}

}  // namespace ucudnn
