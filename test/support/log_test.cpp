#include "support/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "slowness.hpp"
#include "temporary_directory.hpp"

namespace ucudnn {
namespace {

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { Log::instance().configure(LogLevel::kWarn, ""); }

  std::vector<std::string> lines() const {
    std::ifstream file(path_);
    std::vector<std::string> found;
    for (std::string line; std::getline(file, line);) found.push_back(line);
    return found;
  }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_.file("log");
};

/// Runs `body` in a child, which must exit with 0 before the time is up (a deadlock would outlast
/// it).
template <typename Body>
void expectChildEnds(Body body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr unsigned kSecondsForADeadlock = 100;
    ::alarm(kSecondsForADeadlock * test::kSlowness);
    body();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_EQ(0, status) << "exit status or signal of the child";
}

TEST_F(LogTest, EachLevelLetsThroughItselfAndWhatIsWorse) {
  const std::vector<LogLevel> levels = {
      LogLevel::kError, LogLevel::kWarn, LogLevel::kInfo, LogLevel::kDebug};
  const std::vector<const char*> names = {"off", "error", "warn", "info", "debug"};
  for (std::size_t set = 0; set < names.size(); ++set) {
    const std::string path = directory_.file(names[set]);
    ASSERT_TRUE(Log::instance().configure(logLevelFromText(names[set]), path));
    for (const LogLevel level : levels) log(level, "{}", toText(level));
    path_ = path;
    const auto found = lines();
    ASSERT_EQ(set, found.size()) << names[set];
    for (std::size_t i = 0; i < set; ++i) {
      EXPECT_NE(std::string::npos, found[i].find(std::string("[") + names[i + 1] + "]"))
          << found[i];
    }
    EXPECT_FALSE(Log::instance().enabled(LogLevel::kOff));
  }
}

TEST_F(LogTest, LineHasTimeNameLevelAndMessage) {
  ASSERT_TRUE(Log::instance().configure(LogLevel::kWarn, path_));
  logWarn("{} of {{}} {}", 1, "50 %");
  const std::regex format(
      R"(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\] \[ucudnn\] \[warn\] 1 of \{\} 50 %)");
  ASSERT_EQ(1U, lines().size());
  EXPECT_TRUE(std::regex_match(lines()[0], format)) << lines()[0];
}

TEST_F(LogTest, GoesToStderrByDefault) {
  ::testing::internal::CaptureStderr();
  logWarn("asked for");
  logInfo("not asked for");
  const std::string output = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(std::string::npos, output.find("[warn] asked for\n")) << output;
  EXPECT_EQ(1, std::count(output.begin(), output.end(), '\n')) << output;
}

TEST_F(LogTest, AppendsToTheFile) {
  std::ofstream(path_) << "there before\n";
  ASSERT_TRUE(Log::instance().configure(LogLevel::kWarn, path_));
  logWarn("added");
  Log::instance().configure(LogLevel::kWarn, "");
  ASSERT_TRUE(Log::instance().configure(LogLevel::kWarn, path_));
  logWarn("again");
  ASSERT_EQ(3U, lines().size());
  EXPECT_EQ("there before", lines()[0]);
}

TEST_F(LogTest, FileThatCannotBeOpenedIsSaidOnceAndChangesNothing) {
  ASSERT_TRUE(Log::instance().configure(LogLevel::kWarn, path_));
  const std::string missing = directory_.file("missing/log");
  EXPECT_FALSE(Log::instance().configure(LogLevel::kWarn, missing));
  EXPECT_FALSE(Log::instance().configure(LogLevel::kWarn, missing));
  const auto found = lines();
  ASSERT_EQ(1U, found.size());
  EXPECT_NE(std::string::npos, found[0].find(missing)) << found[0];
  EXPECT_NE(std::string::npos, found[0].find("No such file")) << found[0];
}

TEST_F(LogTest, FullDiskAndClosedDescriptorAreBorne) {
  ASSERT_TRUE(Log::instance().configure(LogLevel::kWarn, "/dev/full"));
  errno = ENOTTY;
  logWarn("no room for this");
  EXPECT_EQ(ENOTTY, errno);
}

TEST_F(LogTest, LinesArePrintableAndBounded) {
  ASSERT_TRUE(Log::instance().configure(LogLevel::kWarn, path_));
  logWarn("a\x1b[31m\nforged {}", "\xff");
  logError("{}", std::string(1000000, 'a'));
  const auto found = lines();
  ASSERT_EQ(2U, found.size());
  EXPECT_NE(std::string::npos, found[0].find("a\\x1b[31m\\x0aforged \\xff")) << found[0];
  EXPECT_LE(found[1].size(), 499U);
  EXPECT_GE(found[1].size(), 490U);
}

TEST_F(LogTest, PipeThatNobodyReadsIsRefusedAtOnce) {
  ASSERT_EQ(0, ::mkfifo(path_.c_str(), 0600));
  expectChildEnds([this] { ::_exit(Log::instance().configure(LogLevel::kWarn, path_) ? 1 : 0); });
}

TEST_F(LogTest, ReaderOfAPipeMayBeSlowAndMayLeave) {
  ASSERT_EQ(0, ::mkfifo(path_.c_str(), 0600));
  expectChildEnds([this] {
    const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
    if (!Log::instance().configure(LogLevel::kWarn, path_)) ::_exit(1);
    logWarn("read");
    char text[200];
    if (::read(reader, text, sizeof text) < 40) ::_exit(2);
    for (int i = 0; i < 10000; ++i) logWarn("more than a pipe holds when nobody reads {}", i);
    ::close(reader);
    logWarn("to nobody");
    // Not only later: nothing is left that would kill when the signal is let through again.
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) != 0) ::_exit(3);
  });
}

TEST_F(LogTest, StderrThatNobodyReadsKillsNobody) {
  expectChildEnds([] {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(1);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    logWarn("to nobody");
  });
}

TEST_F(LogTest, ASignalThatOthersSentIsKept) {
  expectChildEnds([this] {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    ::raise(SIGPIPE);
    Log::instance().configure(LogLevel::kWarn, path_);
    logWarn("line");
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) != 1) ::_exit(1);
  });
}

TEST_F(LogTest, FileSizeLimitKillsNobody) {
  expectChildEnds([this] {
    const rlimit limit = {100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Log::instance().configure(LogLevel::kWarn, path_);
    for (int i = 0; i < 10; ++i) logWarn("a line of the log");
  });
  EXPECT_EQ(1U, lines().size() - 1);
}

TEST_F(LogTest, TakesWhatAUserNamesAsAFile) {
  for (const char* file : {"/dev/null", "/dev/stderr", "/proc/self/fd/2"})
    EXPECT_TRUE(Log::instance().configure(LogLevel::kWarn, file)) << file;
  for (const char* file : {"/tmp", "/nonexistent/log"})
    EXPECT_FALSE(Log::instance().configure(LogLevel::kWarn, file)) << file;
}

TEST_F(LogTest, ThreadsDoNotMixLines) {
  ASSERT_TRUE(Log::instance().configure(LogLevel::kInfo, path_));
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kLines; ++i)
        logInfo("{}{}", std::string(200, static_cast<char>('a' + t)), i);
    });
  }
  for (auto& thread : threads) thread.join();
  const std::regex whole(R"(.*\[info\] (a{200}|b{200}|c{200}|d{200})\d+)");
  const auto found = lines();
  EXPECT_EQ(static_cast<std::size_t>(kThreads * kLines), found.size());
  for (const auto& line : found) EXPECT_TRUE(std::regex_match(line, whole)) << line;
}

TEST_F(LogTest, ChildForkedAmidOtherThreadsLinesCanLog) {
  ASSERT_TRUE(Log::instance().configure(LogLevel::kInfo, path_));
  std::atomic<bool> done{false};
  std::thread writer([&done] {
    while (!done) logInfo("parent");
  });
  constexpr int kForks = 50;
  for (int i = 0; i < kForks; ++i) expectChildEnds([] { logInfo("child"); });
  done = true;
  writer.join();
  int children = 0;
  for (const auto& line : lines()) children += line.find("child") != std::string::npos ? 1 : 0;
  EXPECT_EQ(kForks, children);
}

TEST_F(LogTest, StaticDestructorsMayLog) {
  expectChildEnds([this] {
    struct LastWords {
      ~LastWords() { logWarn("last words"); }
    };
    static const LastWords lastWords;  // Made before the log is used, so destroyed after all of it.
    Log::instance().configure(LogLevel::kWarn, path_);
    logWarn("first words");
    std::exit(0);
  });
  ASSERT_EQ(2U, lines().size());
  EXPECT_NE(std::string::npos, lines()[1].find("last words"));
}

}  // namespace
}  // namespace ucudnn
