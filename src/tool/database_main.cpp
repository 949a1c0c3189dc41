// `ucudnn db`, which needs SQLite and no cuDNN.
#include "tool/command_line.hpp"
#include "tool/database.hpp"
#include "tool/failure.hpp"

int main(int argc, char** argv) {
  using namespace ucudnn;
  using namespace ucudnn::tool;
  ignoreBrokenPipes();
  return exitStatusOf([&] {
    const CommandLine line = parseCommandLine({argv + 1, argv + argc}, [] {
      return settingsFromEnvironment(Reporting::kOnce);  // there is no handle, which would report
    });
    if (line.task != Task::kDatabase) throw BadInput("`ucudnn` itself does this");
    return maintainDatabase(line.database, nullptr);
  });
}
