// The work of `ucudnn db` on benchmark databases: list, export, import, merge, prune.
//
// Every function throws std::runtime_error whose message names the file and the reason, and changes
// a file either wholly or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/database.hpp"

namespace ucudnn {

/// Sums up a database's rows about one problem on one machine.
struct DatabaseEntry {
  MachineKey machine;
  std::string problem;
  std::vector<int> batches;     ///< in ascending order
  std::size_t kernels = 0;      ///< over all batch sizes
  std::int64_t measuredAt = 0;  ///< the latest measurement, in seconds since 1970 (UTC)
};

/// Ordered by machine, then by problem.
std::vector<DatabaseEntry> listDatabase(const std::string& path);

/// Writes the whole database as JSON (misc/docs/DATABASE.md). Returns the number of batch sizes.
std::size_t exportDatabase(const std::string& path, const std::string& jsonPath);

/// Adds what exportDatabase wrote. If a kernel was measured in both, the later measurement stays.
/// Makes the database if it is missing. Returns the number of batch sizes that were read.
std::size_t importDatabase(const std::string& path, const std::string& jsonPath);

/// How much of another file is added.
enum class Merged {
  kAll,
  /// Leaves out kernels that no plan would have, because another one of their size is no slower, in
  /// no more workspace. Keeps them if the batch size is a mini-batch that was asked about, because
  /// its kernels are compared with cuDNN's choice. The database takes as little space as it can.
  kForPlans
};

/// Adds another database file's content, by the same rule. The other file is not changed.
std::size_t mergeDatabase(const std::string& path,
                          const std::string& otherPath,
                          Merged merged = Merged::kAll);

/// Removes all that matches at least one of the conditions that are set.
struct PruneFilter {
  std::optional<MachineKey> otherThan;         ///< measured on any other machine
  std::optional<std::int64_t> measuredBefore;  ///< batch sizes last measured before this time
};

/// Removes what matches the filter, and gives the space back to the filesystem. Returns the number
/// of batch sizes that were removed.
std::size_t pruneDatabase(const std::string& path, const PruneFilter& filter);

}  // namespace ucudnn
