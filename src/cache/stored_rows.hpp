// What a database's file holds of problems, read and checked for its form.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cache/database_file.hpp"

namespace ucudnn {

/// Whether a kernel has a name, times and an error that are numbers.
bool isPossible(const StoredMeasurement& measurement);

/// Reads a file's measurements. A small file is read as a whole at first: each use costs locks,
/// looks for journals and SQLite's code, which is in no cache by the next problem. What was read so
/// is the answer for as long as the file is the same, to the first question about each problem.
/// Not thread-safe.
class StoredRows {
 public:
  /// REQUIRES: the file outlives it, at the same address.
  explicit StoredRows(DatabaseFile& file) noexcept : file_(file) {}

  /// As Database::load. `isValid` becomes false where a value is not what it should be: the size
  /// that it belongs to is left out. Throws DatabaseRefused, SqliteError.
  StoredProblem read(const MachineKey& machine, const std::string& problem, bool* isValid);

  /// As Database::loadElsewhere has it. Throws SqliteError.
  std::optional<MachineKey> machineLike(const MachineKey& machine);

  /// When the oldest row was measured among those that were read with the latest problem.
  std::int64_t oldest() const noexcept { return oldest_; }

 private:
  using Problems = std::map<std::string, StoredMeasurements>;
  struct Whole {
    std::string header;  ///< of the file: its change counter is another after each transaction
    MachineKey machine;
    Problems problems;  ///< those that were asked for are here no more: empty
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
  bool hadErrors_ = false;  ///< the file, when that was made
  std::optional<Whole> whole_;
  bool mayReadWhole_ = true;
  std::int64_t oldest_ = 0;
};

}  // namespace ucudnn
