#include "tool/database.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <filesystem>
#include <iostream>

#include "cache/maintenance.hpp"
#include "support/text.hpp"
#include "tool/columns.hpp"
#include "tool/failure.hpp"
#include "tool/output_file.hpp"
#include "tool/version_text.hpp"

namespace ucudnn::tool {
namespace {

constexpr std::int64_t kSecondsInDay = 86400;

const std::string& fileOf(const DatabaseOptions& options) {
  if (options.database.empty())
    throw BadInput("no database: give --database FILE or set UCUDNN_DATABASE");
  return options.database;
}

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
  // None where the year is more than an int.
  if (gmtime_r(&seconds, &parts) == nullptr) return "no time";
  return fmt::format("{:%Y-%m-%d %H:%M}", parts);
}

int listEntries(const DatabaseOptions& options) {
  const auto entries = onFile([&] { return listDatabase(fileOf(options)); });
  std::string machine;
  std::vector<std::vector<std::string>> lines;
  const auto flush = [&] {
    writeColumns(std::cout, lines, 0);
    lines.clear();
  };
  std::size_t problems = 0;
  std::size_t kernels = 0;
  for (const DatabaseEntry& entry : entries) {
    if (entry.kernels == 0) continue;  // what was asked of a problem, not what was measured
    if (describe(entry.machine) != machine) {
      flush();
      machine = describe(entry.machine);
      std::cout << printable(machine) << '\n';
    }
    lines.push_back({"  " + date(entry.measuredAt),
                     fmt::format("{} kernels", entry.kernels),
                     fmt::format("{} sizes", entry.batches.size()),
                     entry.problem});
    ++problems;
    kernels += entry.kernels;
  }
  flush();
  std::cout << fmt::format("{} problems, {} kernels\n", problems, kernels);
  return 0;
}

int exportEntries(const DatabaseOptions& options) {
  std::error_code unknown;
  if (std::filesystem::equivalent(fileOf(options), options.file, unknown))
    throw BadInput(printable(options.file) + ": it is the database itself");
  if (options.file == "-") {  // and nothing else
    std::cout << whatIsWritten([&](const std::string& path) {
      exportDatabase(fileOf(options), path);
      return true;
    });
    return 0;
  }
  const auto sizes = onFile([&] { return exportDatabase(fileOf(options), options.file); });
  std::cout << fmt::format("{} batch sizes written to {}\n", sizes, printable(options.file));
  return 0;
}

int importEntries(const DatabaseOptions& options) {
  const auto sizes = onFile([&] { return importDatabase(fileOf(options), options.file); });
  std::cout << fmt::format("{} batch sizes read from {}\n", sizes, printable(options.file));
  return 0;
}

int mergeEntries(const DatabaseOptions& options) {
  for (const std::string& other : options.others) {
    const auto sizes = onFile([&] {
      return mergeDatabase(
          fileOf(options), other, options.forPlans ? Merged::kForPlans : Merged::kAll);
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
  const auto sizes = onFile([&] { return pruneDatabase(fileOf(options), filter); });
  std::cout << fmt::format("{} batch sizes removed\n", sizes);
  return 0;
}

}  // namespace

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
