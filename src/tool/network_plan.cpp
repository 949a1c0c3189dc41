// `ucudnn plan --total-workspace`
#include <fmt/format.h>

#include <iostream>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/network.hpp"
#include "tool/output_file.hpp"

namespace ucudnn::tool {

int planNetwork(const ConvolutionOptions& options, const std::string& command) {
  if (!workspaceDivisionAvailable())
    throw BadInput("plan --total-workspace divides it; rebuild with -DUCUDNN_USE_GLPK=ON");
  const std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  OutputFile json("--json", options.jsonFile);
  OutputFile("--lp", options.lpFile);  // a bad name is found out at once
  useDevice(options.device);
  setArithmetic(Arithmetic::kOff);  // nothing is looked at but times

  const Stream stream = makeStream();
  const Handles handles(stream.get());
  check(handles.ours().setTotalWorkspaceSize(0), "ucudnnSetTotalWorkspaceSize");
  check(handles.ours().setOptimizerBatchSizePolicy(
            static_cast<ucudnnBatchSizePolicy_t>(options.policy)),
        "ucudnnSetBatchSizePolicy");
  Network network(layers, options);
  NetworkReport report =
      network.plan(handles.ours(), {kWays.begin(), kWays.end()}, options.totalBytes);
  report.machine = describeMachine(options.device, command);
  report.settings = toJson(options);
  addStatistics(report);
  json.write([&](std::ostream& out) { out << toJson(report).dump(2) << '\n'; });
  if (!json.isStandardOutput()) writeBars(std::cout, report);
  if (options.lpFile.empty()) return 0;
  DivisionSettings settings;
  settings.totalBytes = options.totalBytes;
  if (!writeDivisionProblem(network.fronts(), settings, options.lpFile))
    throw BadInput(fmt::format("--lp: {} cannot be written", options.lpFile));
  return 0;
}

}  // namespace ucudnn::tool
