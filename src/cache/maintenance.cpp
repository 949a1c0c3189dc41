#include "cache/maintenance.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "cache/database_file.hpp"
#include "cache/records.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace ucudnn {
namespace {

/// Runs `body`, and puts the file's name before the message of an exception.
template <typename Body>
auto naming(const std::string& path, Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    constexpr std::size_t kMostOfReason = 350;  // it may quote what it refuses
    throw std::runtime_error(excerpt(path) + ": " + excerpt(error.what(), kMostOfReason));
  }
}

// Somebody waits for the command, and may end it. Long enough for a hundred writers in turn.
constexpr std::chrono::seconds kPatience{10};
// A million measurements take half of this.
constexpr std::chrono::seconds kMostCpuTime{4};

/// A file that is used for one command.
class MaintainedFile {
 public:
  MaintainedFile(const std::string& path, IfMissing ifMissing)
      : file_(openDatabaseFile(path, ifMissing, {&patience_, kMostCpuTime})) {}
  void requireWritable() const {
    if (!file_.writable) throw std::runtime_error("it cannot be written");
  }
  DatabaseFile& get() noexcept { return file_; }
  SqliteConnection& connection() noexcept { return file_.connection; }

 private:
  Patience patience_{kPatience, 0};
  DatabaseFile file_;
};

std::vector<SizeRecord> readDatabase(const std::string& path) {
  return naming(path, [&path] {
    MaintainedFile file(path, IfMissing::kFail);
    return readRecords(file.get());
  });
}

void addToDatabase(const std::string& path, const std::vector<SizeRecord>& records) {
  naming(path, [&] {
    MaintainedFile file(path, IfMissing::kCreate);
    file.requireWritable();
    addRecords(file.get(), records);
  });
}

void writeText(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(std::strerror(errno != 0 ? errno : EIO));
}

bool sameEntry(const DatabaseEntry& entry, const SizeRecord& record) {
  return entry.machine == record.machine && entry.problem == record.problem;
}

}  // namespace

std::vector<DatabaseEntry> listDatabase(const std::string& path) {
  std::vector<DatabaseEntry> entries;
  for (const SizeRecord& record : readDatabase(path)) {
    if (entries.empty() || !sameEntry(entries.back(), record)) {
      entries.push_back({record.machine, record.problem, {}, 0, record.measuredAt});
    }
    DatabaseEntry& entry = entries.back();
    entry.batches.push_back(record.batch);
    entry.kernels += record.kernels.size();
    entry.measuredAt = std::max(entry.measuredAt, record.measuredAt);
  }
  return entries;
}

std::size_t exportDatabase(const std::string& path, const std::string& jsonPath) {
  const std::vector<SizeRecord> records = readDatabase(path);
  naming(jsonPath, [&] { writeText(jsonPath, recordsToJson(records)); });
  return records.size();
}

std::size_t importDatabase(const std::string& path, const std::string& jsonPath) {
  const std::vector<SizeRecord> records =
      naming(jsonPath, [&] { return recordsFromJson(readFile(jsonPath, kMostJsonBytes)); });
  addToDatabase(path, records);
  return records.size();
}

std::size_t mergeDatabase(const std::string& path, const std::string& otherPath, Merged merged) {
  std::vector<SizeRecord> records = readDatabase(otherPath);
  if (merged == Merged::kForPlans) keepForPlans(records);
  addToDatabase(path, records);
  if (merged == Merged::kForPlans)
    naming(path, [&] { MaintainedFile(path, IfMissing::kFail).connection().execute("VACUUM"); });
  return records.size();
}

std::size_t pruneDatabase(const std::string& path, const PruneFilter& filter) {
  return naming(path, [&] {
    MaintainedFile file(path, IfMissing::kFail);
    file.requireWritable();
    SqliteConnection& connection = file.connection();
    std::size_t removed = 0;
    const auto removedByLast = [&connection] {
      return static_cast<std::size_t>(sqlite3_changes(connection.get()));
    };
    {
      SqliteTransaction transaction(connection, SqliteTransaction::Kind::kWrite);
      if (filter.otherThan) {
        SqliteStatement others(
            connection,
            "DELETE FROM size WHERE machine_id NOT IN (SELECT id FROM machine WHERE "
            "device_name = ? AND compute_capability = ? AND multiprocessor_count = ? "
            "AND driver_version = ? AND cuda_version = ? AND cudnn_version = ? "
            "AND simulated = ?)");
        bindMachine(others, *filter.otherThan);
        others.run();
        removed += removedByLast();
      }
      if (filter.measuredBefore) {
        SqliteStatement(connection, "DELETE FROM size WHERE measured_at < ?")
            .bind(*filter.measuredBefore)
            .run();
        removed += removedByLast();
      }
      connection.execute("DELETE FROM machine WHERE id NOT IN (SELECT machine_id FROM size)");
      connection.execute("DELETE FROM problem WHERE id NOT IN (SELECT problem_id FROM size)");
      transaction.commit();
    }
    connection.execute("VACUUM");
    return removed;
  });
}

}  // namespace ucudnn
