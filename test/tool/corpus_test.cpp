// Every hostile input of test/corpus through the tool: refused or ignored with one short line, at
// once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>
#include <vector>

#include "support/temporary_directory.hpp"
#include "tool/process.hpp"

namespace ucudnn::test {
namespace {

using Path = std::filesystem::path;

const std::string kPlan =
    "plan --batch-size 4 --operations forward --layers conv2 '" UCUDNN_LAYERS "/alexnet.csv'";

std::vector<Path> filesOf(const char* folder) {
  const std::filesystem::directory_iterator begin(Path(UCUDNN_CORPUS) / folder);
  std::vector<Path> files(begin, {});
  std::sort(files.begin(), files.end());
  return files;
}

bool beginsWith(const Path& file, const char* prefix) {
  return file.filename().string().rfind(prefix, 0) == 0;
}

/// Processor time of the children that have ended.
double secondsOfChildren() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Runs the tool, which must end by itself and in time, and say at most one line.
Outcome runBounded(const std::string& arguments, const std::string& environment = "") {
  const double begin = secondsOfChildren();
  const Outcome outcome = runTool(arguments, environment + " timeout 200");
  EXPECT_LT(secondsOfChildren() - begin, 5);
  EXPECT_TRUE(outcome.status >= 0 && outcome.status <= 2) << outcome.status;
  EXPECT_LE(outcome.error.size(), 500U) << outcome.error;
  const std::string line = outcome.error.substr(0, outcome.error.find('\n'));
  EXPECT_EQ(line.size() + (line.empty() ? 0 : 1), outcome.error.size()) << outcome.error;
  for (const char c : line + outcome.output)
    EXPECT_TRUE(c == '\n' || (c != '\x7f' && (c < 0 || c >= ' '))) << static_cast<int>(c);
  return outcome;
}

void expectRefused(const Outcome& outcome) {
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.error, "");
}

TEST(Corpus, LayerLists) {
  const auto files = filesOf("csv");
  EXPECT_GE(files.size(), 60U);
  for (const Path& file : files) {
    SCOPED_TRACE(file.filename());
    const Outcome outcome = runBounded("plan '" + file.string() + "'");
    if (beginsWith(file, "accepted_"))
      EXPECT_NE(outcome.output, "");
    else
      expectRefused(outcome);
  }
}

#if UCUDNN_HAVE_SQLITE
TEST(Corpus, Json) {
  const auto files = filesOf("json");
  EXPECT_GE(files.size(), 55U);
  for (const Path& file : files) {
    SCOPED_TRACE(file.filename());
    const TemporaryDirectory directory;
    const std::string database = directory.file("x.db");
    const Outcome outcome = runBounded("db import '" + file.string() + "' --database " + database);
    if (!beginsWith(file, "accepted_")) {
      expectRefused(outcome);
      EXPECT_FALSE(std::filesystem::exists(database));
    } else if (outcome.status == 0) {
      EXPECT_EQ(runBounded("db list --database " + database).status, 0);
      EXPECT_LE(runBounded(kPlan, "UCUDNN_DATABASE=" + database).status, 0);
    }
  }
}
#endif

TEST(Corpus, Plans) {
  const auto files = filesOf("plans");
  EXPECT_GE(files.size(), 45U);
  for (const Path& file : files) {
    SCOPED_TRACE(file.filename());
    const Outcome outcome = runBounded(kPlan, "UCUDNN_PLANS='" + file.string() + "'");
    if (beginsWith(file, "accepted_")) {
      EXPECT_EQ(outcome.status, 0);
      EXPECT_NE(outcome.error.find("no plan for forward"), std::string::npos);
    } else {
      expectRefused(outcome);
      EXPECT_NE(outcome.error.find(file.filename().string()), std::string::npos) << outcome.error;
    }
  }
}

/// "NAME=VALUE" in each line, with \xNN for a byte.
std::vector<std::string> variablesOf(const Path& file) {
  std::vector<std::string> variables;
  std::istringstream stream(readFile(file.string()));
  for (std::string line; std::getline(stream, line);) {
    std::string& variable = variables.emplace_back();
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line.compare(i, 2, "\\x") != 0) {
        variable += line[i];
        continue;
      }
      variable += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
      i += 3;
    }
  }
  return variables;
}

Outcome runWith(const std::vector<std::string>& variables) {
  const auto name = [](const std::string& text) { return text.substr(0, text.find('=')); };
  for (const std::string& text : variables)
    ::setenv(name(text).c_str(), text.substr(text.find('=') + 1).c_str(), 1);
  Outcome outcome = runBounded(kPlan);
  for (const std::string& text : variables) ::unsetenv(name(text).c_str());
  return outcome;
}

TEST(Corpus, Variables) {
  const auto files = filesOf("variables");
  EXPECT_GE(files.size(), 60U);
  for (const Path& file : files) {
    SCOPED_TRACE(file.filename());
    const Outcome outcome = runWith(variablesOf(file));
    if (beginsWith(file, "ignored_"))
      EXPECT_EQ(outcome.status, 0) << outcome.error;
    else
      expectRefused(outcome);
  }
}

TEST(Corpus, VariablesOfManyCharacters) {
  const std::string text(100000, 'a');  // The kernel lets no variable have more than 128 KiB.
  for (const char* name : {"UCUDNN_BATCH_SIZE_POLICY",
                           "UCUDNN_BENCHMARK_DEVICES",
                           "UCUDNN_DEFAULT_WORKSPACE_LIMIT",
                           "UCUDNN_LOG_FILE",
                           "UCUDNN_BENCHMARK_SHARE"}) {
    SCOPED_TRACE(name);
    expectRefused(runWith({std::string(name) + "=" + text}));
  }
  EXPECT_EQ(runWith({"UCUDNN_DATABASE=" + text}).status, 0);
  EXPECT_EQ(runWith({"UCUDNN_" + text + "=1"}).status, 0);
  std::vector<std::string> many;
  for (int i = 0; i < 2000; ++i) many.push_back("UCUDNN_NO_SETTING_" + std::to_string(i) + "=1");
  for (const std::string& variable : many) ::putenv(const_cast<char*>(variable.c_str()));
  const Outcome outcome = runTool(kPlan);
  for (const std::string& variable : many)
    ::unsetenv(variable.substr(0, variable.size() - 2).c_str());
  EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 10) << outcome.error;
}

TEST(Corpus, APipeAsLogFileWaitsForNobody) {
  const TemporaryDirectory directory;
  const std::string pipe = directory.file("pipe");
  ASSERT_EQ(std::system(("mkfifo " + pipe).c_str()), 0);
  expectRefused(runWith({"UCUDNN_LOG_FILE=" + pipe}));
  // A reader that leaves after the first line kills nobody.
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  short seen = 0;
  std::thread leaving([&] {
    constexpr int kHangMs = 60000;
    pollfd wanted{reader, POLLIN, 0};
    ::poll(&wanted, 1, kHangMs);
    seen = wanted.revents;
    ::close(reader);
  });
  EXPECT_EQ(runTool(kPlan, "UCUDNN_LOG_LEVEL=debug UCUDNN_LOG_FILE=" + pipe).status, 0);
  leaving.join();
  EXPECT_NE(seen & POLLIN, 0) << "nothing was logged";
}

}  // namespace
}  // namespace ucudnn::test
