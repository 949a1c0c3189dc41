// The command `ucudnn`. It must start where the loader finds no cuDNN: so it runs programs itself,
// and becomes ucudnn-commands, which is linked with cuDNN, for all else.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "tool/failure.hpp"
#include "tool/run.hpp"

namespace {

int becomeCommands(char** argv) {
  const std::string program = ucudnn::tool::besideThisProgram(".", "ucudnn-commands");
  ::execv(program.c_str(), argv);
  throw std::runtime_error(program + ": " + std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  return ucudnn::tool::exitStatusOf([&] {
    if (argc > 1 && std::strcmp(argv[1], "run") == 0)
      return ucudnn::tool::run({argv + 2, argv + argc});
    return becomeCommands(argv);
  });
}
