#include "tool/info.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "support/settings.hpp"
#include "support/text.hpp"
#include "tool/columns.hpp"
#include "tool/run.hpp"

namespace ucudnn::tool {
namespace {

/// The output of another program of ours (stdout and stderr), and how it ends.
struct Answer {
  int status = -1;  ///< as waitpid gives it
  std::string text;
};

Answer ask(const char* name, const char* argument) {
  const std::string program = besideThisProgram(".", name);
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execl(program.c_str(), name, argument, nullptr);
    const char* const why = std::strerror(errno);
    static_cast<void>(!::write(STDOUT_FILENO, why, std::strlen(why)));
    ::_exit(127);
  }
  ::close(ends[1]);
  Answer answer;
  char buffer[4096];
  for (ssize_t read = 1; read != 0;) {
    read = ::read(ends[0], buffer, sizeof(buffer));
    if (read > 0)
      answer.text.append(buffer, static_cast<std::size_t>(read));
    else if (read < 0 && errno != EINTR)
      break;
  }
  ::close(ends[0]);
  while (::waitpid(child, &answer.status, 0) < 0 && errno == EINTR) {
  }
  return answer;
}

/// The program that asks cuDNN and CUDA starts only if the loader finds both.
void printVersionsAndDevices() {
  const Answer answer = ask("ucudnn-commands", "info");
  if (answer.status == 0) {
    std::cout << answer.text;
    return;
  }
  std::string why(trimmed(answer.text, " \n"));
  // The loader: "PROGRAM: error while loading shared libraries: WHY".
  constexpr std::string_view kLoader = "error while loading shared libraries: ";
  if (const auto found = why.find(kLoader); found != std::string::npos)
    why.erase(0, found + kLoader.size());
  std::cout << fmt::format(
      "μ-cuDNN       {}\ncuDNN, CUDA   not found: {}\n"
      "              bench, plan and programs need them: name their folders in LD_LIBRARY_PATH\n",
      UCUDNN_VERSION_STRING,
      excerpt(why, 200));
}

std::string valueOf(const EnvironmentVariable& variable) {
  constexpr std::size_t kMostBytes = 200;  // of a value
  const char* const value = environmentValue(variable);
  if (value == nullptr || *value == '\0') return "-";
  try {
    Settings scratch;
    variable.parse(scratch, value);
  } catch (const std::invalid_argument& reason) {
    return fmt::format("{} (refused: {})", excerpt(value, kMostBytes), reason.what());
  }
  return excerpt(value, kMostBytes);
}

void printSettings(bool verbose) {
  std::vector<std::vector<std::string>> lines = {{"setting", "default", "set to"}};
  std::cout << '\n';
  for (const EnvironmentVariable& variable : environmentVariables()) {
    if (!verbose) {
      lines.push_back({variable.name, variable.defaultValue, valueOf(variable)});
      continue;
    }
    std::cout << variable.name << " = " << printable(valueOf(variable)) << '\n'
              << indented(fmt::format("{}. Accepted: {}. Default: {}",
                                      variable.help,
                                      variable.type,
                                      variable.defaultValue),
                          "    ")
              << '\n';
  }
  if (verbose) return;
  writeColumns(std::cout, lines, lines.front().size());
  std::cout << "\n`ucudnn info --verbose` says what each setting means.\n";
}

}  // namespace

int info(bool verbose) {
  printVersionsAndDevices();
  printSettings(verbose);
  return 0;
}

}  // namespace ucudnn::tool
