// Databases that mean no good: each is refused or ignored with one line, in time, and runs nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "../support/slowness.hpp"
#include "../support/waits.hpp"
#include "cache/maintenance.hpp"
#include "fixture.hpp"
#include "support/text.hpp"

namespace ucudnn {
namespace {

using test::describe;
using test::loadOwn;
using test::machine;
using test::sizeOf;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

/// As test::spent() has it: the machine may be busy.
constexpr std::chrono::seconds kMostTime{5 * test::kSlowness};

std::vector<std::string> corpus() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(UCUDNN_CORPUS "/databases"))
    if (entry.path().extension() == ".sql") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

StoredSize sizeOfKernels() {
  return {0, {{"FFT/fma", 0.5, 1000, true, 0.5}, {"GEMM/fma", 1, 0, true, 1}}};
}

class HostileDatabaseTest : public test::CacheFixture,
                            public ::testing::WithParamInterface<std::string> {
 protected:
  bool is(const char* kind) const { return GetParam().find(kind) == 0; }

  void makeFile() {
    if (!is("foreign_")) {
      Database database(path_);
      for (const char* problem : {"a", "b", "a asked all"})
        database.store(machine(), problem, {{8, sizeOfKernels()}, {16, sizeOfKernels()}});
    }
    test::sql(path_, test::contents(UCUDNN_CORPUS "/databases/" + GetParam() + ".sql"));
    before_ = test::contents(path_);
  }

  void expectUntouched() const {
    EXPECT_TRUE(before_ == test::contents(path_));
    for (const char* suffix : {"-wal", "-shm", "-journal"})
      EXPECT_FALSE(fs::exists(path_ + suffix)) << suffix;
  }

  /// Expects that `body` ends in time; a refusal is one short line.
  template <typename Body>
  void expectShort(const char* what, Body body) {
    const auto begin = test::spent();
    try {
      body();
    } catch (const std::runtime_error& error) {
      const std::string message = error.what();
      EXPECT_LE(message.size(), kMostMessageBytes) << what;
      EXPECT_TRUE(isPrintable(message)) << what << ": " << printable(message);
    }
    EXPECT_LT(test::spent() - begin, kMostTime) << what;
  }

  void expectOneShortWarningAtMost() const {
    const std::string log = logged();
    EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 1) << log;
    EXPECT_LE(log.size(), kMostMessageBytes + 1) << log;
    EXPECT_TRUE(log.empty() || isPrintable(log.substr(0, log.size() - 1))) << printable(log);
  }

  std::string before_;
};

TEST_P(HostileDatabaseTest, IsRefusedOrIgnoredWithOneLine) {
  makeFile();
  expectShort("load and store", [this] {
    Database database(path_);
    for (const char* problem : {"a", "b", "a asked all", "new"})
      loadOwn(database, machine(), problem);
    if (!is("rows_")) expectUntouched();
    database.store(machine(), "new", {{1, sizeOf(3)}});
    database.store(machine(), "a", {{8, sizeOf(3)}});
    EXPECT_EQ(is("rows_") ? loadOwn(database, machine(), "new").size() : 0U,
              loadOwn(database, machine(), "new").size());
  });
  expectOneShortWarningAtMost();
  if (!is("rows_")) {
    expectOneWarning(is("foreign_") ? "another application's" : "");
    expectUntouched();
  }
  constexpr std::uintmax_t kMostGrowth = 1 << 20;
  EXPECT_LT(fs::file_size(path_), before_.size() + kMostGrowth);

  const std::string good = directory_.file("good.db");
  Database(good).store(machine(), "a", {{8, sizeOf(1)}});
  expectShort("list", [this] { listDatabase(path_); });
  expectShort("export", [this] { exportDatabase(path_, directory_.file("export.json")); });
  expectShort("merge", [&] { mergeDatabase(good, path_); });
  expectShort("merge into", [&] { mergeDatabase(path_, good); });
  expectShort("prune", [this] { pruneDatabase(path_, {machine(), 1000}); });
  if (!is("rows_")) expectUntouched();
  EXPECT_EQ("ok", test::sql(good, "PRAGMA integrity_check"));
}

INSTANTIATE_TEST_SUITE_P(Corpus,
                         HostileDatabaseTest,
                         ::testing::ValuesIn(corpus()),
                         [](const auto& file) { return file.param; });

class HostileNeighbourTest : public test::CacheFixture {
 protected:
  void SetUp() override { Database(path_).store(machine(), "problem", {{1, sizeOf(3)}}); }

  void expectAll() {
    EXPECT_EQ(describe({{1, sizeOf(3)}}), describe(loadOwn(Database(path_), machine(), "problem")));
    for (const char* suffix : {"-wal", "-shm", "-journal"})
      EXPECT_FALSE(fs::exists(path_ + suffix)) << suffix;
    EXPECT_EQ("delete", test::sql(path_, "PRAGMA journal_mode"));
    expectNoWarning();
  }

  /// Expects that `body` waits for others, and for so long at most. A hundredth of the time that
  /// passes comes on top.
  static void expectWaits(std::chrono::nanoseconds most, const std::function<void()>& body) {
    const auto before = test::waited();
    const auto begin = Clock::now();
    body();
    const auto waited = test::waited() - before;
    EXPECT_LT(std::chrono::nanoseconds(0), waited);
    EXPECT_LE(waited, most + (Clock::now() - begin) / 100);
  }
};

/// Another process's connection, as far as SQLite's locks go.
class Other {
 public:
  explicit Other(const std::string& path) {
    EXPECT_EQ(SQLITE_OK, sqlite3_open(path.c_str(), &connection_));
  }
  ~Other() { EXPECT_EQ(SQLITE_OK, sqlite3_close(connection_)); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  void run(const char* sql) {
    EXPECT_EQ(SQLITE_OK, sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr))
        << sqlite3_errmsg(connection_);
  }

 private:
  sqlite3* connection_ = nullptr;
};

TEST_F(HostileNeighbourTest, ALogThatAnOlderVersionLeftIsReadAndReplaced) {
  const std::string copy = directory_.file("copy.db");
  test::copyWithLog(path_, copy, "UPDATE measurement SET workspace_bytes = 77");
  test::sql(path_, "PRAGMA journal_mode = DELETE");
  path_ = copy;
  const StoredMeasurements found = loadOwn(Database(path_), machine(), "problem");
  ASSERT_EQ(3U, found.at(1).kernels.size());
  EXPECT_EQ(77U, found.at(1).kernels[0].workspaceBytes) << "what was only in the log";
  test::sql(path_, "SELECT count(*) FROM size");
  for (const char* suffix : {"-wal", "-shm"}) EXPECT_FALSE(fs::exists(path_ + suffix)) << suffix;
  expectNoWarning();
}

TEST_F(HostileNeighbourTest, ALogOrItsIndexMayBeCutShort) {
  const std::string copy = directory_.file("log.db");
  test::copyWithLog(path_, copy, "UPDATE measurement SET workspace_bytes = 77");
  const auto logBytes = fs::file_size(copy + "-wal");
  for (const std::uintmax_t bytes :
       {std::uintmax_t{0}, std::uintmax_t{31}, logBytes / 2, logBytes - 1})
    for (const char* cut : {"-wal", "-shm"}) {
      SCOPED_TRACE(cut + std::to_string(bytes));
      path_ = directory_.file(cut + std::to_string(bytes));
      for (const char* suffix : {"", "-wal", "-shm"}) fs::copy_file(copy + suffix, path_ + suffix);
      fs::resize_file(path_ + cut, std::min(bytes, fs::file_size(path_ + cut)));
      EXPECT_EQ(3U, loadOwn(Database(path_), machine(), "problem").at(1).kernels.size());
      expectNoWarning();
    }
}

TEST_F(HostileNeighbourTest, AnIndexThatIsCutShortWhileTheFileIsOpenEndsNothing) {
  Database database(path_);
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size());
  {
    Other older(path_);
    older.run("PRAGMA journal_mode = WAL; UPDATE measurement SET time_ms = 3");
    fs::resize_file(path_ + "-shm", 0);
    bool isLocked = false;
    EXPECT_TRUE(loadOwn(database, machine(), "problem", &isLocked).empty());
    database.store(machine(), "new", {{1, sizeOf(1)}});
    fs::resize_file(path_ + "-shm", 32768);  // or the older version itself would die
  }
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size());
  EXPECT_EQ("ok", test::sql(path_, "PRAGMA integrity_check"));
}

TEST_F(HostileNeighbourTest, AJournalThatIsNoneIsNotPlayedBack) {
  for (const std::string& bytes :
       {std::string("x"),
        std::string(5000, 'x'),
        std::string(5000, '\0'),
        "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + std::string(1000, '\xff')}) {
    std::ofstream(path_ + "-journal", std::ios::binary) << bytes;
    EXPECT_EQ(1U, loadOwn(Database(path_), machine(), "problem").size());
  }
  expectNoWarning();
}

TEST_F(HostileNeighbourTest, ALockHoldsUpFor100MsInTotalAndIsTriedAgain) {
  constexpr std::chrono::milliseconds kPatience{100};
  for (const bool isOpen : {false, true}) {
    Database database(path_);
    if (isOpen) loadOwn(database, machine(), "problem");
    bool isLocked = false;
    {
      Other other(path_);
      // Without a change what the first use has read is the answer, whoever holds the file.
      other.run("UPDATE machine SET simulated = simulated");
      other.run("BEGIN EXCLUSIVE");
      expectWaits(kPatience, [&] {
        for (int i = 0; i < 20; ++i) {
          EXPECT_TRUE(loadOwn(database, machine(), "problem", &isLocked).empty());
          EXPECT_TRUE(isLocked);
          database.store(machine(), "new " + std::to_string(i), {{1 + isOpen, sizeOf(2)}});
        }
      });
      other.run("COMMIT");
    }
    EXPECT_EQ(1U, loadOwn(database, machine(), "problem", &isLocked).size());
    EXPECT_FALSE(isLocked);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(1U,
                loadOwn(Database(path_), machine(), "new " + std::to_string(i)).count(1 + isOpen));
  }
  expectNoWarning();
}

TEST_F(HostileNeighbourTest, ASmallFileIsReadOnceUntilItChanges) {
  Database(path_).store(machine(), "second", {{2, sizeOf(2)}});
  Database database(path_);
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size());
  MachineKey another = machine();
  another.multiprocessorCount = 1;
  bool isLocked = false;
  {
    Other other(path_);
    other.run("BEGIN EXCLUSIVE");
    EXPECT_EQ(describe({{2, sizeOf(2)}}),
              describe(loadOwn(database, machine(), "second", &isLocked)));
    EXPECT_FALSE(isLocked);
    EXPECT_TRUE(loadOwn(database, machine(), "third", &isLocked).empty());
    EXPECT_FALSE(isLocked);
    EXPECT_TRUE(loadOwn(database, another, "second", &isLocked).empty());
    EXPECT_TRUE(isLocked);
    other.run("COMMIT");
  }
  Database(path_).store(machine(), "second", {{2, sizeOf(3)}});
  EXPECT_EQ(describe({{2, sizeOf(3)}}), describe(loadOwn(database, machine(), "second")));
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size());
  expectNoWarning();
}

// As texts of problems do: "... transform=none".
TEST_F(HostileNeighbourTest, AProblemWhoseTextBeginsWithAnothersIsFoundInEitherOrder) {
  const char* const kTexts[] = {"problem", "problem transform=none"};
  Database(path_).store(machine(), kTexts[0], {{1, sizeOf(1)}});
  Database(path_).store(machine(), kTexts[1], {{2, sizeOf(2)}});
  for (const int first : {0, 1}) {
    Database database(path_);
    database.loadAll(machine(), kTexts[first]);
    const StoredProblem second = database.loadAll(machine(), kTexts[1 - first]);
    for (const auto& [text, measurements] : second)
      EXPECT_EQ(1U, measurements.size()) << kTexts[1 - first] << ": " << text;
    EXPECT_EQ(first == 0 ? 1U : 2U, second.size());
  }
  expectNoWarning();
}

TEST_F(HostileNeighbourTest, ALockThatIsHeldToTheEndIsWarnedOf) {
  Other other(path_);
  other.run("BEGIN EXCLUSIVE");
  constexpr std::chrono::milliseconds kPatience{100}, kPatienceAtTheEnd{1000};
  expectWaits(kPatience + kPatienceAtTheEnd, [this] {
    Database(path_).store(machine(), "new", {{1, sizeOf(1)}});
  });
  expectOneWarning("another process keeps it locked");
  other.run("COMMIT");
}

TEST_F(HostileNeighbourTest, AReaderStopsNoOtherReader) {
  Other other(path_);
  other.run("BEGIN; SELECT * FROM measurement");
  Database database(path_);
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size());
  other.run("COMMIT");
  expectAll();
}

// The schema may change at any time.
TEST_F(HostileNeighbourTest, ATriggerThatComesLaterDoesNotRun) {
  Database database(path_);
  EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size());
  test::sql(path_, "CREATE TRIGGER t AFTER INSERT ON size BEGIN DELETE FROM measurement; END");
  database.store(machine(), "new", {{1, sizeOf(1)}});
  EXPECT_TRUE(loadOwn(database, machine(), "problem").empty());
  expectOneWarning("not ours");
  EXPECT_EQ("3", test::sql(path_, "SELECT count(*) FROM measurement"));
}

// A file of a hundred million rows can't be made here; one that says so of itself can.
TEST_F(HostileNeighbourTest, MoreRowsThanFitIntoMemoryAreRefused) {
  test::sql(path_,
            "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 1000001) "
            "INSERT INTO measurement SELECT 1, i, 1.0, 0, 1, 1.0, 0 FROM r");
  const auto begin = test::spent();
  {
    Database database(path_);
    EXPECT_TRUE(loadOwn(database, machine(), "problem").empty());
    EXPECT_THROW(listDatabase(path_), std::runtime_error);
  }
  EXPECT_LT(test::spent() - begin, kMostTime);
  expectOneWarning("too many rows");
}

}  // namespace
}  // namespace ucudnn
