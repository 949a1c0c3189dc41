// Upkeep of a file that nobody asked for: a bound, an order of removal, and a way back from damage
// that nobody would repair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/database_file.hpp"

namespace ucudnn {

/// If the rows take more than `mostBytes`, removes those of the problems that have not been used
/// for longest, with all questions about them, until the rows take a sixteenth less. Throws
/// SqliteError.
void boundRows(DatabaseFile& file, std::size_t mostBytes);

/// Uses are dated to the week, so that a start that finds all it needs seldom writes.
constexpr std::int64_t kUseSeconds = std::int64_t{7} * 86400;

/// Dates all rows about the problems as used `now`. Throws SqliteError.
void dateRows(DatabaseFile& file, const std::vector<std::string>& problems, std::int64_t now);

/// Makes a damaged file an empty one, even if others have it open. Throws SqliteError.
void resetDatabaseFile(const std::string& path, const SqliteLimits& limits);

}  // namespace ucudnn
