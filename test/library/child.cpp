#include "child.hpp"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "../support/slowness.hpp"

namespace ucudnn::test {
namespace {

std::vector<std::string> environmentWith(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (changes.count(text.substr(0, text.find('='))) == 0) entries.push_back(text);
  }
  for (const auto& [name, value] : changes) entries.push_back(name + "=" + value);
  return entries;
}

std::string environmentOr(const char* variable, const char* fallback) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : fallback;
}

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

void executeSql(const std::string& database, const std::string& sql) {
  sqlite3* connection = nullptr;
  char* message = nullptr;
  sqlite3_open_v2(database.c_str(), &connection, SQLITE_OPEN_READWRITE, nullptr);
  const int result = sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &message);
  const std::string why = message != nullptr ? message : sqlite3_errmsg(connection);
  sqlite3_free(message);
  sqlite3_close(connection);
  if (result != SQLITE_OK) throw std::runtime_error(database + ": " + why);
}

ChildResult runClient(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& environment) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("library_client");
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environmentWith(environment);
  const std::vector<char*> argv = pointersTo(words);
  const std::vector<char*> envp = pointersTo(variables);
  int output[2];
  if (::pipe(output) != 0) throw std::runtime_error("pipe");
  const pid_t child = ::fork();
  if (child == 0) {  // only calls that are safe in the child of a process with threads
    ::dup2(output[1], STDOUT_FILENO);
    ::dup2(output[1], STDERR_FILENO);
    ::close(output[0]);
    ::alarm(200 * kSlowness);  // a hang ends as a signal; no task of the client takes a tenth
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(output[1]);
  ChildResult result;
  char block[4096];
  for (ssize_t count; (count = ::read(output[0], block, sizeof block)) > 0;)
    result.output.append(block, static_cast<std::size_t>(count));
  ::close(output[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

/// Forces splits of algorithms unless the environment asks for other kernels. All are timed, at all
/// sizes.
ForcedSplits::ForcedSplits(const std::vector<ConvolutionCase>& cases, Operations operations)
    : environment_({{"UCUDNN_DATABASE", database()},
                    {"UCUDNN_KERNELS", environmentOr("UCUDNN_KERNELS", "legacy")},
                    {"UCUDNN_TUNING", "exhaustive"}}) {
  std::vector<std::string> arguments{operations == Operations::kThree ? "plan" : "plan-fused"};
  for (const ConvolutionCase& convolution : cases) arguments.push_back(convolution.serialized());
  // Times are all that is wanted of the simulator; a GPU knows nothing of this.
  const char* const arithmetic = operations == Operations::kThree ? "off" : "timed";
  const ChildResult child = runClient(arguments, {{"UCUDNN_SIMULATOR_ARITHMETIC", arithmetic}});
  if (child.status != 0) throw std::runtime_error("library_client plan: " + child.output);
  executeSql(
      database(),
      "UPDATE measurement SET time_ms = time_ms * 1000 WHERE size_id IN (SELECT id FROM size "
      "AS undivided WHERE batch = (SELECT max(batch) FROM size WHERE problem_id = "
      "undivided.problem_id))");
  executeSql(database(), "UPDATE measurement SET time_ms = time_ms * 30 WHERE workspace_bytes = 0");
  executeSql(database(), "UPDATE measurement SET device_ms = time_ms");
  // Whatever the limit, nothing is left to look for.
  executeSql(database(),
             "UPDATE OR REPLACE problem SET text = substr(text, 1, instr(text, ' within=') + 7) || "
             "'0' WHERE text LIKE '% within=%'");
}

void forceTiles(const std::string& database) {
  executeSql(database, "DELETE FROM measurement WHERE kernel LIKE 'eng%' AND workspace_bytes > 0");
  executeSql(database,
             "UPDATE measurement SET kernel = kernel || '_tiles=2' WHERE kernel LIKE 'eng%'");
}

void forceKernels(const std::string& database, const std::string& suffix, std::size_t bytes) {
  if (bytes > 0)
    executeSql(database,
               "UPDATE measurement SET kernel = kernel || '" + suffix + "', workspace_bytes = " +
                   std::to_string(bytes) + " WHERE kernel LIKE 'eng%' AND workspace_bytes = 0");
  executeSql(
      database,
      "DELETE FROM measurement WHERE kernel LIKE 'eng%' AND kernel NOT LIKE '%" + suffix + "'");
  executeSql(database, "UPDATE measurement SET device_ms = time_ms / 2");
}

void forcePlanes(const std::string& database, std::size_t bytes) {
  executeSql(database,
             "INSERT OR IGNORE INTO measurement SELECT size_id, 'FFT_TILING' || substr(kernel, "
             "instr(kernel, '/')) || '_planes', time_ms / 100, " +
                 std::to_string(bytes) +
                 ", 1, device_ms / 100, measured_at FROM measurement WHERE workspace_bytes = 0");
}

}  // namespace ucudnn::test
