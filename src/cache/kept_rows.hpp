// What a file that nobody asked for needs besides: a bound, what goes first, and a way back from
// damage that nobody would repair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/database_file.hpp"

namespace ucudnn {

/// Where its rows take more than `mostBytes`, removes those of the problems that have not been used
/// for longest, with all that was asked about them, until they take a sixteenth less. Throws
/// SqliteError.
void boundRows(DatabaseFile& file, std::size_t mostBytes);

/// Rows count as used to the week: a start that finds all it needs seldom writes.
constexpr std::int64_t kUseSeconds = std::int64_t{7} * 86400;

/// Dates what is known of the problems as used `now`. Throws SqliteError.
void dateRows(DatabaseFile& file, const std::vector<std::string>& problems, std::int64_t now);

/// Makes a damaged file an empty one, whoever has it open. Throws SqliteError.
void resetDatabaseFile(const std::string& path, const SqliteLimits& limits);

}  // namespace ucudnn
