// The command line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tool/options.hpp"
#include "tool/share_options.hpp"

namespace ucudnn::tool {

enum class Task { kPrint, kInfo, kBench, kPlan, kShares, kCheck, kDatabase };

/// The command line's request.
struct CommandLine {
  Task task = Task::kPrint;
  std::string text;   ///< of kPrint: the help, or the version
  std::string words;  ///< the command line itself, for reports
  BenchOptions bench;
  ConvolutionOptions plan;
  BenchOptions shared;  ///< of kShares
  ShareOptions shares;  ///< of kShares, and of kBench with --data-parallel
  CheckOptions check;
  DatabaseOptions database;
  bool verboseInfo = false;
};

/// Throws BadInput, one line that names the option; BadSetting if a UCUDNN_* variable is bad.
/// `environment` reads the settings that are defaults. It is not called for `info`, which shows bad
/// settings rather than refuse them.
CommandLine parseCommandLine(const std::vector<std::string>& arguments,
                             const std::function<Settings()>& environment);

}  // namespace ucudnn::tool
