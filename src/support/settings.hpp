// The settings of μ-cuDNN and the environment variables that they come from.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "optimizer/policy.hpp"
#include "support/log.hpp"

namespace ucudnn {

/// What tunes one handle. A value; each handle has its own copy.
struct Settings {
  BatchSizePolicy batchSizePolicy = BatchSizePolicy::kPowerOfTwo;
  std::size_t defaultWorkspaceLimitBytes = 67108864;
  std::size_t totalWorkspaceBytes = 0;  ///< 0: not set, WR
  std::string databasePath;             ///< empty: measurements live in memory only
  std::vector<int> benchmarkDevices;    ///< empty: the handle's own device
  bool allBenchmarkDevices = false;     ///< UCUDNN_BENCHMARK_DEVICES=all
  double benchmarkBudgetMs = 0;         ///< 0: no budget beyond the stop rule's own
  LogLevel logLevel = LogLevel::kWarn;
  std::string logFile;
  bool deterministic = false;
  bool equivalenceTest = false;
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
  std::function<void(Settings&, const std::string&)> parse;  ///< throws BadSetting's reason as std::invalid_argument
};
const std::vector<EnvironmentVariable>& environmentVariables();

/// Reads every UCUDNN_* variable. An unset or empty one keeps its default. Throws BadSetting. An unknown
/// UCUDNN_* variable is not an error (a warning names it). `lookup` is std::getenv but in tests.
Settings settingsFromEnvironment(const std::function<const char*(const char*)>& lookup);
Settings settingsFromEnvironment();

/// "67108864", "64MiB", "64 MiB", "1GiB", "512KiB", "64MB" (decimal), "64M" (binary, as dd has it).
/// Throws std::invalid_argument: empty, negative, not a number, a fraction of a byte, or above SIZE_MAX.
std::size_t parseSize(const std::string& text);

/// "64 MiB", "1.5 GiB", "512 B": for people.
std::string formatSize(std::size_t bytes);

}  // namespace ucudnn
