// `ucudnn plan --total-workspace`
#include <iostream>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/network.hpp"
#include "tool/output_file.hpp"

namespace ucudnn::tool {

int planNetwork(const ConvolutionOptions& options, const std::string& command) {
  if (!workspaceDivisionAvailable())
    throw BadInput(
        "plan --total-workspace: this build divides no total; rebuild with -DUCUDNN_DIVIDE=ON");
  if (options.accuracy) throw BadInput("--accuracy does not go with --total-workspace");
  if (options.deviceBytes > 0) throw BadInput("--device-memory does not go with --total-workspace");
  const std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  OutputFile json("--json", options.jsonFile);
  expectWritablePlans(options);
  OutputFile lp("--lp", options.lpFile);
  useDevice(options.device);
  setArithmetic(Arithmetic::kOff);  // nothing is looked at but times

  const Stream stream = makeStream();
  const Handles handles(stream.get());
  check(handles.ours().setTotalWorkspaceSize(0), "ucudnnSetTotalWorkspaceSize");
  configure(handles.ours(), options);
  Network network(layers, options);
  NetworkReport report =
      network.plan(handles.ours(), {kWays.begin(), kWays.end()}, options.totalBytes);
  report.machine = describeMachine(options.device, command);
  report.settings = toJson(options);
  addStatistics(report);
  if (!json.isStandardOutput() && !lp.isStandardOutput())
    writeBars(std::cout, report, options.verbose);
  json.write([&](std::ostream& out) { out << toText(toJson(report)); });
  lp.write([&](std::ostream& out) {
    DivisionSettings settings;
    settings.totalBytes = options.totalBytes;
    out << whatIsWritten([&](const std::string& path) {
      return writeDivisionProblem(network.fronts(), settings, path);
    });
  });
  savePlans(options);
  return 0;
}

}  // namespace ucudnn::tool
