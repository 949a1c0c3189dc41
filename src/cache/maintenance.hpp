// What `ucudnn db` does with benchmark databases: list, export, import, merge, prune.
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

/// What a database holds of one problem on one machine.
struct DatabaseEntry {
  MachineKey machine;
  std::string problem;
  std::vector<int> batches;     ///< in ascending order
  std::size_t kernels = 0;      ///< over all batch sizes
  std::int64_t measuredAt = 0;  ///< the latest measurement, in seconds since 1970 (UTC)
};

/// By machine, then by problem.
std::vector<DatabaseEntry> listDatabase(const std::string& path);

/// Writes all that a database holds as JSON (misc/docs/DATABASE.md). Returns how many batch sizes
/// that is.
std::size_t exportDatabase(const std::string& path, const std::string& jsonPath);

/// Adds what exportDatabase wrote; of a kernel measured in both, the later measurement stays. Makes
/// the database when it is missing. Returns how many batch sizes were read.
std::size_t importDatabase(const std::string& path, const std::string& jsonPath);

/// How much of another file is added.
enum class Merged {
  kAll,
  /// Not the kernels that no plan would have, as another of their size is no slower, in no more
  /// workspace: but where the batch size is a mini-batch that was asked about, whose kernels are
  /// compared with cuDNN's choice. The database takes as little space as it can.
  kForPlans
};

/// Adds another database file's content, by the same rule. The other file is not changed.
std::size_t mergeDatabase(const std::string& path,
                          const std::string& otherPath,
                          Merged merged = Merged::kAll);

/// What to remove: all that matches at least one of the conditions that are set.
struct PruneFilter {
  std::optional<MachineKey> otherThan;         ///< measured on any other machine
  std::optional<std::int64_t> measuredBefore;  ///< batch sizes last measured before this time
};

/// Removes what the filter says and gives the space back to the filesystem. Returns how many batch
/// sizes were removed.
std::size_t pruneDatabase(const std::string& path, const PruneFilter& filter);

}  // namespace ucudnn
