// The content of a database as values: what export, import, merge and list have in common.
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
/// for a value that is not valid.
std::vector<SizeRecord> readRecords(DatabaseFile& file);

/// Adds the records in one transaction: later measurements replace earlier ones. Throws
/// SqliteError.
void addRecords(DatabaseFile& file, const std::vector<SizeRecord>& records);

/// Leaves out what Merged::kForPlans does.
void keepForPlans(std::vector<SizeRecord>& records);

/// Throws std::runtime_error that names the value, when one is not as database.hpp has it.
void validate(const SizeRecord& record);

/// More than the export of any network's measurements.
constexpr std::size_t kMostJsonBytes = std::size_t{256} << 20;

/// JSON as misc/docs/DATABASE.md has it. `recordsFromJson` throws std::runtime_error that says what
/// is wrong.
std::string recordsToJson(const std::vector<SizeRecord>& records);
std::vector<SizeRecord> recordsFromJson(const std::string& text);

}  // namespace ucudnn
