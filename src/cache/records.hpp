// The content of a database as values, for export, import, merge and list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/database.hpp"
#include "cache/database_file.hpp"

namespace ucudnn {

struct KernelRecord {
  StoredMeasurement measurement;
  std::int64_t measuredAt = 0;
};

/// One batch size of one problem on one machine.
struct SizeRecord {
  MachineKey machine;
  std::string problem;
  int batch = 0;
  std::size_t coveredBytes = 0;
  std::int64_t measuredAt = 0;
  std::vector<KernelRecord> kernels;
};

/// Everything, ordered by machine, problem and batch size. Throws SqliteError; std::runtime_error
/// if a value is not valid.
std::vector<SizeRecord> readRecords(DatabaseFile& file);

/// Adds the records in one transaction. Later measurements replace earlier ones. Throws
/// SqliteError.
void addRecords(DatabaseFile& file, const std::vector<SizeRecord>& records);

/// Leaves out the kernels that Merged::kForPlans excludes.
void keepForPlans(std::vector<SizeRecord>& records);

/// Throws std::runtime_error that names the value if one is not as database.hpp has it.
void validate(const SizeRecord& record);

/// Larger than the export of any network's measurements.
constexpr std::size_t kMostJsonBytes = std::size_t{256} << 20;

/// JSON as in misc/docs/DATABASE.md. `recordsFromJson` throws std::runtime_error that says what is
/// wrong.
std::string recordsToJson(const std::vector<SizeRecord>& records);
std::vector<SizeRecord> recordsFromJson(const std::string& text);

}  // namespace ucudnn
