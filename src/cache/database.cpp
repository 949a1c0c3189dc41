#include "cache/database.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cache/database_file.hpp"
#include "cache/shared_databases.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

/// What one use of a file may take: a thousand times what reading a problem does.
constexpr std::chrono::milliseconds kMostCpuTime{500};
/// A stalled start is worse than measuring again.
constexpr std::chrono::milliseconds kPatience{100};
constexpr double kPatienceShare = 0.01;
/// Nothing is stalled but the end of the process, and what was measured would be lost.
constexpr std::chrono::milliseconds kPatienceAtTheEnd{1000};
/// Of one problem: all sizes of a mini-batch of 4096, with several kernels each.
constexpr std::size_t kMostRows = 1 << 16;
/// Problems that wait to be stored.
constexpr std::size_t kMostPending = 1024;

bool isValid(const StoredMeasurement& measurement) {
  const auto isTime = [](double ms) { return std::isfinite(ms) && ms >= 0; };
  return !measurement.kernel.empty() && measurement.kernel.size() <= kLongestKernel &&
         isTime(measurement.timeMs) && isTime(measurement.deviceMs);
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
  if (!typed || row.integer(kWorkspace) < 0 || row.bytes(kKernel) > kLongestKernel) return false;
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
/// CANTOPEN: an older version of this library has made it a write-ahead log again.
bool isPassing(int code) {
  return code == SQLITE_NOMEM || code == SQLITE_IOERR || code == SQLITE_CANTOPEN ||
         code == SQLITE_PROTOCOL || code == SQLITE_SCHEMA;
}

bool isLocked(int code) {
  return code == SQLITE_BUSY || code == SQLITE_LOCKED;
}

/// What is to be stored.
struct Pending {
  MachineKey machine;
  std::string problem;
  StoredMeasurements measurements;
  std::int64_t measuredAt;
};

}  // namespace

/// Everything below is guarded by SharedDatabases::mutex. Warnings are logged after it is released,
/// so that the two locks are never held together.
class Database::Implementation final : public SharedDatabase {
 public:
  explicit Implementation(std::string path) : path_(std::move(path)), disabled_(path_.empty()) {
    const std::lock_guard<std::mutex> lock(shared().mutex);
    shared().databases.push_back(this);
  }
  ~Implementation() {
    std::vector<std::string> warnings;
    {
      const std::lock_guard<std::mutex> lock(shared().mutex);
      finish(warnings);
      auto& databases = shared().databases;
      databases.erase(std::remove(databases.begin(), databases.end(), this), databases.end());
    }
    for (const std::string& warning : warnings) logWarn("{}", warning);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  std::vector<StoredMeasurements> load(const MachineKey& machine,
                                       const std::vector<std::string>& problems,
                                       bool* isLocked) {
    std::vector<StoredMeasurements> found(problems.size());
    attempt([&] {
      const bool locked = run([&](Open& open) { found = read(open, machine, problems); });
      if (isLocked != nullptr) *isLocked = locked;
      if (!locked && !pending_.empty()) run([this](Open& open) { storePending(open); });
    });
    return found;
  }

  void store(const MachineKey& machine,
             const std::string& problem,
             const StoredMeasurements& measurements) {
    attempt([&] {
      const auto now = static_cast<std::int64_t>(std::time(nullptr));
      pending_.push_back({machine, problem, measurements, now});
      if (pending_.size() > kMostPending) pending_.erase(pending_.begin());
      run([this](Open& open) { storePending(open); });
    });
  }

  void warnOfLies() {
    attempt([this] { warnOnce("not all that it says is true; the rest is found out anew"); });
  }

  void close() noexcept override { open_.reset(); }
  void dropPending() noexcept override { pending_.clear(); }

  /// Stores what has had to wait.
  void finish(std::vector<std::string>& warnings) noexcept override {
    try {
      patience_ = Patience(kPatienceAtTheEnd, 0);
      if (!pending_.empty() && !disabled_ && run([this](Open& open) { storePending(open); }))
        warnOnce("others hold it; the latest measurements are not kept");
      for (std::string& warning : takeWarnings()) warnings.push_back(std::move(warning));
    } catch (const std::bad_alloc&) {
    }
    pending_.clear();
    close();
  }

 private:
  /// The file with the query that each load makes.
  struct Open {
    explicit Open(DatabaseFile opened) : file(std::move(opened)), rows(file.connection, kLoad) {}
    DatabaseFile file;
    SqliteStatement rows;
  };

  static SharedDatabases& shared() { return SharedDatabases::instance(); }

  /// Runs `body` under the lock, unless there is no cache.
  template <typename Body>
  void attempt(Body body) {
    std::vector<std::string> warnings;
    {
      const std::lock_guard<std::mutex> lock(shared().mutex);
      if (disabled_) return;
      body();
      warnings = takeWarnings();
    }
    for (const std::string& warning : warnings) logWarn("{}", warning);
  }

  /// Runs `body` with the open file. Whatever fails is warned of, once, and goes no further. True:
  /// others hold the file.
  template <typename Body>
  bool run(Body body) {
    try {
      if (!open_) open_.emplace(openDatabaseFile(path_, IfMissing::kCreate, limits()));
      open_->file.connection.start();
      body(*open_);
      failuresInARow_ = 0;
    } catch (const SqliteError& error) {
      if (isLocked(error.code())) return true;
      fail(error.code() == SQLITE_INTERRUPT ? "reading it takes too long" : error.what(),
           isPassing(error.code()));
    } catch (const std::bad_alloc& error) {
      fail(error.what(), true);
    } catch (const std::exception& error) {
      fail(error.what(), false);
    }
    return false;
  }

  /// In one transaction: each locks the file anew and looks at its schema.
  std::vector<StoredMeasurements> read(Open& open,
                                       const MachineKey& machine,
                                       const std::vector<std::string>& problems) {
    SqliteTransaction transaction(open.file.connection, SqliteTransaction::Kind::kRead);
    checkSchema(open.file);
    std::vector<StoredMeasurements> found;
    for (const std::string& problem : problems) {
      found.push_back(readProblem(open, machine, problem));
      if (found.front().empty()) break;
    }
    found.resize(problems.size());
    transaction.commit();
    return found;
  }

  StoredMeasurements readProblem(Open& open,
                                 const MachineKey& machine,
                                 const std::string& problem) {
    SqliteStatement& rows = open.rows;
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
    for (std::size_t count = 0; rows.step(); ++count) {
      if (count == kMostRows) throw DatabaseRefused("it holds too many rows of one problem");
      if (readRow(rows, found, batch)) continue;
      distrusted.push_back(batch);
      warnOnce("some values in it are not valid; they are ignored");
    }
    rows.reset();
    for (const int bad : distrusted) found.erase(bad);
    return found;
  }

  void storePending(Open& open) {
    if (open.file.writable) {
      try {
        write(open.file);
        pending_.clear();
        return;
      } catch (const SqliteError& error) {
        // The file may be written but its directory may not, so there is no place for a journal.
        if (error.code() != SQLITE_READONLY && error.code() != SQLITE_CANTOPEN) throw;
        open.file.writable = false;
      }
    }
    pending_.clear();
    warnOnce("it cannot be written; new measurements are not kept");
  }

  void write(DatabaseFile& file) {
    SqliteTransaction transaction(file.connection, SqliteTransaction::Kind::kWrite);
    checkSchema(file);
    {
      SizeWriter writer(file.connection);
      for (const Pending& pending : pending_) {
        const std::int64_t machineId = writer.machineId(pending.machine);
        const std::int64_t problemId = writer.problemId(pending.problem);
        for (const auto& [batch, size] : pending.measurements) {
          const std::int64_t id =
              writer.addSize(machineId, problemId, batch, size.coveredBytes, pending.measuredAt);
          for (const StoredMeasurement& kernel : size.kernels)
            if (isValid(kernel)) writer.addKernel(id, kernel, pending.measuredAt);
        }
      }
    }
    transaction.commit();
  }

  void fail(const std::string& reason, bool passing) {
    // A device that keeps failing is left alone after as many attempts.
    constexpr int kMostFailuresInARow = 3;
    close();
    pending_.clear();
    disabled_ = !passing || ++failuresInARow_ >= kMostFailuresInARow;
    warnOnce(reason + (disabled_ ? "; measurements are not kept" : "; a measurement is not kept"));
  }

  /// A file is warned of once, whatever comes after.
  void warnOnce(std::string text) {
    if (!warned_) warnings_.push_back(std::move(text));
    warned_ = true;
  }

  /// With the file's name.
  std::vector<std::string> takeWarnings() {
    std::vector<std::string> warnings;
    for (const std::string& warning : std::exchange(warnings_, {}))
      warnings.push_back(fmt::format("UCUDNN_DATABASE=\"{}\": {}", path_, warning));
    return warnings;
  }

  SqliteLimits limits() { return {&patience_, kMostCpuTime}; }

  const std::string path_;
  Patience patience_{kPatience, kPatienceShare};
  std::optional<Open> open_;
  std::vector<Pending> pending_;
  bool disabled_;
  int failuresInARow_ = 0;
  bool warned_ = false;
  std::vector<std::string> warnings_;  ///< to be logged when the lock is released
};

Database::Database(std::string path)
    : implementation_(std::make_unique<Implementation>(std::move(path))) {}
Database::~Database() = default;

std::vector<StoredMeasurements> Database::load(const MachineKey& machine,
                                               const std::vector<std::string>& problems,
                                               bool* isLocked) noexcept {
  if (isLocked != nullptr) *isLocked = false;
  try {
    return implementation_->load(machine, problems, isLocked);
  } catch (...) {  // Out of memory while reporting that memory ran out.
    return {};
  }
}

void Database::store(const MachineKey& machine,
                     const std::string& problem,
                     const StoredMeasurements& measurements) noexcept {
  try {
    implementation_->store(machine, problem, measurements);
  } catch (...) {  // As above.
  }
}

void Database::warnOfLies() noexcept {
  try {
    implementation_->warnOfLies();
  } catch (...) {  // As above.
  }
}

}  // namespace ucudnn
