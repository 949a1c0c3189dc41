#include "cache/maintenance.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fixture.hpp"

namespace ucudnn {
namespace {

using test::describe;
using test::loadOwn;
using test::machine;
using test::sizeOf;

class MaintenanceTest : public test::CacheFixture {
 protected:
  void SetUp() override {
    Database database(path_);
    database.store(machine(), "b", {{1, sizeOf(2)}, {2, sizeOf(0)}, {256, sizeOf(3)}});
    database.store(machine(), "a", {{8, sizeOf(1)}});
    MachineKey simulated = machine();
    simulated.simulated = true;
    database.store(simulated, "a", {{8, sizeOf(5)}});
  }

  void dateAll(const std::string& path, int time) {
    const std::string set = " SET measured_at = " + std::to_string(time) + ";";
    test::sql(path, "UPDATE size" + set + "UPDATE measurement" + set);
  }

  std::string json_ = directory_.file("export.json");
};

/// Expects that `body` throws, naming the file and the reason.
void expectError(const std::function<void()>& body,
                 const std::string& file,
                 const std::string& reason) {
  try {
    body();
    ADD_FAILURE() << "nothing thrown; expected: " << reason;
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    EXPECT_EQ(0U, message.find(file + ": ")) << message;
    EXPECT_NE(std::string::npos, message.find(reason)) << message;
  }
}

TEST_F(MaintenanceTest, ErrorsAreExportedImportedAndMerged) {
  const StoredMeasurements measured = {
      {4, {100, {{"a", 1, 10, true, 1, 1e-7}, {"b", 2, 0, true}}}}};
  Database(path_).store(machine(), "errors", measured);
  exportDatabase(path_, json_);
  const std::string imported = directory_.file("imported.db"),
                    merged = directory_.file("merged.db");
  Database(merged).store(machine(), "other", {{1, sizeOf(1)}});
  importDatabase(imported, json_);
  mergeDatabase(merged, path_);
  for (const std::string& path : {imported, merged})
    EXPECT_EQ(describe(measured), describe(loadOwn(Database(path), machine(), "errors"))) << path;

  pruneDatabase(merged, {machine("another"), {}});
  EXPECT_EQ("0", test::sql(merged, "SELECT count(*) FROM error"));
}

TEST_F(MaintenanceTest, ListsByMachineAndProblem) {
  dateAll(path_, 1000);
  test::sql(path_, "UPDATE size SET measured_at = 2000 WHERE batch = 2");
  const auto entries = listDatabase(path_);
  ASSERT_EQ(3U, entries.size());
  EXPECT_EQ("a", entries[0].problem);
  EXPECT_EQ("b", entries[1].problem);
  EXPECT_EQ((std::vector<int>{1, 2, 256}), entries[1].batches);
  EXPECT_EQ(5U, entries[1].kernels);
  EXPECT_EQ(2000, entries[1].measuredAt);
  EXPECT_EQ("NVIDIA H200", entries[1].machine.deviceName);
  EXPECT_EQ(132, entries[1].machine.multiprocessorCount);
  EXPECT_FALSE(entries[1].machine.simulated);
  EXPECT_TRUE(entries[2].machine.simulated);
}

TEST_F(MaintenanceTest, ExportedAndImportedIsTheSame) {
  Database(path_).store(
      machine(),
      "quotes \" \\ \n μ",
      {{3, {std::numeric_limits<std::size_t>::max(), {{"k", 1.0 / 3, 7, true}}}}});
  EXPECT_EQ(6U, exportDatabase(path_, json_));
  const std::string copy = directory_.file("copy.db");
  EXPECT_EQ(6U, importDatabase(copy, json_));
  const std::string again = directory_.file("again.json");
  EXPECT_EQ(6U, exportDatabase(copy, again));
  EXPECT_EQ(test::contents(json_), test::contents(again));
  EXPECT_EQ(describe(loadOwn(Database(path_), machine(), "quotes \" \\ \n μ")),
            describe(loadOwn(Database(copy), machine(), "quotes \" \\ \n μ")));
  EXPECT_EQ(describe({{1, sizeOf(2)}, {2, sizeOf(0)}, {256, sizeOf(3)}}),
            describe(loadOwn(Database(copy), machine(), "b")));
}

TEST_F(MaintenanceTest, MergeKeepsTheLaterMeasurementOfEachKernel) {
  const std::string other = directory_.file("other.db");
  const StoredMeasurements ours = {{1, {500, {{"x", 1, 1, true}, {"y", 1, 1, true}}}}};
  const StoredMeasurements theirs = {{1, {900, {{"y", 2, 2, true}, {"z", 2, 2, true}}}},
                                     {2, sizeOf(1)}};
  const auto make = [&](int ourTime, int theirTime) {
    for (const std::string& path : {path_, other}) std::filesystem::remove(path);
    Database(path_).store(machine(), "p", ours);
    Database(other).store(machine(), "p", theirs);
    dateAll(path_, ourTime);
    dateAll(other, theirTime);
  };
  make(1000, 2000);
  EXPECT_EQ(2U, mergeDatabase(path_, other));
  EXPECT_EQ(describe({{1, {900, {{"x", 1, 1, true}, {"y", 2, 2, true}, {"z", 2, 2, true}}}},
                      {2, sizeOf(1)}}),
            describe(loadOwn(Database(path_), machine(), "p")));
  EXPECT_EQ(describe(theirs), describe(loadOwn(Database(other), machine(), "p")));
  make(2000, 1000);
  EXPECT_EQ(2U, mergeDatabase(path_, other));
  EXPECT_EQ(describe({{1, {900, {{"x", 1, 1, true}, {"y", 1, 1, true}, {"z", 2, 2, true}}}},
                      {2, sizeOf(1)}}),
            describe(loadOwn(Database(path_), machine(), "p")));
  EXPECT_EQ(2000, listDatabase(path_)[0].measuredAt);
}

TEST_F(MaintenanceTest, MergedForPlansLacksWhatNoPlanWouldHave) {
  const std::vector<StoredMeasurement> all = {
      {"FFT/default", 2, 100, true, 2},
      {"GEMM/default", 3, 100, true, 3},                  // slower
      {"GEMM/fma", 3, 50, true, 3},                       // but in less
      {"WINOGRAD/default", 1, 100, false, 1},             // but it may be all that is deterministic
      {"WINOGRAD/fma", 1, 100, false, 0},                 // of which less is known
      {"FFT/fma_planes", 2, 100, true, 2},                // but it isn't for all calls
      {"FFT/fma_planes_bands=2", 2, 100, true, 2, 1e-6},  // of which more is known
      {"eng1_k2=0", 2, 100, true, 2},
      {"eng1_k2=1", 2, 100, true, 1.9},  // replayed it isn't slower
      {"eng2", 2, 100, true, 2},         // no better than eng1_k2=1
  };
  std::filesystem::remove(path_);
  Database(path_).store(machine(), "p", {{4, {100, all}}, {8, {100, all}}});
  Database(path_).store(machine(), "p asked all", {{8, {100, {}}}});
  const std::string merged = directory_.file("merged.db");
  EXPECT_EQ(3U, mergeDatabase(merged, path_, Merged::kForPlans));
  StoredMeasurements expected = {{4, {100, {}}}, {8, {100, all}}};
  for (const std::size_t kept : {0, 2, 3, 4, 6, 8}) expected[4].kernels.push_back(all[kept]);
  EXPECT_EQ(describe(expected), describe(loadOwn(Database(merged), machine(), "p")));
  EXPECT_EQ("0", test::sql(merged, "PRAGMA freelist_count"));
}

TEST_F(MaintenanceTest, PrunesByMachineByAgeAndByBoth) {
  dateAll(path_, 1000);
  test::sql(path_, "UPDATE size SET measured_at = 2000 WHERE batch = 2");
  EXPECT_EQ(0U, pruneDatabase(path_, {}));
  EXPECT_EQ(3U, listDatabase(path_).size());

  EXPECT_EQ(1U, pruneDatabase(path_, {machine(), std::nullopt}));
  ASSERT_EQ(2U, listDatabase(path_).size());
  EXPECT_EQ("1", test::sql(path_, "SELECT count(*) FROM machine"));

  EXPECT_EQ(0U, pruneDatabase(path_, {std::nullopt, 1000}));
  EXPECT_EQ(3U, pruneDatabase(path_, {std::nullopt, 1001}));
  ASSERT_EQ(1U, listDatabase(path_).size());
  EXPECT_EQ((std::vector<int>{2}), listDatabase(path_)[0].batches);
  EXPECT_EQ("0", test::sql(path_, "SELECT count(*) FROM measurement"));

  EXPECT_EQ(1U, pruneDatabase(path_, {machine("another"), 1001}));
  EXPECT_TRUE(listDatabase(path_).empty());
  EXPECT_EQ("0", test::sql(path_, "SELECT count(*) FROM problem"));
}

TEST_F(MaintenanceTest, PruningGivesSpaceBack) {
  Database(path_).store(machine("large"), "p", {{1, sizeOf(3000)}});
  loadOwn(Database(path_), machine(), "a");
  const auto before = std::filesystem::file_size(path_);
  pruneDatabase(path_, {machine(), std::nullopt});
  EXPECT_LT(std::filesystem::file_size(path_), before / 2);
  EXPECT_EQ(describe({{8, sizeOf(1)}}), describe(loadOwn(Database(path_), machine(), "a")));
}

TEST_F(MaintenanceTest, FilesThatCannotBeUsedAreNamedWithTheReason) {
  const std::string missing = directory_.file("missing.db");
  const std::string text = directory_.file("text");
  std::ofstream(text) << std::string(5000, 'x');
  const std::string foreign = directory_.file("foreign.db");
  test::sql(foreign, "CREATE TABLE t (x)");
  expectError([&] { listDatabase(missing); }, missing, "No such file");
  expectError([&] { exportDatabase(missing, json_); }, missing, "No such file");
  expectError([&] { mergeDatabase(path_, missing); }, missing, "No such file");
  expectError([&] { pruneDatabase(missing, {}); }, missing, "No such file");
  expectError([&] { listDatabase(text); }, text, "not a database");
  expectError([&] { mergeDatabase(path_, foreign); }, foreign, "another application's");
  expectError([&] { importDatabase(path_, missing); }, missing, "No such file");
  expectError([&] { importDatabase(path_, directory_.path()); }, directory_.path(), "directory");
  EXPECT_EQ(5U, exportDatabase(path_, json_));
  expectError([&] { importDatabase(foreign, json_); }, foreign, "another application's");
  expectError([&] { exportDatabase(path_, "/dev/full"); }, "/dev/full", "No space");
  const std::string nowhere = directory_.file("no/where.json");
  expectError([&] { exportDatabase(path_, nowhere); }, nowhere, "No such file");
  EXPECT_FALSE(std::filesystem::exists(missing));
  EXPECT_EQ(3U, listDatabase(path_).size());
}

/// An export of one kernel, with one text in it replaced.
std::string jsonWith(const std::string& what, const std::string& by) {
  std::string json = R"({"format": "ucudnn measurements", "version": 2, "machines": [
    {"machine": {"device_name": "d", "compute_capability": 90, "multiprocessor_count": 1,
      "driver_version": 1, "cuda_version": 1, "cudnn_version": 1, "simulated": false},
     "problems": [{"problem": "p", "sizes": [{"batch": 4, "covered_bytes": 6, "measured_at": 1,
       "kernels": [{"kernel": "k", "time_ms": 2.5, "device_ms": 1.25, "workspace_bytes": 5, "deterministic": true,
         "measured_at": 1}]}]}]}]})";
  const auto at = json.find(what);
  EXPECT_NE(std::string::npos, at) << what;
  return json.replace(at, what.size(), by);
}

TEST_F(MaintenanceTest, ImportRefusesWhatIsNoExportAndThenAddsNothing) {
  const std::vector<std::array<std::string, 3>> bad = {
      {"ucudnn measurements", "something", "\"format\""},
      {"\"version\": 2", "\"version\": 1", "\"version\""},
      {"\"machines\": [", "\"machines\": {}, \"x\": [", "\"machines\" is not a list"},
      {"\"device_name\": \"d\"", "\"device_name\": 7", "\"device_name\" is not a text"},
      {"\"compute_capability\": 90", "\"compute_capability\": -1", "\"compute_capability\""},
      {"\"driver_version\": 1", "\"driver_version\": 2147483648", "\"driver_version\""},
      {"\"simulated\": false", "\"simulated\": 0", "\"simulated\" is not true or false"},
      {"\"problem\": \"p\"", "\"problem\": \"\"", "the problem is empty"},
      {"\"batch\": 4", "\"batch\": 0", "below 1"},
      {"\"batch\": 4", "\"batch\": 1.5", "\"batch\""},
      {"\"covered_bytes\": 6", "\"covered_bytes\": 18446744073709551615", "\"covered_bytes\""},
      {"\"covered_bytes\": 6, ", "", "\"covered_bytes\" is missing"},
      {"\"kernel\": \"k\"", "\"kernel\": \"\"", "no name"},
      {"2.5", "-2.5", "no valid time"},
      {"2.5", "null", "\"time_ms\" is not a number"},
      {"2.5", "1e999", "number"},
      {"1.25", "-1.25", "no valid time"},
      {"\"device_ms\": 1.25, ", "", "\"device_ms\" is missing"},
      {"\"workspace_bytes\": 5", "\"workspace_bytes\": -5", "\"workspace_bytes\""},
      {"]}]}]}]}", "]}]}]}", "parse"},
  };
  const std::string target = directory_.file("target.db");
  for (const auto& [what, by, reason] : bad) {
    SCOPED_TRACE(by);
    std::ofstream(json_) << jsonWith(what, by);
    expectError([&] { importDatabase(target, json_); }, json_, reason);
  }
  EXPECT_FALSE(std::filesystem::exists(target));
  std::ofstream(json_) << jsonWith("2.5", "3.5");
  EXPECT_EQ(1U, importDatabase(target, json_));
  ASSERT_EQ(1U, listDatabase(target).size());
}

}  // namespace
}  // namespace ucudnn
