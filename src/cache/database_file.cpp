#include "cache/database_file.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace ucudnn {
namespace {

constexpr const char* kTables = R"sql(
CREATE TABLE machine (
  id INTEGER PRIMARY KEY,
  device_name TEXT NOT NULL,
  compute_capability INTEGER NOT NULL,
  multiprocessor_count INTEGER NOT NULL,
  driver_version INTEGER NOT NULL,
  cuda_version INTEGER NOT NULL,
  cudnn_version INTEGER NOT NULL,
  simulated INTEGER NOT NULL CHECK (simulated IN (0, 1)),
  UNIQUE (device_name, compute_capability, multiprocessor_count, driver_version, cuda_version,
          cudnn_version, simulated)
) STRICT;
CREATE TABLE problem (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE size (
  id INTEGER PRIMARY KEY,
  machine_id INTEGER NOT NULL REFERENCES machine (id) ON DELETE CASCADE,
  problem_id INTEGER NOT NULL REFERENCES problem (id) ON DELETE CASCADE,
  batch INTEGER NOT NULL CHECK (batch >= 1),
  covered_bytes INTEGER NOT NULL CHECK (covered_bytes >= 0),
  measured_at INTEGER NOT NULL,
  UNIQUE (machine_id, problem_id, batch)
) STRICT;
CREATE INDEX size_problem ON size (problem_id);
CREATE TABLE measurement (
  size_id INTEGER NOT NULL REFERENCES size (id) ON DELETE CASCADE,
  kernel TEXT NOT NULL,
  time_ms REAL NOT NULL CHECK (time_ms >= 0),
  workspace_bytes INTEGER NOT NULL CHECK (workspace_bytes >= 0),
  deterministic INTEGER NOT NULL CHECK (deterministic IN (0, 1)),
  device_ms REAL NOT NULL CHECK (device_ms >= 0),
  measured_at INTEGER NOT NULL,
  PRIMARY KEY (size_id, kernel)
) WITHOUT ROWID, STRICT;
PRAGMA application_id = 0x7543444E;
PRAGMA user_version = 2;
)sql";

enum class Identity { kOurs, kEmpty };

/// Throws DatabaseRefused for a file that is neither; SqliteError.
Identity identify(SqliteConnection& connection) {
  connection.execute(
      "SAVEPOINT identify");  // One snapshot for all three: others may be making the file.
  const std::int64_t application = connection.integer("PRAGMA application_id");
  const std::int64_t version = connection.integer("PRAGMA user_version");
  const bool hasTables = connection.integer("SELECT count(*) FROM sqlite_master") != 0;
  connection.execute("RELEASE identify");
  if (application == kApplicationId) {
    if (version == kSchemaVersion) return Identity::kOurs;
    throw DatabaseRefused("its schema is version " + std::to_string(version) +
                          ", this build knows version " + std::to_string(kSchemaVersion));
  }
  if (application != 0 || version != 0 || hasTables) {
    throw DatabaseRefused("it is another application's database");
  }
  return Identity::kEmpty;
}

/// Whether the file is a database that is not ours, as far as can be told without locks or
/// journals.
bool looksForeign(const std::string& path) {
  try {
    SqliteConnection connection(path, SqliteConnection::Access::kImmutable);
    identify(connection);
  } catch (const SqliteError&) {
    // Being written by another process, or left half-written by one that died: opened properly,
    // with its locks and its journal, it is either whole or reported again.
  } catch (const DatabaseRefused&) {
    return true;
  }
  return false;
}

/// Refuses what SQLite must not even open for writing, as it would then write another's log into
/// its file.
void refuseWhatIsNotOurs(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;  // Missing; or the opening says why.
  if (!S_ISREG(status.st_mode)) throw DatabaseRefused("it is not a regular file");
  if (status.st_size == 0 || !looksForeign(path)) return;
  // Perhaps it was seen while another process was making it: a page takes far less than this to
  // write.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  SqliteConnection connection(path, SqliteConnection::Access::kImmutable);
  identify(connection);
}

/// Write-ahead logging needs memory shared by all users of the file, so one machine and a
/// filesystem known to be local to it; several machines may share any other.
bool isLocal(const std::string& path) {
  struct statfs filesystem {};
  if (::statfs(path.c_str(), &filesystem) != 0) return false;
  constexpr std::array<unsigned long, 7> kLocal = {// linux/magic.h, and ZFS's own
                                                   0xEF53UL,
                                                   0x58465342UL,
                                                   0x9123683EUL,
                                                   0x01021994UL,
                                                   0x794C7630UL,
                                                   0xF2F52010UL,
                                                   0x2FC12FC1UL};
  const auto type = static_cast<unsigned long>(filesystem.f_type) & 0xFFFFFFFFUL;
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

void chooseJournal(SqliteConnection& connection, bool local) {
  try {
    connection.execute(local ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
    // The file alone then always holds all that was stored, though processes end without closing
    // it.
    connection.execute("PRAGMA wal_autocheckpoint = 1");
  } catch (const SqliteError& error) {
    if (error.code() != SQLITE_BUSY) throw;  // In use: the mode stays what its users have chosen.
  }
}

DatabaseFile openForWriting(const std::string& path, IfMissing ifMissing) {
  using Access = SqliteConnection::Access;
  SqliteConnection connection(
      path, ifMissing == IfMissing::kCreate ? Access::kReadWriteCreate : Access::kReadWrite);
  connection.execute("PRAGMA foreign_keys = ON");
  // A power cut may cost the last measurements, never the file; storing one need not wait for the
  // disk.
  connection.execute("PRAGMA synchronous = NORMAL");
  Identity identity = identify(connection);
  if (connection.readOnly()) {
    if (identity == Identity::kEmpty) throw DatabaseRefused("it is empty and cannot be written");
    return {std::move(connection), false};
  }
  if (identity == Identity::kEmpty) {
    SqliteTransaction transaction(connection);
    identity = identify(connection);  // Another process may have come first.
    if (identity == Identity::kEmpty) connection.execute(kTables);
    transaction.commit();
  }
  chooseJournal(connection, isLocal(path));
  return {std::move(connection), true};
}

bool holdsSomething(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

}  // namespace

DatabaseFile openDatabaseFile(const std::string& path, IfMissing ifMissing) {
  refuseWhatIsNotOurs(path);
  try {
    return openForWriting(path, ifMissing);
  } catch (const SqliteError& error) {
    const bool denied = error.code() == SQLITE_CANTOPEN || error.code() == SQLITE_READONLY ||
                        error.code() == SQLITE_PERM;
    if (!denied || !holdsSomething(path)) throw;
  }
  // In a directory without write permission the files beside a write-ahead log cannot be made.
  SqliteConnection connection(path, SqliteConnection::Access::kImmutable);
  if (identify(connection) == Identity::kEmpty) {
    throw DatabaseRefused("it is empty and cannot be written");
  }
  return {std::move(connection), false};
}

std::int64_t toStoredBytes(std::size_t bytes) noexcept {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(bytes, kMost));
}

std::size_t fromStoredBytes(std::int64_t stored) noexcept {
  return stored == std::numeric_limits<std::int64_t>::max()
             ? std::numeric_limits<std::size_t>::max()
             : static_cast<std::size_t>(stored);
}

SizeWriter::SizeWriter(SqliteConnection& connection)
    : connection_(connection),
      addSize_(connection,
               "INSERT INTO size (machine_id, problem_id, batch, covered_bytes, measured_at) "
               "VALUES (?, ?, ?, ?, ?) ON CONFLICT (machine_id, problem_id, batch) DO UPDATE SET "
               "covered_bytes = max(covered_bytes, excluded.covered_bytes), "
               "measured_at = max(measured_at, excluded.measured_at) RETURNING id"),
      addKernel_(connection,
                 "INSERT INTO measurement (size_id, kernel, time_ms, workspace_bytes, "
                 "deterministic, device_ms, measured_at) VALUES (?, ?, ?, ?, ?, ?, ?) "
                 "ON CONFLICT (size_id, kernel) DO UPDATE SET time_ms = excluded.time_ms, "
                 "workspace_bytes = excluded.workspace_bytes, "
                 "deterministic = excluded.deterministic, device_ms = excluded.device_ms, "
                 "measured_at = excluded.measured_at "
                 "WHERE excluded.measured_at >= measurement.measured_at") {}

std::int64_t SizeWriter::machineId(const MachineKey& machine) {
  // An update that changes nothing, because RETURNING is silent about a row that is left alone.
  SqliteStatement statement(
      connection_,
      "INSERT INTO machine (device_name, compute_capability, multiprocessor_count, driver_version, "
      "cuda_version, cudnn_version, simulated) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
      "SET simulated = excluded.simulated RETURNING id");
  statement.bind(machine.deviceName,
                 std::int64_t{machine.computeCapability},
                 std::int64_t{machine.multiprocessorCount},
                 std::int64_t{machine.driverVersion},
                 std::int64_t{machine.cudaVersion},
                 toStoredBytes(machine.cudnnVersion),
                 std::int64_t{machine.simulated});
  statement.step();
  const std::int64_t id = statement.integer(0);
  statement.run();
  return id;
}

std::int64_t SizeWriter::problemId(const std::string& problem) {
  SqliteStatement statement(connection_,
                            "INSERT INTO problem (text) VALUES (?) ON CONFLICT DO UPDATE SET "
                            "text = excluded.text RETURNING id");
  statement.bind(problem);
  statement.step();
  const std::int64_t id = statement.integer(0);
  statement.run();
  return id;
}

std::int64_t SizeWriter::addSize(std::int64_t machine,
                                 std::int64_t problem,
                                 int batch,
                                 std::size_t coveredBytes,
                                 std::int64_t measuredAt) {
  addSize_.bind(machine, problem, std::int64_t{batch}, toStoredBytes(coveredBytes), measuredAt);
  addSize_.step();
  const std::int64_t id = addSize_.integer(0);
  addSize_.run();
  return id;
}

void SizeWriter::addKernel(std::int64_t size,
                           const StoredMeasurement& kernel,
                           std::int64_t measuredAt) {
  addKernel_
      .bind(size,
            kernel.kernel,
            kernel.timeMs,
            toStoredBytes(kernel.workspaceBytes),
            std::int64_t{kernel.deterministic},
            kernel.deviceMs,
            measuredAt)
      .run();
}

}  // namespace ucudnn
