// The file behind the benchmark database: its identity, its tables, and how it is opened.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "cache/database.hpp"
#include "cache/sqlite.hpp"

namespace ucudnn {

constexpr std::int64_t kApplicationId = 0x7543444E;  ///< "uCDN", in the header of the file
constexpr int kHeaderBytes = 108;  ///< the file's header, and the first page's own
/// user_version of a file with the table of errors. The table is made when the first error is
/// stored: until then an older version of this library can use the file.
constexpr std::int64_t kSchemaVersionWithErrors = 3;

/// The file is not ours to use: another application's, of another schema, or no database at all.
class DatabaseRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class IfMissing { kCreate, kFail };

struct DatabaseFile {
  SqliteConnection connection;
  bool writable;
  std::int64_t schemaCookie = -1;  ///< of the schema that was last found to be ours
  bool hasErrors = false;          ///< that schema has the table of errors
};

/// Opens the database, and creates its tables in a new or empty file. Opens it for reading alone if
/// the file or its directory cannot be written. Leaves a file that it refuses as it is, and makes
/// no file beside it. Turns a write-ahead log, which older versions left, into a rollback journal.
/// Throws DatabaseRefused, SqliteError.
DatabaseFile openDatabaseFile(const std::string& path,
                              IfMissing ifMissing,
                              const SqliteLimits& limits);

/// The same for a file that nobody writes, so that it need not be locked. Throws DatabaseRefused,
/// SqliteError.
DatabaseFile openShippedFile(const std::string& path, const SqliteLimits& limits);

/// Throws DatabaseRefused if the schema is not exactly ours, or was changed since the file was
/// opened: a view, a trigger, another index or table. REQUIRES: inside a transaction. Throws
/// SqliteError.
void checkSchema(DatabaseFile& file);

// The longest texts in a row; longer ones are no row of ours.
constexpr int kLongestKernel = 128;
constexpr int kLongestProblem = 1000;
constexpr int kLongestDevice = 256;  // cudaDeviceProp

/// All texts that begin with the problem's and a space come before this one.
std::string behind(const std::string& problem);

/// SQLite's integers are signed: "no bound" (and all above 2^63-1) is stored as 2^63-1, and read as
/// "no bound" again.
std::int64_t toStoredBytes(std::size_t bytes) noexcept;
std::size_t fromStoredBytes(std::int64_t stored) noexcept;

/// Binds a machine in the order of its table's columns, and then the other values.
template <typename... Others>
void bindMachine(SqliteStatement& statement, const MachineKey& machine, const Others&... others) {
  statement.bind(machine.deviceName,
                 std::int64_t{machine.computeCapability},
                 std::int64_t{machine.multiprocessorCount},
                 std::int64_t{machine.driverVersion},
                 std::int64_t{machine.cudaVersion},
                 toStoredBytes(machine.cudnnVersion),
                 std::int64_t{machine.simulated},
                 others...);
}

/// Whether one of them has an error.
bool hasErrors(const StoredMeasurements& measurements) noexcept;

/// Adds one batch size's kernels to the tables. They replace stored kernels, unless a stored
/// measurement is later. The covered workspace never shrinks. REQUIRES: inside a transaction.
/// Throws SqliteError.
class SizeWriter {
 public:
  /// `withErrors`: makes the table of errors if it is missing.
  SizeWriter(DatabaseFile& file, bool withErrors);

  /// The row of a machine or problem, which is made if it is missing.
  std::int64_t machineId(const MachineKey& machine);
  std::int64_t problemId(const std::string& problem);

  /// Returns the size's id for addKernel.
  std::int64_t addSize(std::int64_t machine,
                       std::int64_t problem,
                       int batch,
                       std::size_t coveredBytes,
                       std::int64_t measuredAt);
  /// REQUIRES: if the kernel has an error, the writer was made with errors.
  void addKernel(std::int64_t size, const StoredMeasurement& kernel, std::int64_t measuredAt);

 private:
  SqliteConnection& connection_;
  SqliteStatement addSize_;
  SqliteStatement addKernel_;
  std::optional<SqliteStatement> addError_;
};

}  // namespace ucudnn
