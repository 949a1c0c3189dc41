// Files that nobody has named: what keeps them small, private and sound, without a word.
#include "cache/kept_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>
#include <set>

#include "fixture.hpp"

namespace ucudnn {
namespace {

using test::becomeSomebodyElse;
using test::contents;
using test::describe;
using test::inChild;
using test::limitFileSize;
using test::loadOwn;
using test::machine;
using test::sizeOf;

constexpr uid_t kNobody = 65534;

class KeptTest : public test::CacheFixture {
 protected:
  KeptTest() { std::filesystem::create_directory(home_); }

  Database open(std::size_t mostBytes = kMostKeptBytes) const {
    return Database(file_, DatabaseUse::kKept, mostBytes);
  }

  void expectKeeps(const std::string& problem = "problem") const {
    const StoredMeasurements stored = {{1, sizeOf(2)}};
    open().store(machine(), problem, stored);
    EXPECT_EQ(describe(stored), describe(loadOwn(open(), machine(), problem)));
    expectNoWarning();
  }

  /// The database answers as if it were empty, and only who asks hears why.
  void expectKeepsNothing(const std::string& reason) const {
    const std::string before = contents(file_);
    {
      Database database = open();
      database.store(machine(), "problem", {{1, sizeOf(2)}});
      EXPECT_TRUE(loadOwn(database, machine(), "problem").empty());
    }
    expectNoWarning();
    EXPECT_TRUE(before == contents(file_));
    const std::string asked = directory_.file("asked");
    Log::instance().configure(LogLevel::kInfo, asked);
    open().store(machine(), "problem", {{1, sizeOf(2)}});
    Log::instance().configure(LogLevel::kWarn, directory_.file("log"));
    const std::string lines = contents(asked);
    EXPECT_NE(std::string::npos, lines.find(reason)) << lines;
    EXPECT_EQ(std::string::npos, lines.find("[warn]")) << lines;
  }

  /// The time at which the file's problem was used last.
  std::string usedAt(const std::string& problem) const {
    return test::sql(file_,
                     "SELECT max(size.measured_at) FROM size JOIN problem ON problem.id = "
                     "problem_id WHERE text = '" +
                         problem + "'");
  }
  void dateAll(int time) const {
    test::sql(file_, "UPDATE size SET measured_at = " + std::to_string(time));
  }

  std::string home_ = directory_.file("home");
  std::string folder_ = home_ + "/.cache/ucudnn/";
  std::string file_ = fileOfMachine(folder_, machine());
};

mode_t modeOf(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
}

TEST_F(KeptTest, EachMachineHasAFileOfItsOwn) {
  MachineKey other[8];
  for (MachineKey& key : other) key = machine();
  other[1].deviceName = "NVIDIA H100";
  ++other[2].computeCapability;
  ++other[3].multiprocessorCount;
  ++other[4].driverVersion;
  ++other[5].cudaVersion;
  ++other[6].cudnnVersion;
  other[7].simulated = true;
  std::set<std::string> files;
  for (const MachineKey& key : other) files.insert(fileOfMachine("/f/", key));
  EXPECT_EQ(8U, files.size());
  EXPECT_EQ("/f/NVIDIA-H200_sm90_132_driver13000_cuda13000_cudnn91900.v2.db",
            fileOfMachine("/f/", machine()));
  EXPECT_EQ(0U, fileOfMachine("/f/", machine("../../x\n/é y")).find("/f/x-y_sm90"));
}

TEST_F(KeptTest, FoldersAreMadeForTheirOwnerOnly) {
  ::umask(0);
  expectKeeps();
  EXPECT_EQ(0700U, modeOf(home_ + "/.cache"));
  EXPECT_EQ(0700U, modeOf(folder_));
  ::umask(022);
}

TEST_F(KeptTest, NothingIsMadeWhereThereIsNoHome) {
  std::filesystem::remove(home_);
  expectKeepsNothing("No such file");
  EXPECT_FALSE(std::filesystem::exists(home_));
}

TEST_F(KeptTest, AFileInPlaceOfAFolderStays) {
  std::ofstream(home_ + "/.cache") << "mine";
  expectKeepsNothing("is no folder");
  EXPECT_EQ("mine", contents(home_ + "/.cache"));
}

TEST_F(KeptTest, FolderThatOthersMayWriteIsNotUsed) {
  expectKeeps();
  ASSERT_EQ(0, ::chmod(folder_.c_str(), 0777));
  expectKeepsNothing("can be written by other users");
}

TEST_F(KeptTest, LinkIsNotFollowed) {
  expectKeeps();
  std::filesystem::rename(file_, home_ + "/other.db");
  std::filesystem::create_symlink(home_ + "/other.db", file_);
  expectKeepsNothing("not this user's");
}

TEST_F(KeptTest, NothingOfAnotherUsersIsUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make it";
  expectKeeps();
  ASSERT_EQ(0, ::chown(file_.c_str(), kNobody, kNobody));
  expectKeepsNothing("not this user's");
  std::filesystem::remove(file_);
  ASSERT_EQ(0, ::chown(folder_.c_str(), kNobody, kNobody));
  expectKeepsNothing("another user's");
  std::filesystem::remove_all(home_ + "/.cache");
  std::filesystem::create_directory(home_ + "/.cache");
  ASSERT_EQ(0, ::chown((home_ + "/.cache").c_str(), kNobody, kNobody));
  expectKeepsNothing("another user's");
  EXPECT_FALSE(std::filesystem::exists(folder_)) << "what sudo makes here stays root's";
}

TEST_F(KeptTest, ReadOnlyFolderStillAnswers) {
  expectKeeps();
  const uid_t owner = ::geteuid() == 0 ? kNobody : ::geteuid();
  for (const std::string& path : {home_ + "/.cache", folder_, file_})
    ASSERT_EQ(0, ::chown(path.c_str(), owner, static_cast<gid_t>(-1)));
  ASSERT_EQ(0, ::chmod(file_.c_str(), 0400));
  ASSERT_EQ(0, ::chmod(folder_.c_str(), 0500));
  for (const std::string& path : {directory_.path(), home_})
    ASSERT_EQ(0, ::chmod(path.c_str(), 0755));
  inChild([this] {
    becomeSomebodyElse();
    Database database = open();
    database.store(machine(), "new", {{1, sizeOf(3)}});
    EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size());
    EXPECT_TRUE(loadOwn(database, machine(), "new").empty());
  });
  expectNoWarning();
  ASSERT_EQ(0, ::chmod(folder_.c_str(), 0700));
}

TEST_F(KeptTest, FullDiskLosesNothingThatWasStored) {
  expectKeeps();
  const auto bytes = std::filesystem::file_size(file_);
  inChild([&] {
    limitFileSize(bytes);
    Database database = open();
    for (int i = 0; i < 100; ++i)
      database.store(machine(), "new " + std::to_string(i), {{1, sizeOf(50, i)}});
  });
  EXPECT_EQ("ok", test::sql(file_, "PRAGMA integrity_check"));
  EXPECT_EQ(1U, loadOwn(open(), machine(), "problem").size());
  expectNoWarning();
}

TEST_F(KeptTest, DamagedFileBeginsAnew) {
  const struct {
    const char* what;
    std::size_t offset, bytes;  ///< that are overwritten
    std::size_t most;           ///< that are left
  } kDamages[] = {{"the header", 0, 16, SIZE_MAX},
                  {"the first page", 100, 500, SIZE_MAX},
                  {"all but the first page", 4096, SIZE_MAX, SIZE_MAX},
                  {"zeros", 0, SIZE_MAX, SIZE_MAX},
                  {"the end is missing", 0, 0, 9000},
                  {"almost all is missing", 0, 0, 50}};
  for (const auto& damage : kDamages) {
    SCOPED_TRACE(damage.what);
    std::filesystem::remove(file_);
    {
      Database database = open();
      for (int i = 0; i < 50; ++i)
        database.store(machine(), "problem " + std::to_string(i), {{1, sizeOf(20, i)}});
    }
    std::string bytes = contents(file_).substr(0, damage.most);
    ASSERT_LT(0U, bytes.size());
    for (std::size_t i = damage.offset; i < bytes.size() && i - damage.offset < damage.bytes; ++i)
      bytes[i] = 0;
    std::ofstream(file_, std::ios::binary) << bytes;
    {
      Database database = open();
      for (int i = 0; i < 50; ++i) loadOwn(database, machine(), "problem " + std::to_string(i));
      database.store(machine(), "lost or not", {{1, sizeOf(2)}});
    }
    expectKeeps("new");
    EXPECT_EQ("ok", test::sql(file_, "PRAGMA integrity_check"));
  }
}

TEST_F(KeptTest, AnotherApplicationsFileStays) {
  expectKeeps();
  std::filesystem::remove(file_);
  test::sql(file_, "CREATE TABLE theirs (id INTEGER)");
  expectKeepsNothing("another application's");
}

TEST_F(KeptTest, WhatIsUsedLeastGoesFirst) {
  constexpr std::size_t kMost = 256 << 10;
  constexpr int kProblems = 500;  // of 1 KiB and more
  const auto name = [](int i) { return "problem " + std::to_string(1000 + i) + "."; };
  const auto store = [&](Database& database, int i) {
    database.store(machine(), name(i), {{1, sizeOf(20, i)}});
    database.store(machine(), name(i) + " asked", {{1, sizeOf(0)}});
  };
  {
    Database database = open(kMost);
    for (int i = 0; i < 50; ++i) store(database, i);
  }
  dateAll(1000);
  loadOwn(open(kMost), machine(), name(7));
  EXPECT_NE("1000", usedAt(name(7)));
  EXPECT_NE("1000", usedAt(name(7) + " asked"));
  EXPECT_EQ("1000", usedAt(name(8)));
  std::optional<Database> database(std::in_place, file_, DatabaseUse::kKept, kMost);
  const auto isKept = [&](int i) { return !loadOwn(*database, machine(), name(i)).empty(); };
  int i = 50;
  for (; isKept(8) && i < kProblems; ++i) store(*database, i);
  EXPECT_LT(i, kProblems);
  EXPECT_TRUE(isKept(7)) << "it has been used";
  for (; i < kProblems; ++i) {
    store(*database, i);
    EXPECT_TRUE(isKept(i)) << i;
    EXPECT_GE(kMost / 4 * 5 + (64 << 10), std::filesystem::file_size(file_));
  }
  database.reset();
  const auto pages = [&](const char* which) {
    return std::stoul(test::sql(file_, std::string("PRAGMA ") + which));
  };
  EXPECT_GE(kMost, (pages("page_count") - pages("freelist_count")) * pages("page_size"));
  EXPECT_EQ("0",
            test::sql(file_,
                      "SELECT count(*) FROM problem asked WHERE text LIKE '% asked' AND NOT EXISTS "
                      "(SELECT 1 FROM problem WHERE asked.text = text || ' asked')"))
      << "what was asked goes with what was found";
  EXPECT_EQ("ok", test::sql(file_, "PRAGMA integrity_check"));
  expectNoWarning();
}

TEST_F(KeptTest, ElsewhereIsTheNearestDeviceWithTheNearestVersions) {
  const auto store = [&](const char* device, std::size_t cudnn, int driver, int kernels) {
    MachineKey key = machine(device);
    key.cudnnVersion = cudnn, key.driverVersion = driver;
    Database(path_).store(key, "problem", {{1, sizeOf(kernels)}});
  };
  const auto kernelsElsewhere = [&] {
    MachineKey other;
    StoredProblem rows =
        Database(path_, DatabaseUse::kShipped).loadElsewhere(machine(), "problem", other);
    EXPECT_EQ(rows.empty(), other.deviceName.empty());
    return rows[""][1].kernels.size();
  };
  store("NVIDIA H200", 91900, 13000, 1);
  store("NVIDIA H200", 81900, 13000, 3);
  EXPECT_EQ(0U, kernelsElsewhere());
  store("NVIDIA H100", 91900, 13001, 2);
  EXPECT_EQ(2U, kernelsElsewhere());
  store("NVIDIA H200", 91000, 13000, 4);
  EXPECT_EQ(4U, kernelsElsewhere());
  store("NVIDIA H200", 92000, 12000, 5);
  EXPECT_EQ(5U, kernelsElsewhere());
  store("NVIDIA H200", 91900, 14000, 6);
  EXPECT_EQ(6U, kernelsElsewhere());
  store("NVIDIA H200", 91900, 12080, 7);
  EXPECT_EQ(7U, kernelsElsewhere());
}

TEST_F(KeptTest, ShippedFileIsNeverWritten) {
  Database(path_).store(machine(), "problem", {{1, sizeOf(2)}});
  const std::string before = contents(path_);
  {
    Database database(path_, DatabaseUse::kShipped);
    database.store(machine(), "new", {{1, sizeOf(2)}});
    EXPECT_EQ(1U, loadOwn(database, machine(), "problem").size());
    EXPECT_TRUE(loadOwn(database, machine(), "new").empty());
  }
  EXPECT_TRUE(before == contents(path_));
  std::filesystem::remove(path_);
  EXPECT_TRUE(loadOwn(Database(path_, DatabaseUse::kShipped), machine(), "problem").empty());
  EXPECT_FALSE(std::filesystem::exists(path_));
  expectNoWarning();
}

TEST_F(KeptTest, FilesOfFormerMachinesGo) {
  expectKeeps();
  const std::string unused = folder_ + "unused.db", other = folder_ + "other.db",
                    notes = folder_ + "notes.txt";
  constexpr time_t kSecondsInDay = 86400;
  const auto date = [](const std::string& path, time_t days) {
    const timespec times[2] = {{::time(nullptr) - days * kSecondsInDay, 0},
                               {::time(nullptr) - days * kSecondsInDay, 0}};
    ASSERT_EQ(0, ::utimensat(AT_FDCWD, path.c_str(), times, 0));
  };
  for (const std::string& path : {unused, other, notes}) std::ofstream(path) << "x";
  date(unused, 100), date(notes, 100), date(other, 80);
  expectKeeps();
  EXPECT_TRUE(std::filesystem::exists(unused)) << "only once a day it is looked for";
  date(file_, 100);
  EXPECT_EQ(1U, loadOwn(open(), machine(), "problem").size());
  EXPECT_FALSE(std::filesystem::exists(unused));
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_TRUE(std::filesystem::exists(notes));
  EXPECT_TRUE(std::filesystem::exists(file_)) << "it is in use";
}

}  // namespace
}  // namespace ucudnn
