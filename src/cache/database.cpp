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
#include "cache/kept_files.hpp"
#include "cache/kept_rows.hpp"
#include "cache/shared_databases.hpp"
#include "cache/stored_rows.hpp"

namespace ucudnn {
namespace {

/// CPU time of one use of a file: a thousand times what reading a problem takes.
constexpr std::chrono::milliseconds kMostCpuTime{500};
/// Short, because a stalled start is worse than measuring again.
constexpr std::chrono::milliseconds kPatience{100};
constexpr double kPatienceShare = 0.01;
/// Longer, because only the end of the process waits, and measurements would be lost.
constexpr std::chrono::milliseconds kPatienceAtTheEnd{1000};
/// Problems that may wait to be stored.
constexpr std::size_t kMostPending = 1024;

/// Whether another attempt may succeed after the error. After all other errors it would fail again.
/// CANTOPEN: an older version of this library has made the file a write-ahead log again.
bool isPassing(int code) {
  return code == SQLITE_NOMEM || code == SQLITE_IOERR || code == SQLITE_CANTOPEN ||
         code == SQLITE_PROTOCOL || code == SQLITE_SCHEMA;
}

bool isLocked(int code) {
  return code == SQLITE_BUSY || code == SQLITE_LOCKED;
}

/// A problem's measurements that wait to be stored.
struct Pending {
  MachineKey machine;
  std::string problem;
  StoredMeasurements measurements;
  std::int64_t measuredAt;
};

}  // namespace

/// SharedDatabases::mutex guards everything below. Warnings are logged after it is released, so
/// that the two locks are never held together.
class Database::Implementation final : public SharedDatabase {
 public:
  Implementation(std::string path, DatabaseUse use, std::size_t mostBytes)
      : path_(std::move(path)), use_(use), mostBytes_(mostBytes), disabled_(path_.empty()) {
    const std::lock_guard lock(shared().mutex);
    shared().databases.push_back(this);
  }
  ~Implementation() {
    LateLines lines;
    {
      const std::lock_guard lock(shared().mutex);
      finish(lines);
      auto& databases = shared().databases;
      databases.erase(std::remove(databases.begin(), databases.end(), this), databases.end());
    }
    logLines(lines);
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
        const std::int64_t now = std::time(nullptr);
        if (use_ == DatabaseUse::kKept && !found.empty() && open.rows.oldest() < now - kUseSeconds)
          used_.push_back(problem);
      });
      if (isLocked != nullptr) *isLocked = locked;
      if (!locked && !pending_.empty()) run([this](Open& open) { storePending(open); });
    });
    return found;
  }

  StoredProblem loadElsewhere(const MachineKey& machine,
                              const std::string& problem,
                              MachineKey& other) {
    StoredProblem found;
    attempt([&] {
      run([&](Open& open) {
        bool isValid = true;
        const auto like = open.rows.machineLike(machine);
        if (!like) return;
        found = open.rows.read(*like, problem, &isValid);
        other = *like;
      });
    });
    return found;
  }

  void store(const MachineKey& machine,
             const std::string& problem,
             const StoredMeasurements& measurements) {
    attempt([&] {
      if (use_ == DatabaseUse::kShipped) return;
      const std::int64_t now = std::time(nullptr);
      pending_.push_back({machine, problem, measurements, now});
      if (pending_.size() > kMostPending) pending_.erase(pending_.begin());
      run([this](Open& open) { storePending(open); });
    });
  }

  void warnOfLies() {
    attempt([this] { warnOnce("cuDNN contradicts some of its rows; those are measured again"); });
  }

  void close() noexcept override { open_.reset(); }
  void dropPending() noexcept override {
    pending_.clear();
    used_.clear();
  }

  /// Stores the pending measurements.
  void finish(LateLines& lines) noexcept override {
    try {
      if (!used_.empty() && !disabled_)
        run([this](Open& open) {
          if (open.file.writable) dateRows(open.file, used_, std::time(nullptr));
        });
      patience_ = Patience(kPatienceAtTheEnd, 0);
      if (!pending_.empty() && !disabled_ && run([this](Open& open) { storePending(open); }))
        warnOnce("another process keeps it locked; the latest measurements are not kept");
      // Bounded here, because it takes 0.1 s and no call waits.
      if (hasWritten_ && use_ == DatabaseUse::kKept && !disabled_)
        run([this](Open& open) { boundRows(open.file, mostBytes_); });
      takeLines(lines);
    } catch (const std::bad_alloc&) {
    }
    dropPending();
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
    LateLines lines;
    {
      const std::lock_guard lock(shared().mutex);
      if (disabled_) return;
      body();
      takeLines(lines);
    }
    logLines(lines);
  }

  /// Runs `body` with the open file. A failure is logged as a warning, once, and goes no further.
  /// Returns true if others hold the file.
  template <typename Body>
  bool run(Body body) {
    try {
      if (!open_) open_.emplace(openFile());
      open_->file.connection.start();
      body(*open_);
      failuresInARow_ = 0;
    } catch (const SqliteError& error) {
      if (isLocked(error.code())) return true;
      const bool isDamaged = error.code() == SQLITE_CORRUPT || error.code() == SQLITE_NOTADB;
      if (isDamaged && use_ == DatabaseUse::kKept && beginAnew()) return false;
      fail(error.code() == SQLITE_INTERRUPT ? "reading it takes too long" : error.what(),
           isPassing(error.code()));
    } catch (const std::bad_alloc& error) {
      fail(error.what(), true);
    } catch (const std::exception& error) {
      fail(error.what(), false);
    }
    return false;
  }

  DatabaseFile openFile() {
    if (use_ == DatabaseUse::kNamed) return openDatabaseFile(path_, IfMissing::kCreate, limits());
    if (use_ == DatabaseUse::kShipped) return openShippedFile(path_, limits());
    const std::string reason = whyNotKept(path_);
    if (!reason.empty()) throw DatabaseRefused(reason);
    DatabaseFile file = openDatabaseFile(path_, IfMissing::kCreate, limits());
    // Doesn't wait for the disk: a file that a power cut has damaged begins anew.
    if (file.writable) file.connection.execute("PRAGMA synchronous = OFF");
    noteUse(path_);
    return file;
  }

  /// Only once: a file that is damaged again is left alone.
  bool beginAnew() {
    if (std::exchange(hasBegunAnew_, true)) return false;
    close();
    pending_.clear();
    try {
      resetDatabaseFile(path_, limits());
    } catch (const SqliteError&) {
      return false;
    }
    warnOnce("it was damaged, and begins anew");
    return true;
  }

  void storePending(Open& open) {
    if (open.file.writable) {
      try {
        write(open.file);
        pending_.clear();
        if (use_ == DatabaseUse::kKept) boundRows(open.file, mostBytes_ + mostBytes_ / 4);
        hasWritten_ = true;
        return;
      } catch (const SqliteError& error) {
        // The file may be written but not its directory, so there is no place for a journal.
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
    // A device that keeps failing is left alone after this many attempts.
    constexpr int kMostFailuresInARow = 3;
    close();
    pending_.clear();
    disabled_ = !passing || ++failuresInARow_ >= kMostFailuresInARow;
    warnOnce(reason + (disabled_ ? "; measurements are not kept" : "; a measurement is not kept"));
  }

  /// Warns of a file once, whatever comes after.
  void warnOnce(std::string text) {
    if (!warned_) warnings_.push_back(std::move(text));
    warned_ = true;
  }

  /// Moves the warnings to `lines`, with the file's name.
  void takeLines(LateLines& lines) {
    const bool isNamed = use_ == DatabaseUse::kNamed;
    for (const std::string& warning : std::exchange(warnings_, {}))
      lines.emplace_back(
          isNamed ? LogLevel::kWarn : LogLevel::kInfo,
          fmt::format("{}\"{}\": {}", isNamed ? "UCUDNN_DATABASE=" : "database ", path_, warning));
  }

  SqliteLimits limits() { return {&patience_, kMostCpuTime}; }

  const std::string path_;
  const DatabaseUse use_;
  const std::size_t mostBytes_;
  Patience patience_{kPatience, kPatienceShare};
  std::optional<Open> open_;
  std::vector<Pending> pending_;
  std::vector<std::string> used_;  ///< problems that were read, to be dated as used
  bool hasWritten_ = false;
  bool hasBegunAnew_ = false;
  bool disabled_;
  int failuresInARow_ = 0;
  bool warned_ = false;
  std::vector<std::string> warnings_;  ///< to be logged when the lock is released
};

Database::Database(std::string path, DatabaseUse use, std::size_t mostBytes)
    : implementation_(std::make_unique<Implementation>(std::move(path), use, mostBytes)) {}
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

StoredProblem Database::loadElsewhere(const MachineKey& machine,
                                      const std::string& problem,
                                      MachineKey& other) noexcept {
  try {
    return implementation_->loadElsewhere(machine, problem, other);
  } catch (...) {  // As above.
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
