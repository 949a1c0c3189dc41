// The files that `ucudnn run` keeps without being asked: where, for how many processes at once, and
// when nothing can be kept.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "preload/process.hpp"
#include "support/slowness.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn::test {
namespace {

class KeptRunTest : public ::testing::Test {
 protected:
  KeptRunTest() { std::filesystem::create_directory(home_); }

  std::string file(const std::string& name) const { return directory_.file(name); }

  /// The shell's words that run a program with a home of its own. `variables` come last.
  virtual std::string tool() const { return UCUDNN_TOOL; }
  std::string run(const std::string& options,
                  const std::string& variables = "",
                  const std::string& mode = "find") const {
    return "env -u XDG_CACHE_HOME -u UCUDNN_DATABASE HOME=" + home_ +
           " UCUDNN_KERNELS=legacy UCUDNN_BENCHMARK_SHARE=always UCUDNN_SIMULATOR_ARITHMETIC=off " +
           preloading("") + variables + " " + tool() + " run --workspace-limit 2MiB " + options +
           " " PLAIN " " + mode + " " + file("results");
  }

  /// The program runs by plans, and neither it nor its user sees more than that.
  void expectRuns(const std::string& options = "",
                  const std::string& variables = "",
                  const std::string& before = "") const {
    std::filesystem::remove(file("trace"));
    const Outcome outcome =
        shell(before + run("--trace " + file("trace") + " " + options, variables));
    EXPECT_EQ(0, outcome.status) << outcome.error;
    EXPECT_EQ("", outcome.error);
    EXPECT_EQ("workspace 1774080\ncaptures 0\n", outcome.output);
    const auto lines = linesOf(file("trace"));
    ASSERT_EQ(12U, lines.size());
    for (std::size_t i = 0; i < 9; ++i)
      EXPECT_NE(std::string::npos, lines[i].find("\tsplit")) << lines[i];
  }

  /// Runs `line` where only it sees what `mount` mounts.
  static std::string mounting(const std::string& mount, const std::string& line) {
    return "unshare -m sh -c '" + mount + " && { " + line + "; }'";
  }

  /// All that is under a folder. No file of a folder that isn't there.
  static std::vector<std::string> filesUnder(const std::string& folder) {
    std::vector<std::string> files;
    if (std::filesystem::exists(folder))
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) files.push_back(entry.path().string());
    return files;
  }
  /// The only file in the home: the one that is kept.
  std::string kept() const {
    const auto files = filesUnder(home_);
    EXPECT_EQ(1U, files.size());
    return files.empty() ? "" : files.front();
  }

  const TemporaryDirectory directory_;
  const std::string home_ = directory_.file("home");
};

TEST_F(KeptRunTest, SecondStartMeasuresNothingThatItKnows) {
  expectRuns();
  EXPECT_EQ(0U, kept().find(home_ + "/.cache/ucudnn/NVIDIA-H200-simulated_sm90")) << kept();
  const std::string before = readText(kept());
  EXPECT_EQ(0U, before.find("SQLite format 3"));
  // A measurement is stored, if only again.
  expectRuns();
  EXPECT_TRUE(before == readText(kept()));
}

/// Whether deterministic engines repeat their bits takes a check, too.
TEST_F(KeptRunTest, SecondStartChecksNothingThatItKnows) {
  const auto checks = [&](const std::string& log) {
    const std::string variables =
        "UCUDNN_KERNELS=all UCUDNN_SIMULATOR_ARITHMETIC=full UCUDNN_LOG_LEVEL=debug "
        "UCUDNN_LOG_FILE=" +
        file(log);
    EXPECT_EQ(0, shell(run("", variables, "shapes")).status);
    const auto lines = linesOf(file(log));
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find(" kernels checked in ") != std::string::npos;
    });
  };
  EXPECT_GT(checks("first"), 0);
  EXPECT_EQ(checks("second"), 0);
}

TEST_F(KeptRunTest, CacheHomeGoesFirstWhereItIsAbsolute) {
  expectRuns("", "XDG_CACHE_HOME=" + file("cache"));
  EXPECT_EQ(1U, filesUnder(file("cache/ucudnn")).size());
  EXPECT_TRUE(filesUnder(home_).empty());
  expectRuns("", "XDG_CACHE_HOME=cache");
  EXPECT_EQ(0U, kept().find(home_ + "/.cache/ucudnn/"));
}

TEST_F(KeptRunTest, WhoAsksForNoneHasNone) {
  expectRuns("--no-database");
  expectRuns("--no-database", "UCUDNN_DATABASE=" + file("named"));
  expectRuns("", "UCUDNN_DATABASE=");
  EXPECT_TRUE(filesUnder(home_).empty());
  EXPECT_FALSE(std::filesystem::exists(file("named")));
  EXPECT_EQ(2, shell(run("--no-database --database x")).status);
}

TEST_F(KeptRunTest, TuneMeasuresAtOnce) {
  for (const std::string options : {"", "--tune "}) {
    const Outcome outcome = shell("UCUDNN_BENCHMARK_SHARE=0 " + preloading("") + tool() + " run " +
                                  options + "--no-database printenv UCUDNN_BENCHMARK_SHARE");
    EXPECT_EQ(options.empty() ? "0\n" : "always\n", outcome.output);
  }
}

TEST_F(KeptRunTest, NamedFileAndFolderAreUsedInstead) {
  expectRuns("--database " + file("named"));
  EXPECT_TRUE(std::filesystem::is_regular_file(file("named")));
  expectRuns("", "UCUDNN_DATABASE=" + file("variable"));
  EXPECT_TRUE(std::filesystem::is_regular_file(file("variable")));
  expectRuns("--database " + file("folder/"));
  EXPECT_EQ(1U, filesUnder(file("folder")).size());
  EXPECT_TRUE(filesUnder(home_).empty());
}

TEST_F(KeptRunTest, OnlyRunKeeps) {
  const Outcome outcome = shell(
      "env -u XDG_CACHE_HOME -u UCUDNN_DATABASE UCUDNN_SIMULATOR_ARITHMETIC=off HOME=" + home_ +
      " UCUDNN_BENCHMARK_SHARE=always " + preloading(UCUDNN_PRELOAD) + PLAIN " find " +
      file("results"));
  EXPECT_EQ(0, outcome.status) << outcome.error;
  EXPECT_TRUE(filesUnder(home_).empty());
}

TEST_F(KeptRunTest, NothingIsMadeBeforeAConvolution) {
  EXPECT_EQ(0,
            shell("env -u XDG_CACHE_HOME -u UCUDNN_DATABASE HOME=" + home_ + " " + preloading("") +
                  UCUDNN_TOOL " run true")
                .status);
  EXPECT_TRUE(std::filesystem::is_empty(home_));
}

TEST_F(KeptRunTest, HomesThatKeepNothingAreNoTrouble) {
  std::ofstream(file("file")) << "a file";
  for (const std::string& home : {std::string(""),
                                  std::string("/nonexistent"),
                                  std::string("relative"),
                                  std::string("/proc"),  // no one may write there
                                  std::string("/dev/null"),
                                  file("file")}) {
    SCOPED_TRACE(home);
    expectRuns("", "HOME=" + home);
  }
  expectRuns("", "env -u HOME");
  EXPECT_TRUE(filesUnder(home_).empty());
}

TEST_F(KeptRunTest, ProgramsThatForkAndEndLateKeepAsOthers) {
  expectRuns();
  for (const char* const mode : {"fork", "exec", "atexit", "threads"}) {
    SCOPED_TRACE(mode);
    for (const bool isNew : {true, false}) {
      if (isNew) std::filesystem::remove_all(home_ + "/.cache");
      const Outcome outcome = shell(run("", "", mode));
      EXPECT_EQ(0, outcome.status) << outcome.error;
      EXPECT_EQ("", outcome.error);
      EXPECT_LT(0U, readText(kept()).size());
    }
    const std::string before = readText(kept());
    expectRuns();
    EXPECT_TRUE(before == readText(kept())) << "not all was kept";
  }
}

TEST_F(KeptRunTest, AnotherUsersHomeIsLeftAlone) {
  const std::string other = "setpriv --reuid=65534 --regid=65534 --clear-groups";
  if (shell(preloading("") + other + " " UCUDNN_TOOL " run true").status != 0)
    GTEST_SKIP() << "only root can become another user";
  namespace fs = std::filesystem;
  for (const std::string& folder : {directory_.path(), home_})
    fs::permissions(folder, fs::perms::all);
  // As sudo and su do that keep the environment: without a file there, and with root's.
  for (const bool isKept : {false, true}) {
    SCOPED_TRACE(isKept);
    if (isKept) expectRuns();
    const std::string before = isKept ? readText(kept()) : "";
    fs::remove(file("results"));
    const Outcome outcome = shell(run("", other));
    EXPECT_EQ(0, outcome.status) << outcome.error;
    EXPECT_EQ("", outcome.error);
    EXPECT_EQ("workspace 1774080\ncaptures 0\n", outcome.output);
    EXPECT_TRUE(before == (isKept ? readText(kept()) : ""));
    fs::remove(file("results"));
  }
  fs::remove_all(home_ + "/.cache");
  ASSERT_EQ(0, ::chown(home_.c_str(), 65534, 65534));
  expectRuns();  // root in another's home
  EXPECT_TRUE(fs::is_empty(home_));
}

TEST_F(KeptRunTest, FullDiskIsNoTrouble) {
  for (const int kilobytes : {4, 16, 32}) {
    SCOPED_TRACE(kilobytes);
    const std::string mount =
        "mount -t tmpfs -o size=" + std::to_string(kilobytes) + "k none " + home_;
    if (shell(mounting(mount, "true")).status != 0) GTEST_SKIP() << "nothing can be mounted here";
    const Outcome outcome = shell(mounting(mount, run("") + " && " + run("")));
    EXPECT_EQ(0, outcome.status) << outcome.error;
    EXPECT_EQ("", outcome.error);
    EXPECT_EQ("workspace 1774080\ncaptures 0\nworkspace 1774080\ncaptures 0\n", outcome.output);
  }
}

TEST_F(KeptRunTest, ReadOnlyHomeStillAnswers) {
  // Permissions do not bind root.
  const std::string mount =
      "mount --bind " + home_ + " " + home_ + " && mount -o remount,bind,ro " + home_;
  if (shell(mounting(mount, "! touch " + home_ + "/x")).status != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  expectRuns();
  const std::string before = readText(kept());
  for (const bool isEmpty : {false, true}) {
    SCOPED_TRACE(isEmpty);
    if (isEmpty) std::filesystem::remove_all(home_ + "/.cache");
    const Outcome outcome = shell(mounting(mount, run("")));
    EXPECT_EQ(0, outcome.status) << outcome.error;
    EXPECT_EQ("", outcome.error);
    EXPECT_EQ("workspace 1774080\ncaptures 0\n", outcome.output);
    if (!isEmpty) {
      EXPECT_TRUE(before == readText(kept()));
    }
  }
  EXPECT_TRUE(filesUnder(home_).empty());
}

/// Starts the shell's words with a process group of their own.
pid_t start(const std::string& line) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  return child;
}

TEST_F(KeptRunTest, ManyProcessesThatAreKilledLoseNothing) {
  constexpr int kProcesses = 32;
  constexpr int kKilled = 20;
  std::vector<pid_t> processes;
  for (int i = 0; i < kProcesses; ++i) {
    const std::string name = file("process" + std::to_string(i));
    processes.push_back(start(run("") + std::to_string(i) + " >" + name + " 2>&1"));
    ASSERT_GT(processes.back(), 0);
  }
  std::mt19937 random(43);
  constexpr unsigned kLongestUs = 40000 * kSlowness;
  for (int i = 0; i < kKilled; ++i) {
    ::usleep(std::uniform_int_distribution<unsigned>(0, kLongestUs)(random));
    ::kill(-processes[static_cast<std::size_t>(i)], SIGKILL);
  }
  int killed = 0;
  for (int i = 0; i < kProcesses; ++i) {
    int status = 0;
    ASSERT_EQ(processes[static_cast<std::size_t>(i)],
              ::waitpid(processes[static_cast<std::size_t>(i)], &status, 0));
    killed += WIFSIGNALED(status) ? 1 : 0;
    if (WIFSIGNALED(status)) continue;
    EXPECT_EQ(0, status) << i;
    EXPECT_EQ("workspace 1774080\ncaptures 0\n", readText(file("process" + std::to_string(i))));
  }
  EXPECT_LT(0, killed);
  // A journal of who was killed is rolled back by the next.
  expectRuns();
  const std::string before = readText(kept());
  expectRuns();
  EXPECT_TRUE(before == readText(kept())) << "what the others have measured is known";
}

/// An installation with measurements of its own.
class ShippedTest : public KeptRunTest {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    for (const char* const folder : {"bin", "bin/" UCUDNN_LIBRARIES, "share/ucudnn"})
      fs::create_directories(file(std::string("installed/") + folder));
    fs::copy_file(UCUDNN_TOOL, tool());
    for (const auto& library : fs::directory_iterator(fs::path(UCUDNN_PRELOAD).parent_path())) {
      const std::string name = library.path().filename().string();
      if (name.rfind("libucudnn", 0) == 0)
        fs::create_symlink(library.path(), file("installed/bin/" UCUDNN_LIBRARIES "/" + name));
    }
    expectRuns("--database " + file("measured"));
    ASSERT_NE("0", kernelsIn(file("measured")));
  }

  std::string tool() const override { return file("installed/bin/ucudnn"); }
  std::string shipped() const { return file("installed/share/ucudnn/measurements.db"); }

  /// Ships the measurements, with `change` (an expression of sed's) in their JSON.
  void ship(const std::string& change = "") const {
    std::filesystem::remove(shipped());
    const std::string json = file("shipped.json"), database = " --database ",
                      db = UCUDNN_TOOL " db ", changed = file("changed");
    std::filesystem::remove(changed);
    const std::string line = db + "export " + json + database + file("measured") + " && sed -i '" +
                             change + "' " + json + " && " + db + "import " + json + database +
                             changed + " && " + db + "merge --for-plans " + changed + database +
                             shipped();
    const Outcome outcome = shell(line);
    EXPECT_EQ(0, outcome.status) << outcome.error;
  }

  /// As `ucudnn db list` counts them.
  static std::string kernelsIn(const std::string& database) {
    const std::string list = shell(UCUDNN_TOOL " db list --database " + database).output;
    const auto end = list.rfind(" kernels\n");
    if (end == std::string::npos) return "none: " + list;
    return list.substr(list.rfind(' ', end - 1) + 1, end - list.rfind(' ', end - 1) - 1);
  }
};

TEST_F(ShippedTest, WhatIsShippedIsNotMeasured) {
  ship();
  const std::string before = readText(shipped());
  expectRuns();
  EXPECT_EQ("0", kernelsIn(kept()));
  EXPECT_TRUE(before == readText(shipped()));
  std::filesystem::permissions(shipped(), std::filesystem::perms::owner_read);
  expectRuns("", "HOME=/nonexistent");
}

TEST_F(ShippedTest, OnlyWhoNamesNoFileHasIt) {
  ship();
  expectRuns("--database " + file("named"));
  EXPECT_EQ(kernelsIn(file("measured")), kernelsIn(file("named")));
}

TEST_F(ShippedTest, OfAnotherVersionItAnswersNothing) {
  for (const char* const key : {"driver_version", "cudnn_version", "cuda_version"}) {
    SCOPED_TRACE(key);
    ship("s/\"" + std::string(key) + "\": [0-9]*/\"" + key + "\": 90100/");
    expectRuns();
    EXPECT_EQ(kernelsIn(file("measured")), kernelsIn(kept()));
    std::filesystem::remove_all(home_ + "/.cache");
  }
}

TEST_F(ShippedTest, IsBelievedNoMoreThanAnyOther) {
  // cuDNN says what workspace a kernel needs, and whether it is deterministic.
  ship(
      "s/\"workspace_bytes\": [0-9]*/\"workspace_bytes\": 0/; s/\"deterministic\": [a-z]*/"
      "\"deterministic\": true/");
  expectRuns();
  std::filesystem::remove_all(home_ + "/.cache");
  // No kernel is so fast.
  ship("s/\"time_ms\": [-0-9.e]*/\"time_ms\": 1e-9/");
  expectRuns();
  EXPECT_EQ(kernelsIn(file("measured")), kernelsIn(kept()));
}

TEST_F(ShippedTest, DamagedFileIsNoTrouble) {
  for (const std::string& bytes : {std::string(), std::string(8192, 'x')}) {
    std::ofstream(shipped()) << bytes;
    expectRuns();
    EXPECT_EQ(kernelsIn(file("measured")), kernelsIn(kept()));
    EXPECT_TRUE(bytes == readText(shipped()));
    std::filesystem::remove_all(home_ + "/.cache");
  }
}

}  // namespace
}  // namespace ucudnn::test
