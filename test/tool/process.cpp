#include "tool/process.hpp"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/temporary_directory.hpp"

namespace ucudnn::test {

std::string readFile(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Outcome runTool(const std::string& arguments,
                const std::string& environment,
                const std::string& outputFile) {
  const TemporaryDirectory directory;
  const std::string out = outputFile.empty() ? directory.file("out") : outputFile;
  const std::string err = directory.file("err");
  const std::string command =
      environment + " '" UCUDNN_TOOL "' " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  Outcome outcome;
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  if (outputFile.empty()) outcome.output = readFile(out);
  outcome.error = readFile(err);
  return outcome;
}

}  // namespace ucudnn::test
