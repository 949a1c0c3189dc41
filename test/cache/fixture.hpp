// Shared by the tests of the cache: keys, values, and a look into the file by way of SQLite itself.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "../support/own_measurements.hpp"
#include "../support/slowness.hpp"
#include "../support/temporary_directory.hpp"
#include "cache/database.hpp"
#include "support/log.hpp"

namespace ucudnn::test {

inline MachineKey machine(const std::string& deviceName = "NVIDIA H200") {
  MachineKey key;
  key.deviceName = deviceName;
  key.computeCapability = 90;
  key.multiprocessorCount = 132;
  key.driverVersion = 13000;
  key.cudaVersion = 13000;
  key.cudnnVersion = 91900;
  return key;
}

/// A size with `kernels` kernels whose values follow from `seed`.
inline StoredSize sizeOf(int kernels, int seed = 0) {
  StoredSize size;
  size.coveredBytes = static_cast<std::size_t>(1000 + seed);
  for (int i = 0; i < kernels; ++i) {
    size.kernels.push_back(StoredMeasurement{"kernel " + std::to_string(i),
                                             0.1 * seed + i,
                                             static_cast<std::size_t>(512 * i + seed),
                                             i % 2 == 0,
                                             0.05 * seed + i});
  }
  return size;
}

/// An order-independent text of measurements, for comparison.
inline std::string describe(const StoredMeasurements& measurements) {
  std::ostringstream text;
  text.precision(17);
  for (const auto& [batch, size] : measurements) {
    text << batch << " covers " << size.coveredBytes << ":";
    std::map<std::string, std::string> kernels;
    for (const auto& kernel : size.kernels) {
      std::ostringstream values;
      values.precision(17);
      values << " " << kernel.timeMs << " ms " << kernel.deviceMs << " ms " << kernel.workspaceBytes
             << " B" << (kernel.deterministic ? " deterministic" : "");
      if (kernel.error != 0) values << " error " << kernel.error;
      kernels[kernel.kernel] += values.str();
    }
    for (const auto& [name, values] : kernels) text << "\n  " << name << values;
    text << "\n";
  }
  return text.str();
}

/// Runs SQL on a file as any other program would; the first column of the last row.
inline std::string sql(const std::string& path, const std::string& statements) {
  sqlite3* connection = nullptr;
  EXPECT_EQ(SQLITE_OK, sqlite3_open(path.c_str(), &connection));
  std::string last;
  char* error = nullptr;
  sqlite3_exec(
      connection,
      statements.c_str(),
      [](void* out, int, char** values, char**) {
        *static_cast<std::string*>(out) = values[0] == nullptr ? "NULL" : values[0];
        return 0;
      },
      &last,
      &error);
  EXPECT_EQ(nullptr, error) << error;
  sqlite3_free(error);
  EXPECT_EQ(SQLITE_OK, sqlite3_close(connection));
  return last;
}

/// Copies a database of an older version while it is in use: what `change` has changed is only in
/// its write-ahead log.
inline void copyWithLog(const std::string& path,
                        const std::string& copy,
                        const std::string& change) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(SQLITE_OK, sqlite3_open(path.c_str(), &connection));
  const std::string statements =
      "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + change;
  EXPECT_EQ(SQLITE_OK, sqlite3_exec(connection, statements.c_str(), nullptr, nullptr, nullptr));
  for (const char* suffix : {"", "-wal", "-shm"})
    EXPECT_TRUE(std::filesystem::copy_file(path + suffix, copy + suffix)) << suffix;
  EXPECT_EQ(SQLITE_OK, sqlite3_close(connection));
}

inline std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Runs `body` in a child; gtest's failures there become its exit status, and its output is seen.
inline void inChild(const std::function<void()>& body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr unsigned kSecondsForADeadlock = 100;
    ::alarm(kSecondsForADeadlock * kSlowness);
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
}

/// Permissions do not bind root, so a root that runs the tests becomes somebody else for a while.
inline void becomeSomebodyElse() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0) {
    ASSERT_EQ(0, ::setresuid(kNobody, kNobody, kNobody));
  }
}

/// A process that may write files of so many bytes only, as if the disk were full from there on;
/// writing more would end it by SIGXFSZ.
inline void limitFileSize(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &limit));
}

/// A database's path in a directory of its own, and the log in a file beside it.
class CacheFixture : public ::testing::Test {
 protected:
  CacheFixture() { Log::instance().configure(LogLevel::kWarn, directory_.file("log")); }
  ~CacheFixture() override { Log::instance().configure(LogLevel::kWarn, ""); }

  std::string logged() const { return contents(directory_.file("log")); }

  void expectNoWarning() const { EXPECT_EQ("", logged()); }

  /// One line, which names the file and holds `reason`.
  void expectOneWarning(const std::string& reason) const {
    const std::string log = logged();
    EXPECT_EQ(1, std::count(log.begin(), log.end(), '\n')) << log;
    EXPECT_NE(std::string::npos, log.find("[warn]")) << log;
    EXPECT_NE(std::string::npos, log.find(path_)) << log;
    EXPECT_NE(std::string::npos, log.find(reason)) << log;
  }

  /// Expects that the database answers as if it were empty, again and again, after one warning.
  void expectNoCache(Database& database, const std::string& reason) {
    for (int i = 0; i < 5; ++i) {
      database.store(machine(), "problem", {{1, sizeOf(2)}});
      EXPECT_TRUE(loadOwn(database, machine(), "problem").empty());
    }
    expectOneWarning(reason);
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("cache ?#%.db");  // awkward where a path is taken for a URI
};

}  // namespace ucudnn::test
