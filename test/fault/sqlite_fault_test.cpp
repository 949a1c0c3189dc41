// Every call into SQLite fails once, and all that may be lost is the one measurement.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "../support/own_measurements.hpp"
#include "../support/slowness.hpp"
#include "../support/temporary_directory.hpp"
#include "cache/database.hpp"
#include "sqlite_workload.hpp"

namespace ucudnn {
namespace {

using test::faultMachine;
using test::faultProblem;
using test::isWhole;
using test::kProblems;
using test::loadOwn;

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct ClientRun {
  test::TemporaryDirectory directory;
  std::string database = directory.file("db");
  std::string log = directory.file("log");
  std::string errors = directory.file("stderr");
  int status = -1;  ///< as waitpid gives it
};

/// Runs the client with the N-th call failing (0: none), and counts the calls.
void runClient(ClientRun& run, long failing, int code) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr unsigned kSecondsForAHang = 100;
    ::alarm(kSecondsForAHang * test::kSlowness);
    ::setenv("LD_PRELOAD", UCUDNN_SQLITE_FAULT_LIBRARY, 1);
    ::setenv(
        "ASAN_OPTIONS", "verify_asan_link_order=0", 1);  // Ours comes before a sanitizer's library.
    ::setenv("UCUDNN_SQLITE_FAIL_CALL", std::to_string(failing).c_str(), 1);
    ::setenv("UCUDNN_SQLITE_FAIL_CODE", std::to_string(code).c_str(), 1);
    ::setenv("UCUDNN_SQLITE_COUNT_CALLS", "1", 1);
    const int errors = ::open(run.errors.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(errors, STDERR_FILENO);
    ::execl(UCUDNN_SQLITE_FAULT_CLIENT, "client", run.database.c_str(), run.log.c_str(), nullptr);
    ::_exit(127);
  }
  ASSERT_EQ(child, ::waitpid(child, &run.status, 0));
}

long callsOf(const ClientRun& run) {
  std::smatch match;
  const std::string errors = contents(run.errors);
  return std::regex_search(errors, match, std::regex(R"(^sqlite calls: (\d+)\n$)"))
             ? std::stol(match[1])
             : -1;
}

std::string integrityOf(const std::string& path) {
  sqlite3* connection = nullptr;
  std::string result;
  if (sqlite3_open(path.c_str(), &connection) == SQLITE_OK) {
    const auto keep = [](void* out, int, char** values, char**) {
      *static_cast<std::string*>(out) += values[0];
      return 0;
    };
    sqlite3_exec(connection, "PRAGMA integrity_check", keep, &result, nullptr);
  }
  sqlite3_close(connection);
  return result;
}

/// How many of the problems are not in the database; those that are must be whole.
int lostProblems(const std::string& path) {
  Database database(path);
  int lost = 0;
  for (int i = 0; i < kProblems; ++i) {
    const StoredMeasurements found = loadOwn(database, faultMachine(), faultProblem(i));
    lost += found.empty() ? 1 : 0;
    EXPECT_TRUE(found.empty() || isWhole(found, i)) << faultProblem(i);
  }
  return lost;
}

struct Fault {
  const char* name;
  int code;
  int mostLost;  ///< problems, of kProblems
};

class SqliteFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(SqliteFaultTest, AnyCallMayFail) {
  const Fault fault = GetParam();
  ClientRun undisturbed;
  runClient(undisturbed, 0, fault.code);
  ASSERT_EQ(0, undisturbed.status);
  ASSERT_EQ("", contents(undisturbed.log));
  ASSERT_EQ(0, lostProblems(undisturbed.database));
  const long calls = callsOf(undisturbed);
  ASSERT_GT(calls, 50) << "the fault library is not in place";
  int runsWithLoss = 0;
  for (long n = 1; n <= calls; ++n) {
    SCOPED_TRACE("failing call " + std::to_string(n) + " of " + std::to_string(calls));
    ClientRun disturbed;
    runClient(disturbed, n, fault.code);
    EXPECT_EQ(0, disturbed.status);
    const std::string log = contents(disturbed.log);
    EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 1) << log;
    EXPECT_EQ("ok", integrityOf(disturbed.database));
    const int lost = lostProblems(disturbed.database);
    EXPECT_LE(lost, fault.mostLost) << log;
    EXPECT_TRUE(lost == 0 || !log.empty()) << "lost in silence";
    runsWithLoss += lost > 0 ? 1 : 0;
  }
  EXPECT_GT(runsWithLoss, 0) << "no failure was felt";
}

INSTANTIATE_TEST_SUITE_P(Codes,
                         SqliteFaultTest,
                         ::testing::Values(Fault{"IoError", SQLITE_IOERR, 1},
                                           Fault{"OutOfMemory", SQLITE_NOMEM, 1},
                                           Fault{"Full", SQLITE_FULL, kProblems},
                                           Fault{"Corrupt", SQLITE_CORRUPT, kProblems}),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace ucudnn
