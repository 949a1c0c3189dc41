#include "tool/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>

#include "support/settings.hpp"
#include "support/sizes.hpp"
#include "support/text.hpp"
#include "tool/failure.hpp"
#include "tool/help.hpp"
#include "tool/options.hpp"

namespace ucudnn::tool {
namespace {

/// The settings that a program is run with.
struct RunOptions {
  std::optional<std::size_t> limitBytes, totalBytes;
  std::string database;  ///< empty: as in the environment
  bool noDatabase = false;
  std::string trace;  ///< as the database
  bool report = false;
  bool tune = false;
  std::optional<bool> replay;
  std::vector<std::string> command;  ///< split off before: for the help alone
};

void addOptions(CLI::App& app, RunOptions& o) {
  constexpr const char* kWorkspace = "Workspace";
  constexpr const char* kMeasuring = "Measuring";
  constexpr const char* kOutput = "Output";
  app.add_option_function<std::string>(
         "--workspace-limit",
         [&o](const std::string& text) {
           o.limitBytes = parseSizeOption("--workspace-limit", text);
         },
         "a cap on each convolution's workspace, whatever the program asks for or passes, as "
         "256MiB; default: UCUDNN_WORKSPACE_LIMIT, none")
      ->type_name("SIZE")
      ->group(kWorkspace);
  app.add_option_function<std::string>(
         "--total-workspace",
         [&o](const std::string& text) {
           o.totalBytes = parseSizeOption("--total-workspace", text);
         },
         "one workspace that all convolutions share, which μ-cuDNN allocates; default: "
         "UCUDNN_TOTAL_WORKSPACE_SIZE, none")
      ->type_name("SIZE")
      ->group(kWorkspace);
  CLI::Option* const database =
      app.add_option("--database",
                     o.database,
                     "where to keep measurements: an SQLite file, or a folder, with a slash at its "
                     "end; default: UCUDNN_DATABASE, else $XDG_CACHE_HOME/ucudnn/, else "
                     "~/.cache/ucudnn/")
          ->type_name("FILE")
          ->group(kMeasuring);
  app.add_flag("--no-database", o.noDatabase, "keep no measurements")
      ->excludes(database)
      ->group(kMeasuring);
  app.add_flag("--tune",
               o.tune,
               "measure each convolution when it is first seen, however long that takes")
      ->group(kMeasuring);
  app.add_option_function<std::string>(
         "--replay",
         [&o](const std::string& text) { o.replay = parseReplay(text); },
         "on: calls that repeat are launched as CUDA graphs, in 64 MiB (UCUDNN_GRAPH_MEMORY). Not "
         "for a program where one thread waits for the whole device and others train; default: off")
      ->type_name("SWITCH")
      ->group(kMeasuring);
  app.add_flag("--report", o.report, "when the program ends, sum up on stderr what calls did")
      ->group(kOutput);
  app.add_option("--trace", o.trace, "write a line for each call there; %p: the process id")
      ->type_name("FILE")
      ->group(kOutput);
  app.add_option("COMMAND", o.command, "the program and its arguments")->type_name("");
  app.footer(
      "--workspace-limit is a cap. The --limit of `ucudnn bench` and `ucudnn plan` is what a "
      "query\n"
      "asks for.\n\n"
      "Exit status: the program's; 127 if there is no such program, 126 if it cannot be run.");
}

/// Splits off the program that is to be run, and its arguments: they are its own, whatever we would
/// take them for.
std::vector<std::string> takeCommand(std::vector<std::string>& arguments, const CLI::App& app) {
  const auto takesValue = [&](const std::string& name) {
    const CLI::Option* const option = app.get_option_no_throw(name);
    return option != nullptr && option->get_expected_max() > 0;
  };
  std::size_t place = 0;
  while (place < arguments.size() && arguments[place][0] == '-' && arguments[place] != "--")
    place += takesValue(arguments[place]) ? 2 : 1;
  place = std::min(place, arguments.size());
  const bool isMarked = place < arguments.size() && arguments[place] == "--";
  const auto end = arguments.begin() + static_cast<std::ptrdiff_t>(place);
  std::vector<std::string> command(end + (isMarked ? 1 : 0), arguments.end());
  arguments.erase(end, arguments.end());
  return command;
}

/// Beside libucudnn.so, in the build tree as where it is installed.
std::string preloadLibrary() {
  std::string path = besideThisProgram(UCUDNN_LIBRARIES, "libucudnn_preload.so");
  if (!std::filesystem::exists(path)) throw BadInput(path + " is missing");
  // The loader takes both for the end of a name.
  if (path.find_first_of(" :") != std::string::npos)
    throw BadInput(fmt::format("\"{}\" can't be loaded: it has a space or a colon", excerpt(path)));
  return path;
}

void setVariable(const char* name, const std::string& value) {
  if (::setenv(name, value.c_str(), 1) != 0) throw std::bad_alloc();
}

/// The program may change its folder.
void setFile(const char* name, const std::string& file) {
  if (!file.empty()) setVariable(name, std::filesystem::absolute(file).string());
}

void setDatabase(const RunOptions& options) {
  constexpr const char* kName = "UCUDNN_DATABASE";
  if (options.noDatabase)
    setVariable(kName, "");
  else if (!options.database.empty())
    setFile(kName, options.database);
  else if (std::getenv(kName) == nullptr)  // set to nothing: none
    setVariable(kName, cacheFolder());
}

/// Sets a size with its unit, so that the library doesn't doubt it.
void setSize(const char* name, std::optional<std::size_t> bytes) {
  if (bytes) setVariable(name, std::to_string(*bytes) + "B");
}

void setEnvironment(const RunOptions& options) {
  setSize("UCUDNN_WORKSPACE_LIMIT", options.limitBytes);
  setSize("UCUDNN_TOTAL_WORKSPACE_SIZE", options.totalBytes);
  setDatabase(options);
  setFile("UCUDNN_TRACE", options.trace);
  if (options.report) {
    setVariable("UCUDNN_REPORT", "1");
    setVariable("UCUDNN_RUN_PROCESS", std::to_string(::getpid()));  // the program's, too
  }
  if (options.tune) setVariable("UCUDNN_BENCHMARK_SHARE", "always");
  if (options.replay)
    setSize("UCUDNN_GRAPH_MEMORY", *options.replay ? Settings().graphMemoryBytes : 0);
  // Behind others: some (AddressSanitizer's) must be the first, and a profiler's is to see the
  // program's calls.
  const char* const others = std::getenv("LD_PRELOAD");
  const std::string before = others != nullptr && *others != '\0' ? std::string(others) + ":" : "";
  setVariable("LD_PRELOAD", before + preloadLibrary());
}

int become(const std::vector<std::string>& command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int error = errno;
  fmt::print(stderr, "ucudnn: {}: {}\n", excerpt(command[0]), std::strerror(error));
  return error == ENOENT ? 127 : 126;
}

}  // namespace

std::string besideThisProgram(const std::string& folder, const std::string& file) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path() / folder / file).lexically_normal().string();
}

std::string cacheFolder() {
  const auto folderIn = [](const char* variable, const char* below) -> std::string {
    const char* const folder = std::getenv(variable);
    // https://specifications.freedesktop.org/basedir-spec: relative ones are ignored.
    return folder != nullptr && folder[0] == '/' ? std::string(folder) + below : "";
  };
  const std::string named = folderIn("XDG_CACHE_HOME", "/ucudnn/");
  return named.empty() ? folderIn("HOME", "/.cache/ucudnn/") : named;
}

std::size_t parseSizeOption(const char* option, const std::string& text) {
  try {
    return parseSize(text);
  } catch (const std::invalid_argument& reason) {
    throw BadInput(fmt::format("{}: {}", option, reason.what()));
  }
}

void remarkOnSizes(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const std::string option = argument.substr(0, equals);
    if (option != "--limit" && option != "--workspace-limit" && option != "--total-workspace")
      continue;
    std::istringstream sizes(equals != std::string::npos ? argument.substr(equals + 1)
                             : i + 1 < arguments.size()  ? arguments[i + 1]
                                                         : "");
    for (std::string size; std::getline(sizes, size, ',');)
      if (const std::string doubt = doubtOfSize(size); !doubt.empty())
        fmt::print(stderr, "ucudnn: {}: {}\n", option, doubt);
  }
}

void expectFolderOf(const char* name, const std::string& path) {
  if (path.empty()) return;
  std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  // A folder of databases is made, and one around it.
  if (path.back() == '/') folder = folder.parent_path().parent_path();
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw BadInput(fmt::format("{}: there is no folder {}", name, excerpt(folder.string(), 200)));
}

int run(std::vector<std::string> arguments) {
  RunOptions options;
  CLI::App app(kRunDescription, "ucudnn run");
  app.formatter(helpFormatter());
  app.set_help_flag("-h,--help", "print this help");
  addOptions(app, options);
  // Refused before the program starts, which would go on without us.
  const Settings settings = settingsFromEnvironment(Reporting::kNever);
  const std::vector<std::string> command = takeCommand(arguments, app);
  const std::vector<std::string> own = arguments;
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the end
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0)
      throw BadInput(fmt::format("{} (ucudnn run --help says more)", error.what()));
    ignoreBrokenPipes();
    return app.exit(error, std::cout, std::cout);
  }
  remarkOnSizes(own);
  if (command.empty())
    throw BadInput("run: name the program to run, as in: ucudnn run python train.py");
  if (options.database.empty() && !options.noDatabase)
    expectFolderOf("UCUDNN_DATABASE", settings.databasePath);
  expectFolderOf("--database", options.database);
  if (options.trace.empty()) expectFolderOf("UCUDNN_TRACE", settings.tracePath);
  expectFolderOf("--trace", options.trace);
  setEnvironment(options);
  return become(command);
}

}  // namespace ucudnn::tool
