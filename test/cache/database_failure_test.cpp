// Files that cannot be used: one warning, no cache, and the file is left as it was.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "fixture.hpp"

namespace ucudnn {
namespace {

using test::becomeSomebodyElse;
using test::describe;
using test::inChild;
using test::limitFileSize;
using test::loadOwn;
using test::machine;
using test::sizeOf;

class DatabaseFailureTest : public test::CacheFixture {
 protected:
  /// A good database of several pages.
  void makeDatabase() {
    Database database(path_);
    for (int i = 0; i < 50; ++i) {
      database.store(machine(), "problem " + std::to_string(i), {{1, sizeOf(20, i)}});
    }
  }

  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  void expectRefused(const std::string& reason) {
    const std::string before = test::contents(path_);
    {
      Database database(path_);
      expectNoCache(database, reason);
    }
    EXPECT_EQ(before, test::contents(path_));
  }
};

TEST_F(DatabaseFailureTest, FileThatIsNoDatabase) {
  write(std::string(10000, 'x'));
  expectRefused("file is not a database");
}

TEST_F(DatabaseFailureTest, ShortFileThatIsNoDatabase) {
  write("my measurements\n");
  expectRefused("file is not a database");
}

TEST_F(DatabaseFailureTest, AnotherApplicationsDatabase) {
  for (const char* mode : {"DELETE", "WAL"}) {
    SCOPED_TRACE(mode);
    path_ = directory_.file(mode);
    std::filesystem::remove(directory_.file("log"));
    Log::instance().configure(LogLevel::kWarn, "");
    Log::instance().configure(LogLevel::kWarn, directory_.file("log"));
    test::sql(path_, std::string("PRAGMA journal_mode = ") + mode + "; CREATE TABLE machine (id)");
    expectRefused("another application's");
  }
}

TEST_F(DatabaseFailureTest, AnotherApplicationsDatabaseWhileItIsInUse) {
  test::sql(path_, "PRAGMA journal_mode = WAL; PRAGMA application_id = 7; CREATE TABLE t (x)");
  sqlite3* other = nullptr;
  ASSERT_EQ(SQLITE_OK, sqlite3_open(path_.c_str(), &other));
  ASSERT_EQ(SQLITE_OK, sqlite3_exec(other, "INSERT INTO t VALUES (1)", nullptr, nullptr, nullptr));
  expectRefused("another application's");
  EXPECT_EQ(SQLITE_OK, sqlite3_close(other));
}

TEST_F(DatabaseFailureTest, AnotherSchemaVersion) {
  makeDatabase();
  test::sql(path_, "PRAGMA user_version = 4");
  expectRefused("schema is version 4, this build knows versions 2 and 3");
}

TEST_F(DatabaseFailureTest, TruncatedFile) {
  makeDatabase();
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  expectRefused("malformed");
}

TEST_F(DatabaseFailureTest, OverwrittenPages) {
  makeDatabase();
  std::string bytes = test::contents(path_);
  constexpr std::size_t kPageSize = 4096;
  ASSERT_GT(bytes.size(), 4 * kPageSize);
  std::fill(bytes.begin() + kPageSize, bytes.end(), '\xFF');
  write(bytes);
  expectRefused("malformed");
}

TEST_F(DatabaseFailureTest, GarbledHeader) {
  makeDatabase();
  std::string bytes = test::contents(path_);
  bytes.replace(0, 16, "SQLite format 9\n");
  write(bytes);
  expectRefused("file is not a database");
}

TEST_F(DatabaseFailureTest, DamageThatComesWhileItIsOpenIsWarnedOfOnce) {
  makeDatabase();
  Database database(path_);
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem 1").size());
  std::filesystem::resize_file(path_, 100);
  for (int i = 0; i < 5; ++i) {
    loadOwn(database, machine(), "problem " + std::to_string(i));
    database.store(machine(), "new", {{1, sizeOf(3)}});
  }
  expectOneWarning("");
}

TEST_F(DatabaseFailureTest, MissingDirectory) {
  path_ = directory_.file("missing/cache.db");
  Database database(path_);
  expectNoCache(database, "No such file or directory");
  EXPECT_FALSE(std::filesystem::exists(directory_.file("missing")));
}

TEST_F(DatabaseFailureTest, WhatIsNoFile) {
  ASSERT_EQ(0, ::mkfifo(directory_.file("pipe").c_str(), 0600));
  const std::string first = path_;
  for (const std::string& path :
       {directory_.path(), directory_.file("pipe"), std::string("/dev/full")}) {
    SCOPED_TRACE(path);
    path_ = path;
    Log::instance().configure(LogLevel::kWarn,
                              directory_.file("log of " + std::to_string(path.size())));
    Database database(path);
    database.store(machine(), "problem", {{1, sizeOf(1)}});
    EXPECT_TRUE(loadOwn(database, machine(), "problem").empty());
    const std::string log =
        test::contents(directory_.file("log of " + std::to_string(path.size())));
    EXPECT_NE(std::string::npos, log.find("not a regular file")) << log;
    EXPECT_EQ(1, std::count(log.begin(), log.end(), '\n')) << log;
  }
}

TEST_F(DatabaseFailureTest, EmptyFileIsTakenIntoUse) {
  write("");
  Database database(path_);
  database.store(machine(), "problem", {{1, sizeOf(1)}});
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size());
  expectNoWarning();
}

TEST_F(DatabaseFailureTest, SizesWithBadValuesAreIgnoredAndTheOthersKept) {
  Database(path_).store(machine(),
                        "problem",
                        {{1, sizeOf(2)},
                         {2, sizeOf(2)},
                         {3, sizeOf(2)},
                         {4, sizeOf(2)},
                         {5, sizeOf(2)},
                         {6, sizeOf(2)},
                         {7, sizeOf(0)}});
  const std::string some =
      " WHERE kernel = 'kernel 1' AND size_id = (SELECT id FROM size WHERE batch = ";
  test::sql(path_,
            "PRAGMA ignore_check_constraints = 1;"
            "UPDATE measurement SET time_ms = -1" +
                some +
                "1);"
                "UPDATE measurement SET time_ms = 9e999" +
                some +
                "2);"
                "UPDATE measurement SET workspace_bytes = -1" +
                some +
                "3);"
                "UPDATE size SET covered_bytes = -1 WHERE batch = 4;"
                "UPDATE size SET batch = 0 WHERE batch = 5;"
                "INSERT INTO size SELECT NULL, machine_id, problem_id, 3000000000, 1, 1 FROM size "
                "WHERE batch = 7;"
                "UPDATE measurement SET kernel = ''" +
                some + "6)");
  Database database(path_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(describe({{7, sizeOf(0)}}), describe(loadOwn(database, machine(), "problem")));
  }
  expectOneWarning("not valid");
  database.store(machine(), "problem", {{1, sizeOf(2)}});
  EXPECT_EQ(2U, loadOwn(database, machine(), "problem").size())
      << "measured again, a size is whole again";
}

class ReadOnlyDatabaseTest : public DatabaseFailureTest,
                             public ::testing::WithParamInterface<const char*> {
 protected:
  /// As a process of an older version that was killed leaves it: what it stored last is only in the
  /// write-ahead log, which nobody who can't write may read.
  void copyWithLog(const std::string& copy) {
    test::copyWithLog(path_, copy, "UPDATE measurement SET time_ms = 7");
    for (const char* suffix : {"", "-wal", "-shm"})
      ASSERT_EQ(0, ::chmod((copy + suffix).c_str(), 0444));
    path_ = copy;
  }

  StoredMeasurements expected_ = {{1, sizeOf(20, 1)}};  ///< of "problem 1"
};

/// The file is read-only, its directory, or both; with the journal that is chosen here, and with
/// the other.
TEST_P(ReadOnlyDatabaseTest, StillAnswersAndWarnsOnceOfWhatItDrops) {
  const std::string kind = GetParam();
  const std::string home = directory_.file("home");
  std::filesystem::create_directory(home);
  path_ = home + "/cache.db";
  makeDatabase();
  if (kind.find("wal") != std::string::npos) test::sql(path_, "PRAGMA journal_mode = WAL");
  if (kind.find("log") != std::string::npos) copyWithLog(home + "/copy.db");
  const bool fileWritable = kind.find("directory") != std::string::npos;
  const bool directoryWritable = kind.find("file") != std::string::npos;
  ASSERT_EQ(0, ::chmod(path_.c_str(), fileWritable ? 0666 : 0444));
  ASSERT_EQ(0, ::chmod(home.c_str(), directoryWritable ? 0777 : 0555));
  ASSERT_EQ(0, ::chmod(directory_.path().c_str(), 0755));
  const std::string before = test::contents(path_);
  inChild([this] {
    becomeSomebodyElse();
    Database database(path_);
    EXPECT_EQ(describe(expected_), describe(loadOwn(database, machine(), "problem 1")));
    expectNoWarning();
    for (int i = 0; i < 3; ++i) database.store(machine(), "new", {{1, sizeOf(1)}});
    EXPECT_TRUE(loadOwn(database, machine(), "new").empty());
    EXPECT_EQ(describe({{1, sizeOf(20, 2)}}), describe(loadOwn(database, machine(), "problem 2")));
    expectOneWarning("cannot be written");
  });
  EXPECT_EQ(before, test::contents(path_));
  ::chmod(home.c_str(), 0755);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    ReadOnlyDatabaseTest,
    ::testing::Values(
        "file", "directory", "both", "file_wal", "directory_wal", "both_wal", "both_log"),
    [](const auto& kind) { return std::string(kind.param); });

TEST_F(DatabaseFailureTest, EmptyFileThatCannotBeWritten) {
  write("");
  ASSERT_EQ(0, ::chmod(path_.c_str(), 0444));
  ASSERT_EQ(0, ::chmod(directory_.path().c_str(), 0755));
  inChild([this] {
    becomeSomebodyElse();
    Database database(path_);
    expectNoCache(database, "cannot be written");
  });
}

TEST_F(DatabaseFailureTest, UnreadableFile) {
  makeDatabase();
  ASSERT_EQ(0, ::chmod(path_.c_str(), 0));
  ASSERT_EQ(0, ::chmod(directory_.path().c_str(), 0755));
  inChild([this] {
    becomeSomebodyElse();
    Database database(path_);
    expectNoCache(database, "Permission denied");
  });
}

TEST_F(DatabaseFailureTest, FullDiskWhileItGrows) {
  makeDatabase();
  const auto size = std::filesystem::file_size(path_);
  const std::string log = directory_.file("log");
  inChild([&] {
    limitFileSize(size + 8192);
    Database database(path_);
    for (int i = 0; i < 100; ++i) {
      database.store(machine(), "new " + std::to_string(i), {{1, sizeOf(50, i)}});
    }
    expectOneWarning("");
  });
  EXPECT_EQ("ok", test::sql(path_, "PRAGMA integrity_check"));
  Database database(path_);
  for (int i = 0; i < 50; ++i) {
    const auto found = loadOwn(database, machine(), "problem " + std::to_string(i));
    EXPECT_EQ(describe({{1, sizeOf(20, i)}}), describe(found)) << i;
  }
  for (int i = 0; i < 100; ++i) {  // Each was stored whole or not at all.
    const auto found = loadOwn(database, machine(), "new " + std::to_string(i));
    if (found.empty()) continue;
    EXPECT_EQ(describe({{1, sizeOf(50, i)}}), describe(found)) << i;
  }
}

TEST_F(DatabaseFailureTest, FullDiskAtTheStart) {
  inChild([this] {
    limitFileSize(1000);
    Database database(path_);
    for (int i = 0; i < 5; ++i) {
      database.store(machine(), "problem", {{1, sizeOf(2)}});
      EXPECT_TRUE(loadOwn(database, machine(), "problem").empty());
    }
    expectOneWarning("");
  });
  Database database(path_);
  database.store(machine(), "problem", {{1, sizeOf(2)}});
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size()) << "nothing is left in the way";
}

}  // namespace
}  // namespace ucudnn
