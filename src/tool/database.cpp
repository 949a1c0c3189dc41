#include "tool/database.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "cache/maintenance.hpp"
#include "support/problem_text.hpp"
#include "support/text.hpp"
#include "support/version_text.hpp"
#include "tool/columns.hpp"
#include "tool/failure.hpp"
#include "tool/output_file.hpp"

namespace ucudnn::tool {
namespace {

constexpr std::int64_t kSecondsInDay = 86400;

namespace files = std::filesystem;

const std::string& nameOf(const DatabaseOptions& options) {
  if (options.database.empty())
    throw BadInput("no database: give --database FILE or set UCUDNN_DATABASE");
  return options.database;
}

bool isFolder(const std::string& path) {
  std::error_code unknown;
  return path.back() == '/' || files::is_directory(path, unknown);
}

/// The file to write to. A folder has one for each machine, so it must be named.
const std::string& fileOf(const DatabaseOptions& options) {
  if (isFolder(nameOf(options)))
    throw BadInput(
        fmt::format("{} is a folder: name one of its files", printable(options.database)));
  return options.database;
}

/// A folder that is removed with its content.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((files::temp_directory_path() / "ucudnn-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error(fmt::format("{}: {}", path_, std::strerror(errno)));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    files::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Turns an exception of a maintenance function into BadInput: its message names the file, and the
/// user has named that file to us.
template <typename Function>
auto onFile(Function function) {
  try {
    return function();
  } catch (const std::runtime_error& error) {
    throw BadInput(error.what());
  }
}

std::string describe(const MachineKey& machine) {
  return fmt::format("{} (compute capability {}.{}, {} SMs), driver {}, CUDA {}, cuDNN {}",
                     machine.deviceName,
                     machine.computeCapability / 10,
                     machine.computeCapability % 10,
                     machine.multiprocessorCount,
                     cudaVersionText(machine.driverVersion),
                     cudaVersionText(machine.cudaVersion),
                     cudnnVersionText(machine.cudnnVersion));
}

std::string date(std::int64_t time) {
  std::tm parts{};
  const std::time_t seconds = time;
  // There is no date for a year that doesn't fit an int.
  if (gmtime_r(&seconds, &parts) == nullptr) return "no time";
  return fmt::format("{:%Y-%m-%d %H:%M}", parts);
}

/// The entries of one machine. `verbose`: each with its problem's whole text.
void printEntries(const std::vector<DatabaseEntry>& entries, bool verbose) {
  if (entries.empty()) return;
  std::cout << printable(describe(entries.front().machine)) << '\n';
  std::vector<std::vector<std::string>> lines = {{"  last measured", "kernels", "batches"}};
  for (const DatabaseEntry& entry : entries)
    lines.push_back({"  " + date(entry.measuredAt),
                     std::to_string(entry.kernels),
                     std::to_string(entry.batches.size())});
  const std::size_t columns = columnsLeft(lines);
  lines.front().emplace_back("convolution");
  for (std::size_t i = 0; i < entries.size(); ++i)
    lines[i + 1].push_back(shortened(printable(shortProblemText(entries[i].problem)), columns));
  writeColumns(std::cout, lines, 1);
  if (!verbose) return;
  for (const DatabaseEntry& entry : entries)
    std::cout << indented(printable(entry.problem), "  ") << '\n';
}

int listEntries(const DatabaseOptions& options) {
  std::vector<DatabaseEntry> entries, ofMachine;
  for (const std::string& file : databasesIn(nameOf(options))) {
    auto more = onFile([&] { return listDatabase(file); });
    std::move(more.begin(), more.end(), std::back_inserter(entries));
  }
  std::size_t problems = 0;
  std::size_t kernels = 0;
  for (DatabaseEntry& entry : entries) {
    if (entry.kernels == 0) continue;  // what was asked of a problem, not what was measured
    if (!ofMachine.empty() && describe(entry.machine) != describe(ofMachine.front().machine)) {
      printEntries(ofMachine, options.verbose);
      ofMachine.clear();
    }
    ++problems;
    kernels += entry.kernels;
    ofMachine.push_back(std::move(entry));
  }
  printEntries(ofMachine, options.verbose);
  std::cout << fmt::format("{} problems, {} kernels\n", problems, kernels);
  return 0;
}

/// Exports a file, or all files of a folder as one.
std::size_t exportTo(const DatabaseOptions& options, const std::string& json) {
  return onFile([&] {
    if (!isFolder(nameOf(options))) return exportDatabase(options.database, json);
    const TemporaryFolder folder;
    const std::string all = folder.file("all.db");
    for (const std::string& file : databasesIn(options.database)) mergeDatabase(all, file);
    return exportDatabase(all, json);
  });
}

int exportEntries(const DatabaseOptions& options) {
  std::error_code unknown;
  if (files::equivalent(nameOf(options), options.file, unknown))
    throw BadInput(printable(options.file) + ": it is the database itself");
  if (options.file == "-") {  // and nothing else
    std::cout << whatIsWritten([&](const std::string& path) {
      exportTo(options, path);
      return true;
    });
    return 0;
  }
  const auto sizes = exportTo(options, options.file);
  std::cout << fmt::format("{} batch sizes written to {}\n", sizes, printable(options.file));
  return 0;
}

int importEntries(const DatabaseOptions& options) {
  const auto sizes = onFile([&] { return importDatabase(fileOf(options), options.file); });
  std::cout << fmt::format("{} batch sizes read from {}\n", sizes, printable(options.file));
  return 0;
}

int mergeEntries(const DatabaseOptions& options) {
  const std::string& file = fileOf(options);
  for (const std::string& named : options.others)
    for (const std::string& other : databasesIn(named)) {
      const auto sizes = onFile([&] {
        return mergeDatabase(file, other, options.forPlans ? Merged::kForPlans : Merged::kAll);
      });
      std::cout << fmt::format("{} batch sizes read from {}\n", sizes, printable(other));
    }
  return 0;
}

int pruneEntries(const DatabaseOptions& options,
                 const std::function<MachineKey(int device)>& machineOf) {
  PruneFilter filter;
  if (!options.olderThanDays && !options.otherMachines)
    throw BadInput("db prune: say what to remove: --older-than DAYS, --other-machines, or both");
  if (options.olderThanDays)
    filter.measuredBefore =
        static_cast<std::int64_t>(std::time(nullptr)) - *options.olderThanDays * kSecondsInDay;
  if (options.otherMachines) filter.otherThan = machineOf(options.device);
  std::size_t sizes = 0;
  for (const std::string& file : databasesIn(nameOf(options)))
    sizes += onFile([&] { return pruneDatabase(file, filter); });
  std::cout << fmt::format("{} batch sizes removed\n", sizes);
  return 0;
}

}  // namespace

std::vector<std::string> databasesIn(const std::string& path) {
  if (path.empty() || !isFolder(path)) return {path};
  std::vector<std::string> found;
  std::error_code error;
  for (files::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".db") found.push_back(entry->path().string());
  if (error) throw BadInput(fmt::format("{}: {}", printable(path), error.message()));
  if (found.empty()) throw BadInput(printable(path) + ": there is no database in this folder");
  std::sort(found.begin(), found.end());
  return found;
}

int maintainDatabase(const DatabaseOptions& options,
                     const std::function<MachineKey(int device)>& machineOf) {
  switch (options.task) {
    case DatabaseTask::kList:
      return listEntries(options);
    case DatabaseTask::kExport:
      return exportEntries(options);
    case DatabaseTask::kImport:
      return importEntries(options);
    case DatabaseTask::kMerge:
      return mergeEntries(options);
    default:
      return pruneEntries(options, machineOf);
  }
}

}  // namespace ucudnn::tool
