#include "cache/database.hpp"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/database_file.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

/// What the databases of a process share. `mutex` guards everything in every Database of the
/// process, and is held across fork(): SQLite is then idle in all threads, and the child inherits
/// none of its locks. Connections are closed before a fork, because SQLite's record of the locks
/// that a process holds on a file would be wrong in the child; either side opens again when it
/// needs to.
struct Shared {
  std::mutex mutex;
  std::vector<std::optional<DatabaseFile>*> files;

  /// REQUIRES: the mutex is held.
  void closeFiles() noexcept {
    for (auto* file : files) file->reset();
  }
};

/// Never destroyed: a framework may destroy handles, or fork, in its static destructors.
Shared& shared() {
  static Shared* const instance = [] {
    auto* const made = new Shared;
    ::pthread_atfork(
        [] {
          shared().mutex.lock();
          shared().closeFiles();
        },
        [] { shared().mutex.unlock(); },
        [] { shared().mutex.unlock(); });
    std::atexit([] {
      const std::lock_guard<std::mutex> lock(shared().mutex);
      shared().closeFiles();
    });
    return made;
  }();
  return *instance;
}

bool isValid(const StoredMeasurement& measurement) {
  const auto isTime = [](double ms) { return std::isfinite(ms) && ms >= 0; };
  return !measurement.kernel.empty() && isTime(measurement.timeMs) && isTime(measurement.deviceMs);
}

/// Reads one row of kLoad into `found`. False when a value is not what it should be: the size that
/// it belongs to is then not to be trusted.
bool readRow(const SqliteStatement& row, StoredMeasurements& found, int& batch) {
  enum { kBatch, kCovered, kKernel, kTime, kWorkspace, kDeterministic, kDeviceTime };
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
                     row.has(kDeterministic, SQLITE_INTEGER) && row.has(kDeviceTime, SQLITE_FLOAT);
  if (!typed || row.integer(kWorkspace) < 0) return false;
  StoredMeasurement measurement{row.text(kKernel),
                                row.real(kTime),
                                static_cast<std::size_t>(row.integer(kWorkspace)),
                                row.integer(kDeterministic) != 0,
                                row.real(kDeviceTime)};
  if (!isValid(measurement)) return false;
  size.kernels.push_back(std::move(measurement));
  return true;
}

constexpr const char* kLoad =
    "SELECT size.batch, size.covered_bytes, measurement.kernel, measurement.time_ms, "
    "measurement.workspace_bytes, measurement.deterministic, measurement.device_ms "
    "FROM machine JOIN problem JOIN size ON size.machine_id = machine.id AND size.problem_id = "
    "problem.id LEFT JOIN measurement ON measurement.size_id = size.id "
    "WHERE problem.text = ? AND device_name = ? AND compute_capability = ? "
    "AND multiprocessor_count = ? AND driver_version = ? AND cuda_version = ? "
    "AND cudnn_version = ? AND simulated = ?";

/// Another attempt may succeed after an error like these; after all others it would repeat them.
bool isPassing(int code) {
  return code == SQLITE_NOMEM || code == SQLITE_IOERR || code == SQLITE_INTERRUPT ||
         code == SQLITE_PROTOCOL || code == SQLITE_SCHEMA;
}

}  // namespace

/// Everything below is guarded by Shared::mutex. Warnings are logged after it is released, so that
/// the two locks are never held together.
class Database::Implementation {
 public:
  explicit Implementation(std::string path) : path_(std::move(path)), disabled_(path_.empty()) {
    const std::lock_guard<std::mutex> lock(shared().mutex);
    shared().files.push_back(&file_);
  }
  ~Implementation() {
    const std::lock_guard<std::mutex> lock(shared().mutex);
    auto& files = shared().files;
    files.erase(std::remove(files.begin(), files.end(), &file_), files.end());
    file_.reset();
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  /// Runs `body` with the open file. Whatever fails is warned of, once, and goes no further.
  template <typename Body>
  void attempt(Body body) {
    std::vector<std::string> warnings;
    {
      const std::lock_guard<std::mutex> lock(shared().mutex);
      if (disabled_) return;
      try {
        if (!file_) file_.emplace(openDatabaseFile(path_, IfMissing::kCreate));
        body(*file_);
        failuresInARow_ = 0;
      } catch (const SqliteError& error) {
        fail(error.what(), isPassing(error.code()));
      } catch (const std::bad_alloc& error) {
        fail(error.what(), true);
      } catch (const std::exception& error) {
        fail(error.what(), false);
      }
      warnings.swap(warnings_);
    }
    for (const std::string& warning : warnings)
      logWarn("UCUDNN_DATABASE=\"{}\": {}", path_, warning);
  }

  StoredMeasurements load(DatabaseFile& file,
                          const MachineKey& machine,
                          const std::string& problem) {
    SqliteStatement rows(file.connection, kLoad);
    rows.bind(problem,
              machine.deviceName,
              std::int64_t{machine.computeCapability},
              std::int64_t{machine.multiprocessorCount},
              std::int64_t{machine.driverVersion},
              std::int64_t{machine.cudaVersion},
              toStoredBytes(machine.cudnnVersion),
              std::int64_t{machine.simulated});
    StoredMeasurements found;
    std::vector<int> distrusted;
    int batch = 0;
    while (rows.step()) {
      if (readRow(rows, found, batch)) continue;
      distrusted.push_back(batch);
      warnOnce(warnedOfRows_, "some values in it are not valid; they are ignored");
    }
    for (const int bad : distrusted) found.erase(bad);
    return found;
  }

  void store(DatabaseFile& file,
             const MachineKey& machine,
             const std::string& problem,
             const StoredMeasurements& measurements) {
    if (file.writable) {
      try {
        write(file.connection, machine, problem, measurements);
        return;
      } catch (const SqliteError& error) {
        // The file may be written but its directory may not, so there is no place for a journal.
        if (error.code() != SQLITE_READONLY && error.code() != SQLITE_CANTOPEN) throw;
        file.writable = false;
      }
    }
    warnOnce(warnedOfReadOnly_, "it cannot be written; new measurements are not kept");
  }

 private:
  static void write(SqliteConnection& connection,
                    const MachineKey& machine,
                    const std::string& problem,
                    const StoredMeasurements& measurements) {
    const auto now = static_cast<std::int64_t>(std::time(nullptr));
    SqliteTransaction transaction(connection);
    {
      SizeWriter writer(connection);
      const std::int64_t machineId = writer.machineId(machine);
      const std::int64_t problemId = writer.problemId(problem);
      for (const auto& [batch, size] : measurements) {
        const std::int64_t id = writer.addSize(machineId, problemId, batch, size.coveredBytes, now);
        for (const StoredMeasurement& kernel : size.kernels) {
          if (isValid(kernel)) writer.addKernel(id, kernel, now);
        }
      }
    }
    transaction.commit();
  }

  void fail(const std::string& reason, bool passing) {
    // A device that keeps failing is left alone after as many attempts.
    constexpr int kMostFailuresInARow = 3;
    file_.reset();
    disabled_ = !passing || ++failuresInARow_ >= kMostFailuresInARow;
    warnOnce(warnedOfFailure_,
             reason + (disabled_ ? "; measurements are not kept" : "; a measurement is not kept"));
  }

  void warnOnce(bool& warned, std::string text) {
    if (!warned) warnings_.push_back(std::move(text));
    warned = true;
  }

  const std::string path_;
  std::optional<DatabaseFile> file_;
  bool disabled_;
  int failuresInARow_ = 0;
  bool warnedOfFailure_ = false;
  bool warnedOfReadOnly_ = false;
  bool warnedOfRows_ = false;
  std::vector<std::string> warnings_;  ///< to be logged when the lock is released
};

Database::Database(std::string path)
    : implementation_(std::make_unique<Implementation>(std::move(path))) {}
Database::~Database() = default;

StoredMeasurements Database::load(const MachineKey& machine, const std::string& problem) noexcept {
  StoredMeasurements found;
  try {
    implementation_->attempt(
        [&](DatabaseFile& file) { found = implementation_->load(file, machine, problem); });
  } catch (...) {  // Out of memory while reporting that memory ran out.
  }
  return found;
}

void Database::store(const MachineKey& machine,
                     const std::string& problem,
                     const StoredMeasurements& measurements) noexcept {
  try {
    implementation_->attempt(
        [&](DatabaseFile& file) { implementation_->store(file, machine, problem, measurements); });
  } catch (...) {  // As above.
  }
}

}  // namespace ucudnn
