// The settings of μ-cuDNN and the environment variables that they come from.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/log.hpp"
#include "support/policies.hpp"

namespace ucudnn {

/// A benchmark share without bound.
constexpr double kMeasureAlways = std::numeric_limits<double>::infinity();

/// A device memory of all that is free.
constexpr std::size_t kAllDeviceMemory = std::numeric_limits<std::size_t>::max();

/// The settings of one handle. Each handle has its own copy.
struct Settings {
  BatchSizePolicy batchSizePolicy = BatchSizePolicy::kPowerOfTwo;
  Kernels kernels = Kernels::kAll;
  Tuning tuning = Tuning::kFast;
  double maxError = 0;  ///< largest error of a kernel in a plan; 0: not limited
  std::size_t defaultWorkspaceLimitBytes = 67108864;
  /// The user has set the limit. It then also bounds the workspace that cuDNN itself would take.
  bool defaultWorkspaceLimitGiven = false;
  /// Limit of every convolution, whatever its caller allows; the largest value: none.
  std::size_t workspaceLimitBytes = std::numeric_limits<std::size_t>::max();
  std::size_t totalWorkspaceBytes = 0;  ///< 0: not set, WR
  TotalWorkspacePolicy totalWorkspacePolicy = TotalWorkspacePolicy::kAuto;
  /// Memory on each device for the graphs that replay calls; 0: no replay. 64 MiB hold the graphs
  /// of a network with a hundred layers.
  std::size_t graphMemoryBytes = std::size_t{64} << 20;
  bool graphMemoryGiven = false;  ///< the user has named it
  /// Memory of a device for tiles of tensors in host memory, and the workspace of their kernels; 0:
  /// tensors are on the device.
  std::size_t deviceMemoryBytes = 0;
  std::string databasePath;           ///< a folder ends in "/"; empty: measurements live in memory
  std::string plansPath;              ///< empty: every plan is made anew
  bool plansStrict = false;           ///< what the file has not is left to cuDNN
  std::string errataPath;             ///< empty: the built-in list
  std::vector<int> benchmarkDevices;  ///< empty: the handle's own device
  bool allBenchmarkDevices = false;   ///< UCUDNN_BENCHMARK_DEVICES=all
  std::size_t benchmarkMemoryBytes = std::size_t{8} << 30;
  double benchmarkStallMs = 20;    ///< longest wait of a call for measuring that nobody asked for
  bool backgroundPlanning = true;  ///< a helper thread makes plans while calls do without them
  double benchmarkShare = 0.03;    ///< kMeasureAlways: measures each problem when first seen
  LogLevel logLevel = LogLevel::kWarn;
  std::string logFile;
  bool borrowOutput = true;  ///< an output's memory is workspace until results are written there
  bool deterministic = false;
  bool equivalenceTest = false;
  bool checkKernels = true;   ///< before a plan of them runs
  bool isUnmodified = false;  ///< the program does not know of us (no variable)
  bool disabled = false;      ///< cuDNN answers everything
  std::string tracePath;      ///< empty: calls are not written down
  bool report = false;        ///< calls are summed up when the process ends
};

/// A bad value in the environment. The message names the variable, the value and what is accepted.
class BadSetting : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Whether a share or an error is a value of its setting, whoever sets it.
bool isBenchmarkShare(double share) noexcept;
bool isMaxError(double error) noexcept;

/// One row of the table of environment variables: the only place that knows their names.
struct EnvironmentVariable {
  const char* name;
  const char* type;  ///< the accepted values, as in the error message and the settings' page
  const char* defaultValue;  ///< as in the settings' page
  const char* help;
  /// Takes a trimmed value that is not empty. Throws std::invalid_argument with the reason.
  std::function<void(Settings&, const std::string&)> parse;
  bool namesFile = false;
};
const std::vector<EnvironmentVariable>& environmentVariables();

/// The variable's value in the process's environment, or null. A variable that names a file is null
/// in a set-user-id program: its user must not choose the files that it opens.
const char* environmentValue(const EnvironmentVariable& variable) noexcept;

/// Reads every UCUDNN_* variable. An unset or empty one keeps its default. Defaults are those of
/// Settings, unless the CMake options UCUDNN_DEBUG_* change them. An unknown UCUDNN_* variable is
/// not an error. Throws BadSetting. Has no other effect.
Settings settingsFromEnvironment(const std::function<const char*(const char*)>& lookup);

/// Reads the process's environment. Throws BadSetting, also for a log file that cannot be opened.
/// Configures the Log before it returns or throws. The first time in the process it also logs each
/// unknown UCUDNN_* variable (warn) and each setting (info). The tool leaves that to the library,
/// because it has its own copy of this code beside libucudnn.so's.
enum class Reporting { kOnce, kNever };
Settings settingsFromEnvironment(Reporting reporting = Reporting::kOnce);

}  // namespace ucudnn
