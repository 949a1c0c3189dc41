// The benchmark database: measured kernels, kept from one run to the next in one SQLite 3 file that
// many threads and processes share. Knows no CUDA: devices, problems and kernels are text here.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ucudnn {

/// The conditions of a measurement, besides the problem.
struct MachineKey {
  std::string deviceName;
  int computeCapability = 0;  ///< major * 10 + minor
  int multiprocessorCount = 0;
  int driverVersion = 0;
  int cudaVersion = 0;
  std::size_t cudnnVersion = 0;
  bool simulated = false;  ///< never mixed with a GPU's

  bool operator==(const MachineKey& other) const noexcept {
    return deviceName == other.deviceName && computeCapability == other.computeCapability &&
           multiprocessorCount == other.multiprocessorCount &&
           driverVersion == other.driverVersion && cudaVersion == other.cudaVersion &&
           cudnnVersion == other.cudnnVersion && simulated == other.simulated;
  }
  bool operator!=(const MachineKey& other) const noexcept { return !(*this == other); }
};

/// One kernel measured at one batch size.
struct StoredMeasurement {
  std::string kernel;
  double timeMs;
  std::size_t workspaceBytes;
  bool deterministic;
  double deviceMs = 0;  ///< the device's part of timeMs when replayed; 0: not known
  double error = 0;     ///< normalized error of its output; 0: not known
};

/// All that is known of one batch size.
struct StoredSize {
  /// Every kernel that needs at most this much workspace was tried; kernels above it may be
  /// missing. Stored values never shrink: storing a size adds or replaces its kernels one by one
  /// and keeps the larger bound.
  std::size_t coveredBytes = 0;
  std::vector<StoredMeasurement> kernels;  ///< may be empty: tried, and nothing is offered
};

/// Batch size -> what is known of it.
using StoredMeasurements = std::map<int, StoredSize>;

/// A problem's measurements are under "". Those of texts that begin with the problem's and a space
/// are under the rest of the text.
using StoredProblem = std::map<std::string, StoredMeasurements>;

/// The file's user_version; raised when a table changes.
constexpr int kSchemaVersion = 2;

/// Who has named a database's file.
enum class DatabaseUse {
  kNamed,  ///< its user, who is warned if it can't be used
  /// Nobody (kept_files.hpp): failures are logged at level info. Its size is bounded, and the rows
  /// used least recently go first. If it is damaged, it begins anew.
  kKept,
  kShipped  ///< nobody: it is only read, as it was installed
};

/// Bound of a kept file; a quarter more while it is in use. Room for a hundred networks: a
/// convolution takes some 10 KiB (ResNet-50's 69 on an H200 take 640).
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

/// Thread-safe. Never throws and never fails a caller. A file may be of no use: it cannot be
/// opened, belongs to another application, has another schema, is corrupt, read-only or full, or
/// takes long to read. Then one warning says so, and the database answers as if it were empty. A
/// read-only file still answers from its content. Locks of others hold the database up for 100 ms,
/// and after that for a hundredth of the time that passes. Measurements that could not be stored
/// meanwhile are stored later, at the latest at the end.
///
/// Only the form of the file's content is checked, because whoever wrote it may have meant no good.
class Database {
 public:
  /// Does not open the file yet. With an empty path it remembers nothing. `mostBytes` bounds a kept
  /// file.
  explicit Database(std::string path,
                    DatabaseUse use = DatabaseUse::kNamed,
                    std::size_t mostBytes = kMostKeptBytes);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Everything known of a problem on a machine, at one moment. `isLocked`, if not null, tells that
  /// nothing could be read for now, because others hold the file.
  StoredProblem loadAll(const MachineKey& machine,
                        const std::string& problem,
                        bool* isLocked = nullptr) noexcept;

  /// The same for another machine, with the same major version of cuDNN: `other`. Among these, it
  /// is the one with the nearest device and then the nearest versions in the file.
  StoredProblem loadElsewhere(const MachineKey& machine,
                              const std::string& problem,
                              MachineKey& other) noexcept;

  /// Adds the given sizes of one problem, in one transaction. Sizes that others stored are kept.
  void store(const MachineKey& machine,
             const std::string& problem,
             const StoredMeasurements& measurements) noexcept;

  /// Warns that some of the file's content can't be true, unless this file has been warned of.
  void warnOfLies() noexcept;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace ucudnn
