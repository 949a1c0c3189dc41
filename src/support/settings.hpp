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

/// What tunes one handle. A value; each handle has its own copy.
struct Settings {
  BatchSizePolicy batchSizePolicy = BatchSizePolicy::kPowerOfTwo;
  Kernels kernels = Kernels::kAll;
  Tuning tuning = Tuning::kFast;
  double maxError = 0;  ///< of the kernels in a plan; 0: none is stated
  std::size_t defaultWorkspaceLimitBytes = 67108864;
  /// The user has named it: then it also bounds what cuDNN itself would take.
  bool defaultWorkspaceLimitGiven = false;
  /// Of every convolution, whatever its caller allows; the largest: none.
  std::size_t workspaceLimitBytes = std::numeric_limits<std::size_t>::max();
  std::size_t totalWorkspaceBytes = 0;  ///< 0: not set, WR
  TotalWorkspacePolicy totalWorkspacePolicy = TotalWorkspacePolicy::kAuto;
  /// Of each captured graph; the largest: as much as its plans want, at most the total.
  std::size_t graphWorkspaceBytes = std::numeric_limits<std::size_t>::max();
  /// On each device, for the graphs by which calls are replayed; 0: no replay. 64 MiB hold
  /// those of a network with a hundred layers.
  std::size_t graphMemoryBytes = std::size_t{64} << 20;
  bool graphMemoryGiven = false;      ///< the user has named it
  std::string databasePath;           ///< a folder ends in "/"; empty: measurements live in memory
  std::string plansPath;              ///< empty: every plan is made anew
  bool plansStrict = false;           ///< what the file has not is left to cuDNN
  std::string errataPath;             ///< empty: the built-in list
  std::vector<int> benchmarkDevices;  ///< empty: the handle's own device
  bool allBenchmarkDevices = false;   ///< UCUDNN_BENCHMARK_DEVICES=all
  double benchmarkBudgetMs = 0;       ///< 0: no budget beyond the stop rule's own
  std::size_t benchmarkMemoryBytes = std::size_t{8} << 30;
  double benchmarkStallMs = 20;    ///< what a call may wait for measuring that nobody asked for
  bool backgroundPlanning = true;  ///< what is known is made ready beside calls that can do without
  double benchmarkShare = 0.03;    ///< kMeasureAlways: each problem when it is first seen
  LogLevel logLevel = LogLevel::kWarn;
  std::string logFile;
  bool borrowOutput = true;  ///< memory of outputs is workspace until results are written there
  bool deterministic = false;
  bool equivalenceTest = false;
  bool checkKernels = true;   ///< before a plan of them runs
  bool isUnmodified = false;  ///< the program does not know of us (no variable)
  bool disabled = false;      ///< cuDNN answers everything
  std::string tracePath;      ///< empty: calls are not written down
  bool report = false;        ///< calls are summed up when the process ends
};

/// A bad value in the environment: names the variable, the value and what is accepted.
class BadSetting : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One row of the table of environment variables: the only place that knows their names.
struct EnvironmentVariable {
  const char* name;
  const char* type;          ///< what is accepted, as the error message and the README say it
  const char* defaultValue;  ///< as the README says it
  const char* help;
  /// Takes a trimmed value that is not empty. Throws the reason as std::invalid_argument.
  std::function<void(Settings&, const std::string&)> parse;
  bool namesFile = false;
};
const std::vector<EnvironmentVariable>& environmentVariables();

/// What the process's environment says; null: nothing. Who runs a set-user-id program names no
/// files that it opens: such variables are null there.
const char* environmentValue(const EnvironmentVariable& variable) noexcept;

/// Reads every UCUDNN_* variable. An unset or empty one keeps its default. Throws BadSetting. An
/// unknown UCUDNN_* variable is not an error. Defaults are those of Settings but for what the CMake
/// options UCUDNN_DEBUG_* change. Has no effect but its result.
Settings settingsFromEnvironment(const std::function<const char*(const char*)>& lookup);

/// The same from the process's environment. Throws BadSetting also for a log file that cannot be
/// opened. Before it returns or throws it configures the Log and, the first time in the process,
/// logs each unknown UCUDNN_* variable (warn) and each setting (info). The tool, which has a copy
/// of this code beside libucudnn.so's, leaves that to the library.
enum class Reporting { kOnce, kNever };
Settings settingsFromEnvironment(Reporting reporting = Reporting::kOnce);

}  // namespace ucudnn
