// The data that the database keeps while all goes well.
#include "cache/database.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "../support/slowness.hpp"
#include "fixture.hpp"

namespace ucudnn {
namespace {

using test::describe;
using test::loadOwn;
using test::machine;
using test::sizeOf;

class DatabaseTest : public test::CacheFixture {};

TEST_F(DatabaseTest, EmptyAtFirstAndMadeOnFirstUseOnly) {
  Database database(path_);
  EXPECT_NE(0, ::access(path_.c_str(), F_OK));
  EXPECT_TRUE(loadOwn(database, machine(), "problem").empty());
  EXPECT_EQ(0, ::access(path_.c_str(), F_OK));
  expectNoWarning();
}

TEST_F(DatabaseTest, NoPathMeansNoCacheAndNoWarning) {
  Database database("");
  database.store(machine(), "problem", {{1, sizeOf(1)}});
  EXPECT_TRUE(loadOwn(database, machine(), "problem").empty());
  expectNoWarning();
}

TEST_F(DatabaseTest, KeepsEverythingFromOneProcessToTheNext) {
  StoredMeasurements stored = {{1, sizeOf(3, 1)}, {2, sizeOf(0, 2)}, {256, sizeOf(8, 3)}};
  stored[256].coveredBytes = std::numeric_limits<std::size_t>::max();
  stored[256].kernels[0].timeMs = 0;
  stored[256].kernels[1].timeMs = 1.0 / 3;
  stored[256].kernels[2].workspaceBytes = std::size_t{1} << 40;
  stored[1].kernels[0].kernel = "kernel with 'quotes', \"more\"; DROP TABLE size; μ";
  const std::string problem = "conv'; n=256 μ\n";
  Database(path_).store(machine(), problem, stored);
  Database again(path_);
  EXPECT_EQ(describe(stored), describe(loadOwn(again, machine(), problem)));
  EXPECT_TRUE(loadOwn(again, machine(), "another problem").empty());
  EXPECT_EQ("ok", test::sql(path_, "PRAGMA integrity_check"));
  expectNoWarning();
}

TEST_F(DatabaseTest, LargeFilesAreReadToo) {
  const StoredMeasurements many = {{1, sizeOf(5000)}};
  Database(path_).store(machine(), "many rows", many);
  EXPECT_EQ(describe(many), describe(loadOwn(Database(path_), machine(), "many rows")));
  for (int i = 0; i < 6; ++i)
    Database(path_).store(machine(), "more " + std::to_string(i), {{i + 1, sizeOf(5000)}});
  EXPECT_LT(128 * 4096U, std::filesystem::file_size(path_));
  Database all(path_);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(5000U, loadOwn(all, machine(), "more " + std::to_string(i)).at(i + 1).kernels.size());
  EXPECT_EQ(describe(many), describe(loadOwn(all, machine(), "many rows")));
  expectNoWarning();
}

// In a file that is read as a whole, and in one in which a problem is looked up.
TEST_F(DatabaseTest, WhatIsKeptBehindAProblemsTextComesWithIt) {
  const char* const kTexts[] = {
      "a", "a asked all", "a b c", "a\tb", "a!", "a!b", "ab", "b a", "A x"};
  for (int i = 0; i < 9; ++i) Database(path_).store(machine(), kTexts[i], {{i + 1, sizeOf(1)}});
  for (const bool isLarge : {false, true}) {
    Database database(path_);
    const std::string expected = "[] " + describe({{1, sizeOf(1)}}) + "[asked all] " +
                                 describe({{2, sizeOf(1)}}) + "[b c] " + describe({{3, sizeOf(1)}});
    for (int i = 0; i < 2; ++i) {  // asked again it is still there
      std::string found;
      for (const auto& [text, measurements] : database.loadAll(machine(), "a"))
        found += "[" + text + "] " + describe(measurements);
      EXPECT_EQ(expected, found);
    }
    EXPECT_EQ(describe({{7, sizeOf(1)}}), describe(loadOwn(database, machine(), "ab")));
    EXPECT_TRUE(database.loadAll(machine(), "a asked").count("") == 0);
    EXPECT_TRUE(database.loadAll(machine(), "c").empty());
    if (!isLarge) Database(path_).store(machine(), "many rows", {{1, sizeOf(5000)}});
  }
  expectNoWarning();
}

TEST_F(DatabaseTest, EachPartOfTheMachineCounts) {
  const std::vector<std::function<void(MachineKey&)>> changes = {
      [](MachineKey& key) { key.deviceName = "NVIDIA H100"; },
      [](MachineKey& key) { key.computeCapability = 80; },
      [](MachineKey& key) { key.multiprocessorCount = 114; },
      [](MachineKey& key) { key.driverVersion = 12000; },
      [](MachineKey& key) { key.cudaVersion = 12000; },
      [](MachineKey& key) { key.cudnnVersion = 90000; },
      [](MachineKey& key) { key.simulated = true; },
  };
  Database database(path_);
  database.store(machine(), "problem", {{1, sizeOf(1)}});
  for (std::size_t i = 0; i < changes.size(); ++i) {
    MachineKey other = machine();
    changes[i](other);
    EXPECT_TRUE(loadOwn(database, other, "problem").empty()) << i;
    const StoredMeasurements own = {{1, sizeOf(2, static_cast<int>(i) + 1)}};
    database.store(other, "problem", own);
    EXPECT_EQ(describe(own), describe(loadOwn(database, other, "problem"))) << i;
  }
  EXPECT_EQ(describe({{1, sizeOf(1)}}), describe(loadOwn(database, machine(), "problem")));
}

TEST_F(DatabaseTest, StoringAgainReplacesKernelsOneByOneAndKeepsTheLargerBound) {
  Database database(path_);
  database.store(machine(), "problem", {{4, {5000, {{"a", 1, 10, true}, {"b", 2, 20, true}}}}});
  database.store(machine(), "problem", {{4, {3000, {{"b", 3, 30, false}, {"c", 4, 40, true}}}}});
  const StoredMeasurements expected = {
      {4, {5000, {{"a", 1, 10, true}, {"b", 3, 30, false}, {"c", 4, 40, true}}}}};
  EXPECT_EQ(describe(expected), describe(loadOwn(database, machine(), "problem")));
  database.store(machine(), "problem", {{4, {7000, {}}}, {8, sizeOf(1)}});
  EXPECT_EQ(7000U, loadOwn(database, machine(), "problem").at(4).coveredBytes);
  EXPECT_EQ(3U, loadOwn(database, machine(), "problem").at(4).kernels.size());
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem").at(8).kernels.size());
}

TEST_F(DatabaseTest, TimesThatAreNoneAreNotStored) {
  Database database(path_);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  database.store(machine(),
                 "problem",
                 {{1,
                   {9,
                    {{"nan", nan, 0, true},
                     {"inf", infinity, 0, true},
                     {"-", -1, 0, true},
                     {"good", 1, 0, true}}}}});
  EXPECT_EQ(describe({{1, {9, {{"good", 1, 0, true}}}}}),
            describe(loadOwn(database, machine(), "problem")));
  expectNoWarning();
}

const StoredMeasurements kWithErrors = {
    {4, {100, {{"a", 1, 10, true, 1, 1e-7}, {"b", 2, 20, true, 2}, {"c", 3, 0, true, 0, 3e-4}}}}};

TEST_F(DatabaseTest, ErrorsAreKept) {
  Database(path_).store(machine(), "problem", kWithErrors);
  Database database(path_);
  EXPECT_EQ(describe(kWithErrors), describe(loadOwn(database, machine(), "problem")));
  // A time that is measured again leaves it; an error that is replaces it.
  database.store(machine(), "problem", {{4, {100, {{"a", 5, 10, true, 5}}}}});
  database.store(machine(), "problem", {{4, {100, {{"c", 3, 0, true, 0, 4e-4}}}}});
  const StoredMeasurements expected = {
      {4, {100, {{"a", 5, 10, true, 5, 1e-7}, {"b", 2, 20, true, 2}, {"c", 3, 0, true, 0, 4e-4}}}}};
  EXPECT_EQ(describe(expected), describe(loadOwn(database, machine(), "problem")));
  expectNoWarning();
}

TEST_F(DatabaseTest, AFileOfBeforeIsReadAndGetsErrorsWhenTheFirstIsStored) {
  Database before(path_), other(path_);
  before.store(machine(), "problem", {{1, sizeOf(3)}});
  EXPECT_EQ("2", test::sql(path_, "PRAGMA user_version")) << "an older version can use it";
  EXPECT_EQ(describe({{1, sizeOf(3)}}), describe(loadOwn(other, machine(), "problem")));
  EXPECT_EQ(describe({{1, sizeOf(3)}}), describe(loadOwn(other, machine(), "problem")));

  before.store(machine(), "problem", kWithErrors);
  EXPECT_EQ("3", test::sql(path_, "PRAGMA user_version"));
  const StoredMeasurements all = {{1, sizeOf(3)}, *kWithErrors.begin()};
  for (Database* const database : {&before, &other})  // which had it open
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(describe(all), describe(loadOwn(*database, machine(), "problem")));
  other.store(machine(), "problem", {{2, sizeOf(1)}});
  EXPECT_EQ(3U, loadOwn(Database(path_), machine(), "problem").size());
  expectNoWarning();
}

TEST_F(DatabaseTest, ErrorsThatAreNoneAreNotStored) {
  Database database(path_);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  database.store(machine(),
                 "problem",
                 {{1,
                   {9,
                    {{"nan", 1, 0, true, 1, nan},
                     {"inf", 1, 0, true, 1, infinity},
                     {"-", 1, 0, true, 1, -1},
                     {"good", 1, 0, true, 1, 1e-7}}}}});
  EXPECT_EQ(describe({{1, {9, {{"good", 1, 0, true, 1, 1e-7}}}}}),
            describe(loadOwn(database, machine(), "problem")));
  expectNoWarning();
}

TEST_F(DatabaseTest, FileIsMarkedAndNotWritableByAll) {
  const mode_t before = ::umask(0);
  Database(path_).store(machine(), "problem", {{1, sizeOf(1)}});
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(0, ::stat(path_.c_str(), &status));
  EXPECT_EQ(0U, status.st_mode & (S_IWGRP | S_IWOTH));
  EXPECT_EQ(std::to_string(0x7543444E), test::sql(path_, "PRAGMA application_id"));
  EXPECT_EQ("2", test::sql(path_, "PRAGMA user_version"));
}

TEST_F(DatabaseTest, ProcessThatExitsLeavesAllInTheOneFile) {
  EXPECT_EXIT(
      {
        auto* const neverDestroyed = new Database(path_);
        neverDestroyed->store(machine(), "problem", {{1, sizeOf(3)}});
        std::exit(0);
      },
      ::testing::ExitedWithCode(0),
      "");
  EXPECT_FALSE(std::filesystem::exists(path_ + "-wal"));
  EXPECT_EQ(describe({{1, sizeOf(3)}}), describe(loadOwn(Database(path_), machine(), "problem")));
}

TEST_F(DatabaseTest, ProcessThatDiesLosesNothingThatItStored) {
  EXPECT_EXIT(
      {
        Database database(path_);
        database.store(machine(), "problem", {{1, sizeOf(3)}});
        ::kill(::getpid(), SIGKILL);
      },
      ::testing::KilledBySignal(SIGKILL),
      "");
  EXPECT_EQ(describe({{1, sizeOf(3)}}), describe(loadOwn(Database(path_), machine(), "problem")));
  expectNoWarning();
}

constexpr int kWriters = 8;
constexpr int kProblemsPerWriter = 25;

/// Stores a writer's own problems, and its own batch size of a problem that all writers share.
void storeAsWriter(Database& database, int writer) {
  for (int i = 0; i < kProblemsPerWriter; ++i) {
    const int seed = writer * kProblemsPerWriter + i;
    database.store(
        machine(), "problem " + std::to_string(seed), {{1, sizeOf(2, seed)}, {2, sizeOf(0)}});
    database.store(machine(), "shared", {{seed + 1, sizeOf(1, seed)}});
  }
}

void expectAllWritersWork(const std::string& path) {
  Database database(path);
  StoredMeasurements shared;
  for (int seed = 0; seed < kWriters * kProblemsPerWriter; ++seed) {
    const StoredMeasurements own = {{1, sizeOf(2, seed)}, {2, sizeOf(0)}};
    EXPECT_EQ(describe(own),
              describe(loadOwn(database, machine(), "problem " + std::to_string(seed))));
    shared[seed + 1] = sizeOf(1, seed);
  }
  EXPECT_EQ(describe(shared), describe(loadOwn(database, machine(), "shared")));
  EXPECT_EQ("ok", test::sql(path, "PRAGMA integrity_check"));
}

TEST_F(DatabaseTest, ThreadsLoseNothing) {
  Database one(path_);
  Database other(path_);  // A second connection of the same process.
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] { storeAsWriter(writer % 2 == 0 ? one : other, writer); });
  }
  for (auto& thread : threads) thread.join();
  expectAllWritersWork(path_);
  expectNoWarning();
}

/// Runs `body` in as many children at once, which must all end with status 0 in time. They exit one
/// after another, when no body runs any more: on a busy machine, others may hold the file for
/// longer than an exit waits for it.
void inChildren(int count, const std::function<void(int)>& body) {
  const test::TemporaryDirectory turns;
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      constexpr unsigned kSecondsForADeadlock = 100;
      ::alarm(kSecondsForADeadlock * test::kSlowness);
      const int turn = ::open(turns.path().c_str(), O_RDONLY | O_DIRECTORY);
      if (::flock(turn, LOCK_SH) != 0) ::_exit(1);
      body(i);
      if (::flock(turn, LOCK_EX) != 0) ::_exit(1);
      std::exit(0);  // what others' locks have held up is stored now
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(child, ::waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
  }
}

TEST_F(DatabaseTest, ProcessesThatMakeTheFileTogetherLoseNothing) {
  inChildren(kWriters, [this](int writer) {
    // Never destroyed, as in a framework that just exits.
    static auto* const database = new Database(path_);
    storeAsWriter(*database, writer);
  });
  expectAllWritersWork(path_);
  expectNoWarning();
}

TEST_F(DatabaseTest, FirstUsersOfAFileAllSucceed) {
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    const std::string path = directory_.file("round" + std::to_string(round));
    inChildren(4, [&path](int child) {
      Database(path).store(machine(), "problem", {{child + 1, sizeOf(1)}});
    });
    EXPECT_EQ(4U, loadOwn(Database(path), machine(), "problem").size()) << round;
  }
  expectNoWarning();
}

TEST_F(DatabaseTest, ForkedChildrenUseTheirParentsDatabaseWhileItsThreadsDo) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "g++ 12's AddressSanitizer forks while another thread may hold the lock of its "
                  "allocator: now and then a child hangs at its first malloc";
#endif
  Database database(path_);
  database.store(machine(), "before", {{1, sizeOf(1)}});
  std::thread busy([&database] { storeAsWriter(database, 0); });
  inChildren(kWriters - 1, [&database](int child) {
    bool isLocked = true;  // so many writers may hold the file for longer than a load waits
    while (isLocked) {
      const auto found = loadOwn(database, machine(), "before", &isLocked);
      if (!isLocked && found.size() != 1) ::_exit(1);
    }
    storeAsWriter(database, child + 1);
  });
  busy.join();
  EXPECT_EQ(1U, loadOwn(database, machine(), "before").size());
  expectAllWritersWork(path_);
  expectNoWarning();
}

}  // namespace
}  // namespace ucudnn
