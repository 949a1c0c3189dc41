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

/// To be written to: each file of a folder is one machine's.
const std::string& fileOf(const DatabaseOptions& options) {
  if (isFolder(nameOf(options)))
    throw BadInput(
        fmt::format("{} is a folder: name one of its files", printable(options.database)));
  return options.database;
}

/// A folder that goes with all that is in it.
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

/// The maintenance functions name the file in what they throw, and each failure of theirs is one of
/// a file that was named to us.
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
  // None if the year doesn't fit an int.
  if (gmtime_r(&seconds, &parts) == nullptr) return "no time";
  return fmt::format("{:%Y-%m-%d %H:%M}", parts);
}

int listEntries(const DatabaseOptions& options) {
  std::vector<DatabaseEntry> entries;
  for (const std::string& file : databasesIn(nameOf(options))) {
    auto more = onFile([&] { return listDatabase(file); });
    std::move(more.begin(), more.end(), std::back_inserter(entries));
  }
  std::string machine;
  std::size_t problems = 0;
  std::size_t kernels = 0;
  for (const DatabaseEntry& entry : entries) {
    if (entry.kernels == 0) continue;  // what was asked of a problem, not what was measured
    if (describe(entry.machine) != machine) {
      machine = describe(entry.machine);
      std::cout << printable(machine) << '\n';
    }
    std::cout << fmt::format("  {}  {:>4} kernels, {:>3} batch sizes\n{}\n",
                             date(entry.measuredAt),
                             entry.kernels,
                             entry.batches.size(),
                             indented(printable(entry.problem), "    "));
    ++problems;
    kernels += entry.kernels;
  }
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
