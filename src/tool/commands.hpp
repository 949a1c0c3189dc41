// The commands: each does its work, writes its results and returns the exit status. They throw
// BadInput, DeviceError and other std::exceptions, which main() reports.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tool/options.hpp"

namespace ucudnn::tool {

/// 0: every layer ran; 1: one failed, and the report says which and why. `command` is the command
/// line, for the report.
int bench(const BenchOptions& options, const std::string& command);

/// 0: every layer was planned; 1: one failed.
int plan(const ConvolutionOptions& options, const std::string& command);

/// The same of all layers as one network in one workspace total. 0: it ran.
int benchNetwork(const BenchOptions& options, const std::string& command);

/// How the total would be divided. 0: there is a division.
int planNetwork(const ConvolutionOptions& options, const std::string& command);

/// 0, with or without a GPU.
int info();

/// Splits off the program that is to be run, and its arguments: they are its own, whatever we would
/// take them for. `takesValue`: whether the option of that name has a value behind it.
std::vector<std::string> takeCommand(std::vector<std::string>& arguments,
                                     const std::function<bool(const std::string&)>& takesValue);

/// Becomes the command. 127: there is no such command; 126: it can't be run.
int run(const RunOptions& options);

int listEntries(const DatabaseOptions& options);
int exportEntries(const DatabaseOptions& options);
int importEntries(const DatabaseOptions& options);
int mergeEntries(const DatabaseOptions& options);
int pruneEntries(const DatabaseOptions& options);

}  // namespace ucudnn::tool
