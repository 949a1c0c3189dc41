// The command `ucudnn`. It must start where the loader finds no cuDNN and no SQLite: so it runs
// programs and answers --help and `info` itself, and becomes another program for what needs them.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "tool/command_line.hpp"
#include "tool/failure.hpp"
#include "tool/info.hpp"
#include "tool/run.hpp"

namespace {

using ucudnn::tool::Task;

int become(const char* name, char** argv) {
  const std::string program = ucudnn::tool::besideThisProgram(".", name);
  ::execv(program.c_str(), argv);
  throw std::runtime_error(program + ": " + std::strerror(errno));
}

int carryOut(int argc, char** argv) {
  ucudnn::tool::ignoreBrokenPipes();
  // The program that this process becomes opens the log.
  const auto line = ucudnn::tool::parseCommandLine({argv + 1, argv + argc}, [] {
    return ucudnn::settingsFromEnvironment([](const char* name) { return std::getenv(name); });
  });
  switch (line.task) {
    case Task::kPrint:
      std::cout << line.text;
      return 0;
    case Task::kInfo:
      return ucudnn::tool::info(line.verboseInfo);
    case Task::kDatabase:
      // Which machines are others, only the device says.
      return become(line.database.otherMachines ? "ucudnn-commands" : "ucudnn-database", argv);
    default:
      return become("ucudnn-commands", argv);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return ucudnn::tool::exitStatusOf([&] {
    if (argc > 1 && std::strcmp(argv[1], "run") == 0)
      return ucudnn::tool::run({argv + 2, argv + argc});
    return carryOut(argc, argv);
  });
}
