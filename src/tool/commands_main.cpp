// The commands of `ucudnn` that need cuDNN.
#include "tool/command_line.hpp"
#include "tool/commands.hpp"
#include "tool/database.hpp"
#include "tool/device.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/run.hpp"

namespace {

using namespace ucudnn::tool;

int carryOut(const CommandLine& line) {
  switch (line.task) {
    case Task::kBench:
      if (line.shares.dataParallel) return benchDataParallel(line.bench, line.shares, line.words);
      return line.bench.totalBytes > 0 ? benchNetwork(line.bench, line.words)
                                       : bench(line.bench, line.words);
    case Task::kPlan:
      return line.plan.totalBytes > 0 ? planNetwork(line.plan, line.words)
                                      : plan(line.plan, line.words);
    case Task::kShares:
      return shares(line.shared, line.shares, line.words);
    case Task::kCheck:
      return checkAll(line.check, line.words);
    case Task::kInfo:
      return describeHere();
    case Task::kDatabase:
      return maintainDatabase(line.database, [](int device) {
        useDevice(device);
        return machineKey(device);
      });
    default:
      throw BadInput("`ucudnn` itself does this");
  }
}

}  // namespace

int main(int argc, char** argv) {
  ignoreBrokenPipes();
  return exitStatusOf([&] {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const CommandLine line = parseCommandLine(
        arguments, [] { return ucudnn::settingsFromEnvironment(ucudnn::Reporting::kNever); });
    remarkOnSizes(arguments);
    return carryOut(line);
  });
}
