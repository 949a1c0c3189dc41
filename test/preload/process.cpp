#include "preload/process.hpp"

#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "support/temporary_directory.hpp"

namespace ucudnn::test {

std::string readText(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string> linesOf(const std::string& path) {
  std::ifstream stream(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Outcome shell(const std::string& line) {
  const TemporaryDirectory directory;
  const std::string out = directory.file("out"), err = directory.file("err");
  const int status = std::system(("{ " + line + "; } >" + out + " 2>" + err).c_str());
  Outcome outcome;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.output = readText(out);
  outcome.error = readText(err);
  return outcome;
}

std::string preloading(const std::string& libraries) {
  const std::string sanitizer = SANITIZER;
  if (sanitizer.empty() && libraries.empty()) return "";
  const bool areBoth = !sanitizer.empty() && !libraries.empty();
  return "LD_PRELOAD=" + sanitizer + (areBoth ? ":" : "") + libraries + " ";
}

std::vector<float> readResults(const std::string& path) {
  const std::string bytes = readText(path);
  std::vector<float> results(bytes.size() / sizeof(float));
  std::memcpy(results.data(), bytes.data(), results.size() * sizeof(float));
  return results;
}

}  // namespace ucudnn::test
