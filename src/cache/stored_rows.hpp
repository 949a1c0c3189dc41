// Reads problems from a database's file, and checks their form.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cache/database_file.hpp"

namespace ucudnn {

/// Whether a kernel has a name, and whether its times and error are numbers.
bool isPossible(const StoredMeasurement& measurement);

/// Reads a file's measurements. A small file is first read as a whole: each use costs locks, looks
/// for journals and SQLite's code, which is in no cache by the next problem. As long as the file is
/// the same, these rows answer the first question about each problem. Not thread-safe.
class StoredRows {
 public:
  /// REQUIRES: the file outlives it, at the same address.
  explicit StoredRows(DatabaseFile& file) noexcept : file_(file) {}

  /// As Database::load. If a value is not what it should be, `isValid` becomes false and the
  /// value's size is left out. Throws DatabaseRefused, SqliteError.
  StoredProblem read(const MachineKey& machine, const std::string& problem, bool* isValid);

  /// As Database::loadElsewhere. Throws SqliteError.
  std::optional<MachineKey> machineLike(const MachineKey& machine);

  /// When the oldest row was measured, among those that were read with the latest problem.
  std::int64_t oldest() const noexcept { return oldest_; }

 private:
  using Problems = std::map<std::string, StoredMeasurements>;
  struct Whole {
    std::string header;  ///< the file's; its change counter differs after each transaction
    MachineKey machine;
    Problems problems;  ///< those that were asked for are left empty
  };

  void prepareKernels();
  std::optional<Problems> collect(SqliteStatement& sizes, std::size_t most, bool* isValid);
  bool readKernels(std::int64_t sizeId,
                   std::size_t most,
                   std::size_t& rows,
                   std::vector<StoredMeasurement>& kernels);
  std::optional<Whole> readWhole(const MachineKey& machine, bool* isValid);
  Problems readProblem(const MachineKey& machine, const std::string& problem, bool* isValid);

  DatabaseFile& file_;
  std::optional<SqliteStatement> ofProblem_;
  std::optional<SqliteStatement> kernels_;
  bool hadErrors_ = false;  ///< the file had errors when kernels_ was prepared
  std::optional<Whole> whole_;
  bool mayReadWhole_ = true;
  std::int64_t oldest_ = 0;
};

}  // namespace ucudnn
