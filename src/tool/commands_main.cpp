// The commands of `ucudnn` that need cuDNN.
#include "tool/command_line.hpp"
#include "tool/failure.hpp"

int main(int argc, char** argv) {
  return ucudnn::tool::exitStatusOf([&] {
    return ucudnn::tool::parseCommandLine({argv + 1, argv + argc})();
  });
}
