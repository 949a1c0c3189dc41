#include "cache/records.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "cache/database_file.hpp"
#include "support/text.hpp"

namespace ucudnn {
namespace {

bool isTime(std::int64_t seconds) {
  constexpr std::int64_t kEndOfYear9999 = 253402300799;
  return seconds >= 0 && seconds <= kEndOfYear9999;
}

/// A measurement's time is for people only. A row with an impossible one stays, with the epoch.
std::int64_t measuredAt(std::int64_t stored) {
  return isTime(stored) ? stored : 0;
}

std::string readAll(bool withErrors) {
  return std::string(
             "SELECT size.id, device_name, compute_capability, multiprocessor_count, "
             "driver_version, cuda_version, cudnn_version, simulated, problem.text, batch, "
             "covered_bytes, size.measured_at, measurement.kernel, time_ms, workspace_bytes, "
             "deterministic, device_ms, measurement.measured_at, ") +
         (withErrors ? "error.value " : "NULL ") +
         "FROM size JOIN machine ON machine.id = machine_id "
         "JOIN problem ON problem.id = problem_id "
         "LEFT JOIN measurement ON measurement.size_id = size.id " +
         (withErrors ? "LEFT JOIN error ON error.size_id = measurement.size_id "
                       "AND error.kernel = measurement.kernel "
                     : "") +
         "ORDER BY device_name, machine.id, problem.text, batch, measurement.kernel";
}
enum ReadAllColumn {
  kSizeId,
  kDeviceName,
  kComputeCapability,
  kMultiprocessorCount,
  kDriverVersion,
  kCudaVersion,
  kCudnnVersion,
  kSimulated,
  kProblem,
  kBatch,
  kCoveredBytes,
  kSizeMeasuredAt,
  kKernel,
  kTimeMs,
  kWorkspaceBytes,
  kDeterministic,
  kDeviceMs,
  kMeasuredAt,
  kError
};

/// The limits allow some 300 MB of memory: 10000 convolutions as a framework makes them.
void refuseTooMany(SqliteConnection& connection) {
  const struct {
    const char* table;
    std::int64_t most;
  } kBounds[] = {
      {"machine", 10000}, {"problem", 100000}, {"size", 250000}, {"measurement", 1000000}};
  for (const auto& [table, most] : kBounds) {
    const std::string count = std::string("SELECT count(*) FROM (SELECT 1 FROM ") + table +
                              " LIMIT " + std::to_string(most + 1) + ")";
    if (connection.integer(count.c_str()) > most)
      throw std::runtime_error("it holds more than " + std::to_string(most) + " rows of " + table);
  }
}

/// Whether the kernel is one of cuDNN's algorithms as they are, which run any call. Other kernels
/// only run calls that suit them.
bool isAlgorithm(const std::string& kernel) {
  const std::size_t slash = kernel.find('/');
  return slash != std::string::npos && kernel.find('_', slash) == std::string::npos;
}

/// Whether no plan gets better by the other kernel.
bool servesAsWell(const StoredMeasurement& one, const StoredMeasurement& other) {
  const auto isKnown = [](const StoredMeasurement& m) { return m.deviceMs > 0; };
  return isAlgorithm(one.kernel) == isAlgorithm(other.kernel) && isKnown(one) == isKnown(other) &&
         one.timeMs <= other.timeMs && one.deviceMs <= other.deviceMs &&
         one.workspaceBytes <= other.workspaceBytes && one.deterministic >= other.deterministic &&
         one.error <= other.error && (one.error > 0 || other.error == 0);
}

std::string shortText(const SqliteStatement& row, int column, int longest) {
  if (row.bytes(column) > longest)
    throw std::runtime_error("a text in it is longer than " + std::to_string(longest) + " bytes");
  return row.text(column);
}

int smallInteger(const SqliteStatement& row, int column) {
  const std::int64_t value = row.integer(column);
  if (value < 0 || value > std::numeric_limits<int>::max()) {
    throw std::runtime_error("a value in it is out of range: " + std::to_string(value));
  }
  return static_cast<int>(value);
}

std::size_t bytes(const SqliteStatement& row, int column) {
  const std::int64_t value = row.integer(column);
  if (value < 0) throw std::runtime_error("a size in it is negative: " + std::to_string(value));
  return fromStoredBytes(value);
}

SizeRecord readSize(const SqliteStatement& row) {
  SizeRecord record;
  record.machine.deviceName = shortText(row, kDeviceName, kLongestDevice);
  record.machine.computeCapability = smallInteger(row, kComputeCapability);
  record.machine.multiprocessorCount = smallInteger(row, kMultiprocessorCount);
  record.machine.driverVersion = smallInteger(row, kDriverVersion);
  record.machine.cudaVersion = smallInteger(row, kCudaVersion);
  record.machine.cudnnVersion = bytes(row, kCudnnVersion);
  record.machine.simulated = row.integer(kSimulated) != 0;
  record.problem = shortText(row, kProblem, kLongestProblem);
  record.batch = smallInteger(row, kBatch);
  record.coveredBytes = bytes(row, kCoveredBytes);
  record.measuredAt = measuredAt(row.integer(kSizeMeasuredAt));
  return record;
}

KernelRecord readKernel(const SqliteStatement& row) {
  KernelRecord record;
  record.measurement.kernel = shortText(row, kKernel, kLongestKernel);
  record.measurement.timeMs = row.real(kTimeMs);
  record.measurement.workspaceBytes = bytes(row, kWorkspaceBytes);
  record.measurement.deterministic = row.integer(kDeterministic) != 0;
  record.measurement.deviceMs = row.real(kDeviceMs);
  if (!row.has(kError, SQLITE_NULL)) record.measurement.error = row.real(kError);
  record.measuredAt = measuredAt(row.integer(kMeasuredAt));
  return record;
}

bool hasError(const SizeRecord& record) {
  return std::any_of(record.kernels.begin(), record.kernels.end(), [](const KernelRecord& kernel) {
    return kernel.measurement.error > 0;
  });
}

}  // namespace

std::vector<SizeRecord> readRecords(DatabaseFile& file) {
  SqliteConnection& connection = file.connection;
  SqliteTransaction transaction(connection, SqliteTransaction::Kind::kRead);
  checkSchema(file);
  refuseTooMany(connection);
  SqliteStatement rows(connection, readAll(file.hasErrors).c_str());
  std::vector<SizeRecord> records;
  std::int64_t lastId = 0;
  while (rows.step()) {
    if (records.empty() || rows.integer(kSizeId) != lastId) records.push_back(readSize(rows));
    lastId = rows.integer(kSizeId);
    if (!rows.has(kKernel, SQLITE_NULL)) records.back().kernels.push_back(readKernel(rows));
  }
  for (const SizeRecord& record : records) validate(record);
  return records;
}

void addRecords(DatabaseFile& file, const std::vector<SizeRecord>& records) {
  SqliteTransaction transaction(file.connection, SqliteTransaction::Kind::kWrite);
  checkSchema(file);
  {
    SizeWriter writer(file, std::any_of(records.begin(), records.end(), hasError));
    const SizeRecord* last = nullptr;
    std::int64_t machine = 0, problem = 0;
    for (const SizeRecord& record : records) {
      if (last == nullptr || last->machine != record.machine)
        machine = writer.machineId(record.machine);
      if (last == nullptr || last->problem != record.problem)
        problem = writer.problemId(record.problem);
      last = &record;
      const std::int64_t size =
          writer.addSize(machine, problem, record.batch, record.coveredBytes, record.measuredAt);
      for (const KernelRecord& kernel : record.kernels) {
        writer.addKernel(size, kernel.measurement, kernel.measuredAt);
      }
    }
  }
  transaction.commit();
}

void validate(const SizeRecord& record) {
  const auto refuse = [&record](const std::string& what) {
    throw std::runtime_error("problem \"" + excerpt(record.problem) + "\", batch size " +
                             std::to_string(record.batch) + ": " + what);
  };
  const auto checkTime = [&refuse](std::int64_t measuredAt) {
    if (!isTime(measuredAt)) refuse("its time of measurement is missing");
  };
  if (record.problem.empty()) refuse("the problem is empty");
  if (record.batch < 1) refuse("the batch size is below 1");
  checkTime(record.measuredAt);
  for (const KernelRecord& kernel : record.kernels) {
    const std::string& name = kernel.measurement.kernel;
    if (name.empty()) refuse("a kernel has no name");
    checkTime(kernel.measuredAt);
    for (const double time : {kernel.measurement.timeMs, kernel.measurement.deviceMs})
      if (!std::isfinite(time) || time < 0)
        refuse("kernel \"" + excerpt(name) + "\" has no valid time");
    if (!std::isfinite(kernel.measurement.error) || kernel.measurement.error < 0)
      refuse("kernel \"" + excerpt(name) + "\" has no valid error");
  }
}

void keepForPlans(std::vector<SizeRecord>& records) {
  // misc/docs/DATABASE.md has the texts of questions.
  std::set<std::pair<std::string, int>> asked;
  for (const SizeRecord& record : records)
    if (const auto place = record.problem.find(" asked "); place != std::string::npos)
      asked.emplace(record.problem.substr(0, place), record.batch);
  for (SizeRecord& record : records) {
    if (asked.count({record.problem, record.batch}) > 0) continue;
    std::vector<KernelRecord>& all = record.kernels;
    std::vector<KernelRecord> kept;
    for (auto kernel = all.begin(); kernel != all.end(); ++kernel) {
      const auto isBetter = [&](const KernelRecord& other) {
        return &other != &*kernel && servesAsWell(other.measurement, kernel->measurement) &&
               (&other < &*kernel || !servesAsWell(kernel->measurement, other.measurement));
      };
      if (std::none_of(all.begin(), all.end(), isBetter)) kept.push_back(*kernel);
    }
    all = std::move(kept);
  }
}

}  // namespace ucudnn
