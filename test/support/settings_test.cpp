#include "support/settings.hpp"
#include "division/workspace_division.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "support/text.hpp"
#include "support/unknown_variables.hpp"
#include "temporary_directory.hpp"

namespace ucudnn {
namespace {

using Environment = std::map<std::string, std::string>;

Settings read(const Environment& environment) {
  return settingsFromEnvironment([&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

// As many as Settings has members: it does not compile where one is missing.
#define UCUDNN_MEMBERS                                                                           \
  m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, \
      m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31
auto membersOf(const Settings& settings) {
  const auto& [UCUDNN_MEMBERS] = settings;
  return std::tie(UCUDNN_MEMBERS);
}
#undef UCUDNN_MEMBERS

/// The default itself, without the other values and remarks that the documentation adds.
std::string valueIn(const std::string& documented) {
  return documented.substr(0, documented.find_first_of(",;"));
}

TEST(SettingsTest, TheDocumentedDefaultsAreThoseOfTheStruct) {
  // These are documented in words, for what no value says.
  const Settings none;
  const std::map<std::string, bool> inWords = {
      {"UCUDNN_BENCHMARK_DEVICES", none.benchmarkDevices.empty() && !none.allBenchmarkDevices},
      {"UCUDNN_WORKSPACE_LIMIT", none.workspaceLimitBytes == SIZE_MAX},
      {"UCUDNN_DATABASE", none.databasePath.empty()},
      {"UCUDNN_PLANS", none.plansPath.empty()},
      {"CUDNN_ERRATA_JSON_FILE", none.errataPath.empty()},
      {"UCUDNN_LOG_FILE", none.logFile.empty()},
      {"UCUDNN_TRACE", none.tracePath.empty()}};
  for (const auto& row : environmentVariables()) {
    SCOPED_TRACE(row.name);
    const auto words = inWords.find(row.name);
    if (words != inWords.end()) {
      EXPECT_TRUE(words->second);
      EXPECT_TRUE(row.namesFile || !std::isdigit(row.defaultValue[0])) << row.defaultValue;
      continue;
    }
    Settings given;
    ASSERT_NO_THROW(row.parse(given, valueIn(row.defaultValue))) << row.defaultValue;
    given.defaultWorkspaceLimitGiven = given.graphMemoryGiven = false;
    EXPECT_TRUE(membersOf(given) == membersOf(Settings())) << row.defaultValue;
  }
}

TEST(SettingsTest, AnEmptyEnvironmentGivesTheDefaults) {
  for (const Environment& environment :
       {Environment{},
        Environment{{"UCUDNN_DETERMINISTIC", ""}, {"UCUDNN_BENCHMARK_STALL", "  "}}}) {
    Settings settings = read(environment);
    settings.logLevel = Settings().logLevel;  // as CMake's options UCUDNN_DEBUG_* say
    settings.equivalenceTest = Settings().equivalenceTest;
    EXPECT_TRUE(membersOf(settings) == membersOf(Settings()));
  }
}

TEST(SettingsTest, ReadsEachVariable) {
  const Settings settings = read({{"UCUDNN_BATCH_SIZE_POLICY", "all"},
                                  {"UCUDNN_BENCHMARK_DEVICES", " 3, 0 ,12 "},
                                  {"UCUDNN_DEFAULT_WORKSPACE_LIMIT", "8MiB"},
                                  {"UCUDNN_WORKSPACE_LIMIT", "16MiB"},
                                  {"UCUDNN_TOTAL_WORKSPACE_SIZE", "1 GiB"},
                                  {"UCUDNN_TOTAL_WORKSPACE_POLICY", "share"},
                                  {"UCUDNN_KERNELS", "engines"},
                                  {"UCUDNN_TUNING", "exhaustive"},
                                  {"UCUDNN_MAX_ERROR", "1e-5"},
                                  {"UCUDNN_GRAPH_MEMORY", "0"},
                                  {"UCUDNN_DEVICE_MEMORY", "all"},
                                  {"UCUDNN_DATABASE", "/tmp/a b.db"},
                                  {"UCUDNN_PLANS", "/tmp/a b.json"},
                                  {"UCUDNN_PLANS_STRICT", "1"},
                                  {"CUDNN_ERRATA_JSON_FILE", "/tmp/a b.json"},
                                  {"UCUDNN_CHECK_KERNELS", "1"},
                                  {"UCUDNN_LOG_LEVEL", "debug"},
                                  {"UCUDNN_LOG_FILE", "/tmp/log"},
                                  {"UCUDNN_DETERMINISTIC", "1"},
                                  {"UCUDNN_EQUIVALENCE_TEST", " 1 "},
                                  {"UCUDNN_DISABLE", "1"},
                                  {"UCUDNN_TRACE", "/tmp/trace.%p"},
                                  {"UCUDNN_REPORT", "1"},
                                  {"UCUDNN_BACKGROUND_PLANNING", "0"},
                                  {"UCUDNN_BENCHMARK_STALL", "12.5"}});
  EXPECT_EQ(BatchSizePolicy::kAll, settings.batchSizePolicy);
  EXPECT_EQ((std::vector<int>{3, 0, 12}), settings.benchmarkDevices);
  EXPECT_EQ("/tmp/a b.json", settings.errataPath);
  EXPECT_TRUE(settings.checkKernels);
  EXPECT_EQ(8U << 20, settings.defaultWorkspaceLimitBytes);
  EXPECT_EQ(16U << 20, settings.workspaceLimitBytes);
  EXPECT_EQ(1U << 30, settings.totalWorkspaceBytes);
  EXPECT_EQ(TotalWorkspacePolicy::kShare, settings.totalWorkspacePolicy);
  EXPECT_EQ(Kernels::kEngines, settings.kernels);
  EXPECT_EQ(Tuning::kExhaustive, settings.tuning);
  EXPECT_EQ(0U, settings.graphMemoryBytes);
  EXPECT_EQ(SIZE_MAX, settings.deviceMemoryBytes);
  EXPECT_EQ(3U << 20, read({{"UCUDNN_DEVICE_MEMORY", "3MiB"}}).deviceMemoryBytes);
  EXPECT_EQ("/tmp/a b.db", settings.databasePath);
  EXPECT_EQ("/tmp/a b.json", settings.plansPath);
  EXPECT_TRUE(settings.plansStrict);
  EXPECT_EQ(LogLevel::kDebug, settings.logLevel);
  EXPECT_EQ("/tmp/log", settings.logFile);
  EXPECT_TRUE(settings.deterministic);
  EXPECT_TRUE(settings.equivalenceTest);
  EXPECT_TRUE(settings.disabled);
  EXPECT_EQ("/tmp/trace.%p", settings.tracePath);
  EXPECT_TRUE(settings.report);
  EXPECT_EQ(12.5, settings.benchmarkStallMs);
  EXPECT_FALSE(settings.backgroundPlanning);
}

TEST(SettingsTest, AllDevices) {
  const Settings settings = read({{"UCUDNN_BENCHMARK_DEVICES", "all"}});
  EXPECT_TRUE(settings.allBenchmarkDevices);
  EXPECT_TRUE(settings.benchmarkDevices.empty());
}

TEST(SettingsTest, BadValuesAreRefusedWithVariableValueAndWhatIsAccepted) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"UCUDNN_BATCH_SIZE_POLICY", {"poweroftwo", "ALL", "1", "all all"}},
      {"UCUDNN_BENCHMARK_DEVICES",
       {"-1",
        "0,",
        ",0",
        "0,,1",
        "0 1",
        "0;1",
        "0,1,0",
        "00,0",
        "all,0",
        "1x",
        "0x1",
        "+1",
        "1.0",
        "2147483648",
        "99999999999999999999",
        ","}},
      {"UCUDNN_DEFAULT_WORKSPACE_LIMIT",
       {"-1", "big", "1x", "0.3", "64MiB64", "0x10", "1e6", "+1", "18446744073709551616", "MiB"}},
      {"UCUDNN_TOTAL_WORKSPACE_SIZE", {"-64MiB", "16777216TiB"}},
      {"UCUDNN_TOTAL_WORKSPACE_POLICY", {"Share", "2", "none"}},
      {"UCUDNN_LOG_LEVEL", {"warning", "WARN", "3", "trace"}},
      {"UCUDNN_PLANS_STRICT", {"2", "yes"}},
      {"UCUDNN_DETERMINISTIC", {"2", "true", "yes", "-1", "01", "1 1"}},
      {"UCUDNN_EQUIVALENCE_TEST", {"on"}},
      {"UCUDNN_DISABLE", {"yes", "2"}},
      {"UCUDNN_WORKSPACE_LIMIT", {"none", "-1"}},
      {"UCUDNN_BENCHMARK_STALL",
       {"-1",
        "-0",
        "nan",
        "-nan",
        "inf",
        "1e999",
        "1e308",
        "1e13",
        "1000000000000.1",
        "1e-999",
        "5ms",
        "0x10",
        "1,5",
        "+5"}},
      {"UCUDNN_BENCHMARK_SHARE",
       {"-0", "nan", "inf", "1e308", "1.0000001", "-1e-300", "Always", "1e-999"}},
      {"UCUDNN_BENCHMARK_MEMORY", {"18446744073709551616", "1e308", "nan", "16777216TiB"}},
      {"UCUDNN_KERNELS", {"none", "ALL", "legacy,engines", "1"}},
      {"UCUDNN_TUNING", {"Fast", "slow", "1"}},
      {"UCUDNN_MAX_ERROR",
       {"-0", "-1e-5", "nan", "inf", "1e999", "1e-999", "none", "1e-5x", "0x1"}},
      {"UCUDNN_GRAPH_MEMORY", {"-1", "off", "16777216TiB"}},
      {"UCUDNN_DEVICE_MEMORY", {"-1", "All", "free", "16777216TiB"}},
  };
  for (const auto& [name, values] : bad) {
    for (const std::string& value : values) {
      SCOPED_TRACE(name + "=" + value);
      std::string accepted;
      for (const auto& row : environmentVariables()) {
        if (row.name == name) accepted = row.type;
      }
      ASSERT_FALSE(accepted.empty());
      try {
        read({{name, value}});
        ADD_FAILURE() << "accepted";
      } catch (const BadSetting& error) {
        const std::string message = error.what();
        EXPECT_NE(std::string::npos, message.find(name + "=\"" + value + "\"")) << message;
        EXPECT_NE(std::string::npos, message.find("accepted: " + accepted)) << message;
        EXPECT_EQ(message.find("accepted: "), message.rfind("accepted: ")) << message;
        EXPECT_EQ(std::string::npos, message.find('\n')) << message;
      }
    }
  }
}

TEST(SettingsTest, RefusalsAreShortAndPrintable) {
  std::string devices = "0";
  for (int i = 1; i < 200000; ++i) devices += "," + std::to_string(i);
  for (const auto& row : environmentVariables()) {
    if (row.namesFile) continue;
    for (const std::string& value : {std::string(1000000, 'a'),
                                     std::string(1000000, '1') + "x",
                                     std::string("\x1b[31m\n\xff"),
                                     devices}) {
      try {
        read({{row.name, value}});
        ADD_FAILURE() << row.name << " is accepted";
      } catch (const BadSetting& error) {
        const std::string message = error.what();
        EXPECT_LE(message.size(), 440U) << message;
        EXPECT_TRUE(isPrintable(message)) << message;
        EXPECT_NE(std::string::npos, message.find("accepted: ")) << message;
      }
    }
  }
}

TEST(SettingsTest, TakesTheLongestStall) {
  EXPECT_EQ(1e12, read({{"UCUDNN_BENCHMARK_STALL", "1e12"}}).benchmarkStallMs);
}

TEST(SettingsTest, LogFileThatCannotBeOpenedIsABadSettingEachTime) {
  EXPECT_EXIT(
      {
        ::setenv("UCUDNN_LOG_FILE", "/nonexistent/log", 1);
        int refused = 0;
        for (int i = 0; i < 2; ++i) try {
            settingsFromEnvironment();
          } catch (const BadSetting& error) {
            refused +=
                std::string(error.what()) ==
                "UCUDNN_LOG_FILE=\"/nonexistent/log\": No such file or directory; accepted: a path";
          }
        ::setenv("UCUDNN_LOG_FILE", "/dev/null", 1);
        settingsFromEnvironment();
        std::exit(refused == 2 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0),
      "");
}

TEST(SettingsTest, TableIsWellFormed) {
  std::map<std::string, int> count;
  for (const auto& row : environmentVariables()) {
    ++count[row.name];
    const bool isCudnns = std::string(row.name) == "CUDNN_ERRATA_JSON_FILE";
    EXPECT_TRUE(isCudnns || std::string(row.name).rfind("UCUDNN_", 0) == 0) << row.name;
    for (const char* text : {row.type, row.defaultValue, row.help})
      EXPECT_STRNE("", text) << row.name;
  }
  for (const auto& [name, times] : count) EXPECT_EQ(1, times) << name;
  EXPECT_EQ(28U, count.size());
}

TEST(SettingsTest, DivideIsRefusedWhereItIsLeftOutWithTheWayToRebuild) {
  const auto lookup = [](const char* name) {
    return std::string(name) == "UCUDNN_TOTAL_WORKSPACE_POLICY" ? "divide" : nullptr;
  };
  if (workspaceDivisionAvailable()) {
    EXPECT_EQ(TotalWorkspacePolicy::kDivide, settingsFromEnvironment(lookup).totalWorkspacePolicy);
    return;
  }
  try {
    settingsFromEnvironment(lookup);
    ADD_FAILURE() << "accepted";
  } catch (const BadSetting& error) {
    EXPECT_NE(std::string::npos, std::string(error.what()).find("-DUCUDNN_DIVIDE=ON"));
  }
}

TEST(SettingsTest, UnknownVariablesAreNamedWithTheNearestKnownOne) {
  const std::vector<std::string> names = {"PATH",
                                          "UCUDNN_DATABASE",
                                          "UCUDNN_DATABSE",
                                          "UCUDNN_SIMULATOR_DEVICES",
                                          "UCUDNN_TOTAL_WORKSPACE_POLICY",
                                          "UCUDNN_DEFAULT_WORKSPACE",
                                          "UCUDNN_",
                                          "UCUDNN_GREETING",
                                          "ucudnn_database"};
  const auto warnings = unknownVariableWarnings(names);
  ASSERT_EQ(4U, warnings.size());
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"UCUDNN_DATABSE", "is UCUDNN_DATABASE meant?"},
      {"UCUDNN_DEFAULT_WORKSPACE", "is UCUDNN_DEFAULT_WORKSPACE_LIMIT meant?"},
      {"UCUDNN_", ""},
      {"UCUDNN_GREETING", ""}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(0U, warnings[i].find(expected[i].first + " ")) << warnings[i];
    if (expected[i].second.empty()) {
      EXPECT_EQ(std::string::npos, warnings[i].find("meant")) << warnings[i];
    } else {
      EXPECT_NE(std::string::npos, warnings[i].find(expected[i].second)) << warnings[i];
    }
  }
}

/// Runs `body` in a child with these variables set, since what is said once a process is under
/// test.
template <typename Body>
std::string logOfChild(const Environment& environment, Body body) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("log");
  EXPECT_EXIT(
      {
        for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
        ::setenv("UCUDNN_LOG_FILE", path.c_str(), 1);
        body();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0),
      "");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(SettingsTest, ManyOrLongUnknownVariablesAreFewShortWarnings) {
  std::vector<std::string> names(100000, "UCUDNN_FOO");
  const auto many = unknownVariableWarnings(names);
  ASSERT_EQ(10U, many.size());
  EXPECT_EQ("100000 variables are not settings of μ-cuDNN", many.back());
  const auto one = unknownVariableWarnings({"UCUDNN_" + std::string(1000000, 'A') + "\x1b"});
  ASSERT_EQ(1U, one.size());
  EXPECT_LE(one[0].size(), 200U);
}

TEST(SettingsTest, ProcessSaysOnceWhatItReadAndWhatItDoesNotKnow) {
  const std::string log = logOfChild(
      {{"UCUDNN_LOG_LEVEL", "info"}, {"UCUDNN_DETERMINISTIC", "1"}, {"UCUDNN_FOO", "1"}}, [] {
        settingsFromEnvironment();
        settingsFromEnvironment();
      });
  EXPECT_EQ(1U, occurrences(log, "[info] UCUDNN_DETERMINISTIC=\"1\"")) << log;
  EXPECT_EQ(1U, occurrences(log, "[warn] UCUDNN_FOO ")) << log;
  EXPECT_EQ(4U, occurrences(log, "\n")) << log;  // and the level and the file
}

TEST(SettingsTest, BadSettingStillLeavesTheLogWhereItWasTold) {
  const std::string log = logOfChild({{"UCUDNN_BATCH_SIZE_POLICY", "some"}}, [] {
    try {
      settingsFromEnvironment();
    } catch (const BadSetting& error) {
      logError("{}", error.what());
    }
  });
  EXPECT_EQ(1U, occurrences(log, "[error] UCUDNN_BATCH_SIZE_POLICY=\"some\"")) << log;
}

}  // namespace
}  // namespace ucudnn
