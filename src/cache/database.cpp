#include "cache/database.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cache/database_file.hpp"
#include "cache/shared_databases.hpp"
#include "cache/stored_rows.hpp"
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
/// Problems that wait to be stored.
constexpr std::size_t kMostPending = 1024;

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
    const std::lock_guard lock(shared().mutex);
    shared().databases.push_back(this);
  }
  ~Implementation() {
    std::vector<std::string> warnings;
    {
      const std::lock_guard lock(shared().mutex);
      finish(warnings);
      auto& databases = shared().databases;
      databases.erase(std::remove(databases.begin(), databases.end(), this), databases.end());
    }
    for (const std::string& warning : warnings) logWarn("{}", warning);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  StoredProblem load(const MachineKey& machine, const std::string& problem, bool* isLocked) {
    StoredProblem found;
    attempt([&] {
      const bool locked = run([&](Open& open) {
        bool isValid = true;
        found = open.rows.read(machine, problem, &isValid);
        if (!isValid) warnOnce("some values in it are not valid; they are ignored");
      });
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
  struct Open {
    explicit Open(DatabaseFile opened) : file(std::move(opened)), rows(file) {}
    DatabaseFile file;
    StoredRows rows;
  };

  static SharedDatabases& shared() { return SharedDatabases::instance(); }

  /// Runs `body` under the lock, unless there is no cache.
  template <typename Body>
  void attempt(Body body) {
    std::vector<std::string> warnings;
    {
      const std::lock_guard lock(shared().mutex);
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
      const bool withErrors =
          std::any_of(pending_.begin(), pending_.end(), [](const Pending& pending) {
            return hasErrors(pending.measurements);
          });
      SizeWriter writer(file, withErrors);
      for (const Pending& pending : pending_) {
        const std::int64_t machineId = writer.machineId(pending.machine);
        const std::int64_t problemId = writer.problemId(pending.problem);
        for (const auto& [batch, size] : pending.measurements) {
          const std::int64_t id =
              writer.addSize(machineId, problemId, batch, size.coveredBytes, pending.measuredAt);
          for (const StoredMeasurement& kernel : size.kernels)
            if (isPossible(kernel)) writer.addKernel(id, kernel, pending.measuredAt);
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

StoredProblem Database::loadAll(const MachineKey& machine,
                                const std::string& problem,
                                bool* isLocked) noexcept {
  if (isLocked != nullptr) *isLocked = false;
  try {
    return implementation_->load(machine, problem, isLocked);
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
