#include "cache/database_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ucudnn {
namespace {

/// A table or an index, with the text that SQLite keeps of it.
struct SchemaEntry {
  const char* type;
  const char* name;
  const char* table;
  const char* sql;  ///< null: made for a UNIQUE or PRIMARY KEY
};

constexpr SchemaEntry kSchema[] = {
    {"table", "machine", "machine", R"sql(CREATE TABLE machine (
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
) STRICT)sql"},
    {"index", "sqlite_autoindex_machine_1", "machine", nullptr},
    {"table", "problem", "problem", R"sql(CREATE TABLE problem (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT)sql"},
    {"index", "sqlite_autoindex_problem_1", "problem", nullptr},
    {"table", "size", "size", R"sql(CREATE TABLE size (
  id INTEGER PRIMARY KEY,
  machine_id INTEGER NOT NULL REFERENCES machine (id) ON DELETE CASCADE,
  problem_id INTEGER NOT NULL REFERENCES problem (id) ON DELETE CASCADE,
  batch INTEGER NOT NULL CHECK (batch >= 1),
  covered_bytes INTEGER NOT NULL CHECK (covered_bytes >= 0),
  measured_at INTEGER NOT NULL,
  UNIQUE (machine_id, problem_id, batch)
) STRICT)sql"},
    {"index", "sqlite_autoindex_size_1", "size", nullptr},
    {"index", "size_problem", "size", "CREATE INDEX size_problem ON size (problem_id)"},
    {"table", "measurement", "measurement", R"sql(CREATE TABLE measurement (
  size_id INTEGER NOT NULL REFERENCES size (id) ON DELETE CASCADE,
  kernel TEXT NOT NULL,
  time_ms REAL NOT NULL CHECK (time_ms >= 0),
  workspace_bytes INTEGER NOT NULL CHECK (workspace_bytes >= 0),
  deterministic INTEGER NOT NULL CHECK (deterministic IN (0, 1)),
  device_ms REAL NOT NULL CHECK (device_ms >= 0),
  measured_at INTEGER NOT NULL,
  PRIMARY KEY (size_id, kernel)
) WITHOUT ROWID, STRICT)sql"},
};

// Version 3.
constexpr SchemaEntry kErrors = {"table", "error", "error", R"sql(CREATE TABLE error (
  size_id INTEGER NOT NULL,
  kernel TEXT NOT NULL,
  value REAL NOT NULL CHECK (value > 0),
  measured_at INTEGER NOT NULL,
  PRIMARY KEY (size_id, kernel),
  FOREIGN KEY (size_id, kernel) REFERENCES measurement (size_id, kernel) ON DELETE CASCADE
) WITHOUT ROWID, STRICT)sql"};

void createSchema(SqliteConnection& connection) {
  for (const SchemaEntry& entry : kSchema)
    if (entry.sql != nullptr) connection.execute(entry.sql);
  connection.execute("PRAGMA application_id = 0x7543444E");
  connection.execute("PRAGMA user_version = 2");
}

bool isEntry(const SqliteStatement& row, const SchemaEntry& entry) {
  const auto is = [&row](int column, const char* text) {
    return text == nullptr ? row.has(column, SQLITE_NULL)
                           : row.has(column, SQLITE_TEXT) && row.text(column) == text;
  };
  return is(0, entry.type) && is(1, entry.name) && is(2, entry.table) && is(3, entry.sql);
}

bool isOurs(const SqliteStatement& row, bool hasErrors) {
  return (hasErrors && isEntry(row, kErrors)) ||
         std::any_of(std::begin(kSchema), std::end(kSchema), [&](const SchemaEntry& entry) {
           return isEntry(row, entry);
         });
}

/// Returns whether the schema has the table of errors.
bool checkWholeSchema(SqliteConnection& connection) {
  const bool hasErrors = connection.integer("PRAGMA user_version") == kSchemaVersionWithErrors;
  // Names are unique in a schema that SQLite accepts. So if as many entries are each one of ours,
  // the schema is ours.
  SqliteStatement rows(connection, "SELECT type, name, tbl_name, sql FROM sqlite_schema");
  std::size_t found = 0;
  while (rows.step()) {
    if (!isOurs(rows, hasErrors))
      throw DatabaseRefused("its schema has something that is not ours");
    ++found;
  }
  if (found != std::size(kSchema) + (hasErrors ? 1 : 0))
    throw DatabaseRefused("its schema lacks a table or an index");
  return hasErrors;
}

// https://www.sqlite.org/fileformat2.html, "The Database Header", and the first page's own.
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kReadVersion = 19, kUserVersion = 60, kApplication = 68, kFirstPage = 100;
constexpr char kWriteAheadLog = 2;

std::int64_t number(const std::string& header, std::size_t offset, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value = value << 8 | static_cast<unsigned char>(header[offset + static_cast<std::size_t>(i)]);
  return bytes == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
}

enum class Identity { kOurs, kOursWithLog, kEmpty };

/// Reads the first bytes only: once SQLite reads a database, it rolls back its journal or writes
/// its log into it. Throws DatabaseRefused for a file that is not ours; SqliteError, also if it is
/// no database.
Identity identify(SqliteConnection& connection) {
  const std::string header = connection.rawBytes(kHeaderBytes);
  if (header.empty()) return Identity::kEmpty;
  if (header.size() < kHeaderBytes || header.compare(0, kMagic.size(), kMagic) != 0)
    throw SqliteError(SQLITE_NOTADB, "file is not a database");
  const bool hasLog = header[kReadVersion] == kWriteAheadLog;
  const std::int64_t version = number(header, kUserVersion, 4);
  const std::int64_t application = number(header, kApplication, 4);
  if (application == kApplicationId) {
    if (version == kSchemaVersion || version == kSchemaVersionWithErrors)
      return hasLog ? Identity::kOursWithLog : Identity::kOurs;
    throw DatabaseRefused("its schema is version " + std::to_string(version) +
                          ", this build knows versions " + std::to_string(kSchemaVersion) +
                          " and " + std::to_string(kSchemaVersionWithErrors));
  }
  const std::int64_t entries = number(header, kFirstPage + 3, 2);
  if (application != 0 || version != 0 || hasLog || entries != 0)
    throw DatabaseRefused("it is another application's database");
  return Identity::kEmpty;
}

/// Needs the file for itself for a moment. REQUIRES: the file is ours. Throws SqliteError.
void replaceLog(SqliteConnection& connection, const std::string& path) {
  connection.execute("PRAGMA locking_mode = EXCLUSIVE");
  connection.execute("PRAGMA journal_mode = DELETE");
  // Nobody else has the file open as a log, so the shared memory beside it is of no use any more.
  ::unlink((path + "-shm").c_str());
  connection.execute("PRAGMA locking_mode = NORMAL");
  connection.integer("SELECT count(*) FROM sqlite_schema");  // gives the lock back
}

DatabaseFile openForWriting(const std::string& path,
                            IfMissing ifMissing,
                            const SqliteLimits& limits) {
  using Access = SqliteConnection::Access;
  SqliteConnection connection(
      path,
      ifMissing == IfMissing::kCreate ? Access::kReadWriteCreate : Access::kReadWrite,
      limits);
  const Identity identity = identify(connection);
  if (connection.readOnly()) {
    if (identity == Identity::kEmpty) throw DatabaseRefused("it is empty and cannot be written");
    return {std::move(connection), false};
  }
  if (identity == Identity::kOursWithLog) replaceLog(connection, path);
  // A power cut may cost the last measurements, never the file.
  connection.execute("PRAGMA synchronous = NORMAL");
  if (identity == Identity::kEmpty) {
    SqliteTransaction transaction(connection, SqliteTransaction::Kind::kWrite);
    // Another process may have come first.
    if (identify(connection) == Identity::kEmpty) createSchema(connection);
    transaction.commit();
  }
  return {std::move(connection), true};
}

void refuseWhatIsNoFile(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;  // Missing; or the opening says why.
  if (!S_ISREG(status.st_mode)) throw DatabaseRefused("it is not a regular file");
}

bool holdsSomething(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

/// Makes the table of errors if it is missing.
void makeErrors(DatabaseFile& file) {
  if (file.hasErrors) return;
  file.connection.execute(kErrors.sql);
  file.connection.execute("PRAGMA user_version = 3");
  file.schemaCookie = -1;  // if this is not committed, there is no table
  file.hasErrors = true;
}

/// Runs a statement that returns the id of one row.
std::int64_t idOf(SqliteStatement& statement) {
  statement.step();
  const std::int64_t id = statement.integer(0);
  statement.run();
  return id;
}

DatabaseFile checked(DatabaseFile file) {
  SqliteTransaction transaction(file.connection, SqliteTransaction::Kind::kRead);
  checkSchema(file);
  transaction.commit();
  return file;
}

}  // namespace

DatabaseFile openDatabaseFile(const std::string& path,
                              IfMissing ifMissing,
                              const SqliteLimits& limits) {
  refuseWhatIsNoFile(path);
  try {
    return checked(openForWriting(path, ifMissing, limits));
  } catch (const SqliteError& error) {
    const bool denied = error.code() == SQLITE_CANTOPEN || error.code() == SQLITE_READONLY ||
                        error.code() == SQLITE_PERM;
    if (!denied || !holdsSomething(path)) throw;
  }
  // The file can't be written, and has a write-ahead log, or a journal of a process that died. Only
  // the file itself is read, which may lack a little, or be a mixture that looks damaged.
  return openShippedFile(path, limits);
}

DatabaseFile openShippedFile(const std::string& path, const SqliteLimits& limits) {
  refuseWhatIsNoFile(path);
  SqliteConnection connection(path, SqliteConnection::Access::kImmutable, limits);
  if (identify(connection) == Identity::kEmpty)
    throw DatabaseRefused("it is empty and cannot be written");
  return checked({std::move(connection), false});
}

std::string behind(const std::string& problem) {
  return problem + static_cast<char>(' ' + 1);
}

void checkSchema(DatabaseFile& file) {
  const std::int64_t cookie = file.connection.integer("PRAGMA schema_version");
  if (cookie == file.schemaCookie) return;
  file.hasErrors = checkWholeSchema(file.connection);
  file.schemaCookie = cookie;
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

SizeWriter::SizeWriter(DatabaseFile& file, bool withErrors)
    : connection_(file.connection),
      addSize_(file.connection,
               "INSERT INTO size (machine_id, problem_id, batch, covered_bytes, measured_at) "
               "VALUES (?, ?, ?, ?, ?) ON CONFLICT (machine_id, problem_id, batch) DO UPDATE SET "
               "covered_bytes = max(covered_bytes, excluded.covered_bytes), "
               "measured_at = max(measured_at, excluded.measured_at) RETURNING id"),
      addKernel_(file.connection,
                 "INSERT INTO measurement (size_id, kernel, time_ms, workspace_bytes, "
                 "deterministic, device_ms, measured_at) VALUES (?, ?, ?, ?, ?, ?, ?) "
                 "ON CONFLICT (size_id, kernel) DO UPDATE SET time_ms = excluded.time_ms, "
                 "workspace_bytes = excluded.workspace_bytes, "
                 "deterministic = excluded.deterministic, device_ms = excluded.device_ms, "
                 "measured_at = excluded.measured_at "
                 "WHERE excluded.measured_at >= measurement.measured_at") {
  if (withErrors) makeErrors(file);
  if (file.hasErrors)
    addError_.emplace(file.connection,
                      "INSERT INTO error (size_id, kernel, value, measured_at) "
                      "VALUES (?, ?, ?, ?) ON CONFLICT (size_id, kernel) DO UPDATE SET "
                      "value = excluded.value, measured_at = excluded.measured_at "
                      "WHERE excluded.measured_at >= error.measured_at");
}

std::int64_t SizeWriter::machineId(const MachineKey& machine) {
  // An update that changes nothing, because RETURNING omits a row that is left alone.
  SqliteStatement statement(
      connection_,
      "INSERT INTO machine (device_name, compute_capability, multiprocessor_count, driver_version, "
      "cuda_version, cudnn_version, simulated) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
      "SET simulated = excluded.simulated RETURNING id");
  bindMachine(statement, machine);
  return idOf(statement);
}

std::int64_t SizeWriter::problemId(const std::string& problem) {
  SqliteStatement statement(connection_,
                            "INSERT INTO problem (text) VALUES (?) ON CONFLICT DO UPDATE SET "
                            "text = excluded.text RETURNING id");
  return idOf(statement.bind(problem));
}

std::int64_t SizeWriter::addSize(std::int64_t machine,
                                 std::int64_t problem,
                                 int batch,
                                 std::size_t coveredBytes,
                                 std::int64_t measuredAt) {
  return idOf(addSize_.bind(
      machine, problem, std::int64_t{batch}, toStoredBytes(coveredBytes), measuredAt));
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
  if (kernel.error > 0) addError_->bind(size, kernel.kernel, kernel.error, measuredAt).run();
}

bool hasErrors(const StoredMeasurements& measurements) noexcept {
  return std::any_of(measurements.begin(), measurements.end(), [](const auto& size) {
    const auto& kernels = size.second.kernels;
    return std::any_of(kernels.begin(), kernels.end(), [](const StoredMeasurement& kernel) {
      return kernel.error > 0;
    });
  });
}

}  // namespace ucudnn
