// The commands that need cuDNN: each does its work, writes its results and returns the exit status.
// They throw BadInput, DeviceError and other std::exceptions, which main() reports.
#pragma once

#include <string>

#include "tool/options.hpp"
#include "tool/share_options.hpp"

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

/// All layers data parallel over several devices. 0: it ran. REQUIRES: no device has been used.
int benchDataParallel(const BenchOptions& options,
                      const ShareOptions& asked,
                      const std::string& command);

/// The shares of several devices, from plans on each or from a database. 0: they are found.
int shares(const BenchOptions& options, const ShareOptions& asked, const std::string& command);

/// Compares what each kernel of the layers computes with sums in double. 0: all are right; 1: not.
int checkAll(const CheckOptions& options, const std::string& command);

/// `ucudnn info`: prints the versions, and the devices if there are any. Returns 0.
int describeHere();

}  // namespace ucudnn::tool
