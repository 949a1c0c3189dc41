// Settings, as the environment and the handle's setters have them, and the benchmark database.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

class SettingsTest : public LibraryTest {
 protected:
  std::string logFile() const { return directory_.file("log"); }

  TemporaryDirectory directory_;
};

TEST_F(SettingsTest, GettersSayWhatSettersSet) {
  const EnvironmentGuard tuning("UCUDNN_TUNING", "exhaustive");
  const EnvironmentGuard devices("UCUDNN_BENCHMARK_DEVICES", "all");
  const Handles handles;
  ucudnnSettings_t now{};
  EXPECT_CUDNN(handles.ours.getSettings(&now));
  EXPECT_EQ(UCUDNN_TUNING_EXHAUSTIVE, now.tuning) << "as the environment has it";
  EXPECT_EQ(-1, now.benchmarkDeviceCount);
  EXPECT_EQ(SIZE_MAX, now.workspaceLimit);
  const UcudnnHandle_t& handle = handles.ours;
  const std::string database = directory_.file("a.db");
  for (const cudnnStatus_t status :
       {handle.setOptimizerBatchSizePolicy(UCUDNN_BATCH_SIZE_POLICY_ALL),
        handle.setKernels(UCUDNN_KERNELS_LEGACY),
        handle.setTuning(UCUDNN_TUNING_FAST),
        handle.setMaxError(0.25),
        handle.setDefaultWorkspaceLimit(1 << 20),
        handle.setWorkspaceLimit(2 << 20),
        handle.setTotalWorkspacePolicy(UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE),
        handle.setGraphMemory(3 << 20),
        handle.setDeviceMemory(5 << 20),
        handle.setDatabase(database),
        handle.setPlansStrict(true),
        handle.setBenchmarkDevices("0"),
        handle.setBenchmarkMemory(4 << 20),
        handle.setBenchmarkShare(0.5),
        handle.setBorrowOutput(false),
        handle.setDeterministic(true),
        handle.setEquivalenceTest(true)})
    EXPECT_CUDNN(status);
  EXPECT_CUDNN(handle.getSettings(&now));
  EXPECT_EQ(UCUDNN_BATCH_SIZE_POLICY_ALL, now.batchSizePolicy);
  EXPECT_EQ(UCUDNN_KERNELS_LEGACY, now.kernels);
  EXPECT_EQ(UCUDNN_TUNING_FAST, now.tuning);
  EXPECT_EQ(0.25, now.maxError);
  EXPECT_EQ(std::size_t{1} << 20, now.defaultWorkspaceLimit);
  EXPECT_EQ(std::size_t{2} << 20, now.workspaceLimit);
  EXPECT_EQ(0U, now.totalWorkspaceSize);
  EXPECT_EQ(UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE, now.totalWorkspacePolicy);
  EXPECT_EQ(std::size_t{3} << 20, now.graphMemory);
  EXPECT_EQ(std::size_t{5} << 20, now.deviceMemory);
  EXPECT_EQ(database, now.database);
  EXPECT_STREQ("", now.plans);
  EXPECT_EQ(1, now.plansStrict);
  ASSERT_EQ(1, now.benchmarkDeviceCount);
  EXPECT_EQ(0, now.benchmarkDevices[0]);
  EXPECT_EQ(std::size_t{4} << 20, now.benchmarkMemory);
  EXPECT_EQ(0.5, now.benchmarkShare);
  EXPECT_EQ(0, now.borrowOutput);
  EXPECT_EQ(1, now.deterministic);
  EXPECT_EQ(1, now.equivalenceTest);
  // An earlier client's struct ends sooner, and nothing is written behind it.
  now.size = offsetof(ucudnnSettings_t, deterministic);
  now.borrowOutput = now.deterministic = 7;
  EXPECT_CUDNN(ucudnnGetSettings(handle, &now));
  EXPECT_EQ(0, now.borrowOutput);
  EXPECT_EQ(7, now.deterministic);
  now.size = 0;
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetSettings(handle, &now));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetSettings(handle, nullptr));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetSettings(nullptr, &now));
}

TEST_F(SettingsTest, GettersSayWhatIsSetForTheProcess) {
  const auto get = [] {
    ucudnnProcessSettings_t now{};
    now.size = sizeof(now);
    EXPECT_CUDNN(ucudnnGetProcessSettings(&now));
    return now;
  };
  const EnvironmentGuard log(
      {{"UCUDNN_LOG_FILE", logFile()}, {"UCUDNN_LOG_LEVEL", std::string("error")}});
  const Handles handles;
  const ucudnnProcessSettings_t before = get();
  EXPECT_EQ(logFile(), before.logFile) << "as the environment has it";
  EXPECT_STREQ("error", before.logLevel);
  EXPECT_EQ(SIZE_MAX, before.workspaceLimit);
  EXPECT_CUDNN(ucudnnSetLogLevel("debug"));
  EXPECT_CUDNN(ucudnnSetLogFile(nullptr));
  EXPECT_CUDNN(ucudnnSetProcessWorkspaceLimit(1 << 20));
  const ucudnnProcessSettings_t after = get();
  EXPECT_STREQ("debug", after.logLevel);
  EXPECT_STREQ("", after.logFile);
  EXPECT_EQ(std::size_t{1} << 20, after.workspaceLimit);
  EXPECT_EQ(logFile(), before.logFile) << "the pointer stays valid";
  EXPECT_CUDNN(ucudnnSetLogLevel("warn"));
  EXPECT_CUDNN(ucudnnSetProcessWorkspaceLimit(SIZE_MAX));
  ucudnnProcessSettings_t none{};
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetProcessSettings(&none)) << "its size is none";
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetProcessSettings(nullptr));
}

TEST_F(SettingsTest, BadValueMakesCreateFailAndIsLoggedOnce) {
  const std::pair<const char*, const char*> bad[] = {{"UCUDNN_BATCH_SIZE_POLICY", "some"},
                                                     {"UCUDNN_BENCHMARK_DEVICES", "0;1"},
                                                     {"UCUDNN_BENCHMARK_DEVICES", "9999"},
                                                     {"UCUDNN_DEFAULT_WORKSPACE_LIMIT", "-1"},
                                                     {"UCUDNN_TOTAL_WORKSPACE_SIZE", "large"},
                                                     {"UCUDNN_KERNELS", "some"},
                                                     {"UCUDNN_TUNING", "slow"},
                                                     {"UCUDNN_MAX_ERROR", "-1"},
                                                     {"UCUDNN_GRAPH_MEMORY", "none"},
                                                     {"UCUDNN_LOG_LEVEL", "loud"},
                                                     {"UCUDNN_DETERMINISTIC", "yes"},
                                                     {"UCUDNN_PLANS", "/dev/null"},
                                                     {"CUDNN_ERRATA_JSON_FILE", "/dev/null"},
                                                     {"CUDNN_ERRATA_JSON_FILE", "/nonexistent"},
                                                     {"UCUDNN_CHECK_KERNELS", "2"},
                                                     {"UCUDNN_PLANS_STRICT", "yes"},
                                                     {"UCUDNN_EQUIVALENCE_TEST", "2"},
                                                     {"UCUDNN_BENCHMARK_STALL", "-5"}};
  const EnvironmentGuard log("UCUDNN_LOG_FILE", logFile());
  for (const auto& [variable, value] : bad) {
    SCOPED_TRACE(std::string(variable) + "=" + value);
    const EnvironmentGuard setting(variable, value);
    UcudnnHandle_t handle = reinterpret_cast<cudnnHandle_t>(&handle);
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnCreate(&handle));
    EXPECT_TRUE(handle == nullptr);
    EXPECT_EQ(1U, linesWith(logFile(), {variable, value}).size());
    EXPECT_EQ(1U, linesWith(logFile(), {variable, value, "accepted"}).size());
  }
  const Handles handles;  // and all is well again
}

TEST_F(SettingsTest, LogFileThatCannotBeOpenedMakesCreateFail) {
  const std::string fifo = directory_.file("fifo");
  ASSERT_EQ(0, ::mkfifo(fifo.c_str(), 0600));
  { const Handles toStderr; }  // where it stays, and not where an earlier test had it
  for (const std::string& file : {std::string("/nonexistent/log"), std::string("/tmp"), fifo}) {
    const EnvironmentGuard log("UCUDNN_LOG_FILE", file);
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) {
      UcudnnHandle_t handle;
      EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnCreate(&handle));
      EXPECT_TRUE(handle == nullptr);
    }
    const std::string lines = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(2, std::count(lines.begin(), lines.end(), '\n')) << lines;
    EXPECT_NE(std::string::npos, lines.find("UCUDNN_LOG_FILE=\"" + file + "\": ")) << lines;
  }
  const Handles handles;
}

TEST_F(SettingsTest, PolicyDecidesWhichMicroBatchesAreTried) {
  const std::pair<const char*, std::set<int>> policies[] = {
      {"undivided", {6}}, {"powerOfTwo", {1, 2, 4, 6}}, {"all", {1, 2, 3, 4, 5, 6}}};
  ConvolutionCase parameters;
  for (const auto& [policy, sizes] : policies) {
    SCOPED_TRACE(policy);
    const EnvironmentGuard setting(
        {{"UCUDNN_BATCH_SIZE_POLICY", std::string(policy)}, {"UCUDNN_TUNING", "exhaustive"}});
    const Handles handles;
    parameters.batch = 6;
    ++parameters.channels;  // a problem of its own
    const Convolution convolution(parameters);
    ucudnnMicroBatches_t entries[256] = {};
    entries[0].size = sizeof(entries[0]);
    int count = 0;
    ASSERT_CUDNN(ucudnnGetConvolutionCandidates(handles.ours,
                                                UCUDNN_FORWARD,
                                                convolution.xDesc(),
                                                convolution.wDesc(),
                                                convolution.convDesc(),
                                                convolution.yDesc(),
                                                256,
                                                &count,
                                                entries));
    ASSERT_LE(count, 256);
    std::set<int> tried;
    for (int i = 0; i < count; ++i) tried.insert(entries[i].batch);
    // Between powers of two kernels are asked for only where they promise something.
    EXPECT_TRUE(std::includes(sizes.begin(), sizes.end(), tried.begin(), tried.end()));
    for (const int size : sizes)
      EXPECT_TRUE(size == 3 || size == 5 || tried.count(size) == 1) << size;
  }
}

/// As UCUDNN_MAX_ERROR does.
TEST_F(SettingsTest, AMaxErrorIsFiniteAndNotNegative) {
  const Handles handles;
  for (const double error : {0.0, 1e-5, 2.0}) {
    EXPECT_CUDNN(handles.ours.setMaxError(error)) << error;
    const EnvironmentGuard setting("UCUDNN_MAX_ERROR", std::to_string(error));
    const Handles others;
  }
  for (const double error : {-1e-5, HUGE_VAL, std::nan("")})
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, handles.ours.setMaxError(error)) << error;
}

/// As UCUDNN_BENCHMARK_SHARE does.
TEST_F(SettingsTest, ABenchmarkShareIsBetween0And1OrInfinite) {
  const Handles handles;
  for (const double share : {0.0, 0.5, 1.0, HUGE_VAL})
    EXPECT_CUDNN(handles.ours.setBenchmarkShare(share)) << share;
  for (const double share : {-0.1, 1.1, -HUGE_VAL, std::nan("")})
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, handles.ours.setBenchmarkShare(share)) << share;
}

TEST_F(SettingsTest, UndividedPolicyOfTheHandleSplitsNothing) {
  // The filter has nine taps: larger filters have planes, which ForcedSplits hasn't measured.
  ConvolutionCase parameters;
  parameters.channels = 48;
  const ForcedSplits forced({parameters});
  const Handles handles;
  Convolution convolution(parameters);
  const DeviceBuffer workspace(kLimit);
  for (const ucudnnOperation_t operation : kOperations) {
    ASSERT_CUDNN(handles.ours.setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::undivided));
    const ucudnnStatistics_t before = statistics();
    ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, {workspace.get(), kLimit}));
    EXPECT_EQ(before.undividedCalls + 1, statistics().undividedCalls);
    ASSERT_CUDNN(handles.ours.setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::powerOfTwo));
    ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, {workspace.get(), kLimit}));
    EXPECT_EQ(before.splitCalls + 1, statistics().splitCalls) << "set at once";
  }
}

TEST_F(SettingsTest, DeterministicUsesOnlyDeterministicKernels) {
  const EnvironmentGuard setting("UCUDNN_DETERMINISTIC", "1");
  const Handles handles;
  ConvolutionCase parameters;
  parameters.channels = 20;
  Convolution convolution(parameters);
  for (const ucudnnOperation_t operation : kOperations) {
    for (const std::size_t limit : {std::size_t{0}, kLimit}) {
      ucudnnPlan_t plan{};
      std::vector<ucudnnMicroBatches_t> entries;
      const cudnnStatus_t status =
          convolution.plan(handles.ours, operation, limit, &plan, &entries);
      if (status == CUDNN_STATUS_NOT_SUPPORTED) continue;  // none within no workspace
      ASSERT_CUDNN(status);
      for (const ucudnnMicroBatches_t& entry : entries) EXPECT_EQ(1, entry.deterministic);
    }
    std::vector<Performance> results;
    ASSERT_CUDNN(convolution.query(handles.ours, operation, Query::kGet, 8, &results));
    for (const Performance& entry : results)
      EXPECT_EQ(CUDNN_DETERMINISTIC, entry.determinism) << toText(operation);
  }
}

long long counted(const ChildResult& child, const char* what) {
  std::smatch match;
  const std::regex pattern(std::string(what) + " (\\d+)");
  if (!std::regex_search(child.output, match, pattern)) return -1;
  return std::stoll(match[1]);
}

TEST_F(SettingsTest, SecondProcessFindsEverythingInTheDatabase) {
  const std::string task = ConvolutionCase().serialized();
  const std::map<std::string, std::string> environment = {
      {"UCUDNN_DATABASE", directory_.file("measurements.db")}};
  const ChildResult first = runClient({"plan", task}, environment);
  const ChildResult second = runClient({"plan", task}, environment);
  ASSERT_EQ(0, first.status) << first.output;
  ASSERT_EQ(0, second.status) << second.output;
  EXPECT_LT(0, counted(first, "measured"));
  EXPECT_EQ(0, counted(second, "measured")) << second.output;
  EXPECT_EQ(counted(first, "measured"), counted(second, "loaded")) << second.output;
}

TEST_F(SettingsTest, UnusableDatabaseIsOneWarningAndRightResults) {
  const std::string corrupt = directory_.file("corrupt.db");
  std::ofstream(corrupt)
      << "this is no database, but a text of more than a hundred bytes, which is "
         "what the header of an SQLite file has at least";
  for (const std::string& path : {corrupt,
                                  directory_.path(),
                                  directory_.file("no/such/folder.db"),
                                  std::string("/dev/full")}) {
    SCOPED_TRACE(path);
    std::remove(logFile().c_str());
    const ChildResult child = runClient(
        {"run", ConvolutionCase().serialized()},
        {{"UCUDNN_DATABASE", path}, {"UCUDNN_LOG_LEVEL", "warn"}, {"UCUDNN_LOG_FILE", logFile()}});
    EXPECT_EQ(0, child.status) << child.output;
    EXPECT_LT(0, counted(child, "measured"));
    EXPECT_EQ(1U, linesWith(logFile(), {"[warn]", path}).size());
    EXPECT_EQ(1U, linesWith(logFile(), {}).size());
  }
}

TEST_F(SettingsTest, AllDevicesShareTheBenchmarkAndGiveTheSamePlan) {
  if (!onSimulator()) GTEST_SKIP() << "needs devices of chosen models";
  ConvolutionCase parameters = fftCase(32);
  parameters.batch = 64;
  const std::string task = parameters.serialized();
  std::map<std::string, std::string> settings = {{"UCUDNN_SIMULATOR_ARITHMETIC", "off"},
                                                 {"UCUDNN_SIMULATOR_DEVICES", "H200,H200"},
                                                 {"UCUDNN_BATCH_SIZE_POLICY", "all"},
                                                 {"UCUDNN_LOG_LEVEL", "info"},
                                                 {"UCUDNN_LOG_FILE", logFile()}};
  const ChildResult one = runClient({"plan", task}, settings);
  ASSERT_EQ(0, one.status) << one.output;
  EXPECT_EQ(3U, linesWith(logFile(), {" 0 of them on further devices"}).size());
  settings["UCUDNN_BENCHMARK_DEVICES"] = "all";
  const auto plans = [](const std::string& text) { return text.substr(0, text.find("clock")); };
  // A device that is not ready in time is not waited for: here a benchmark takes milliseconds.
  bool tookPart = false;
  for (int i = 0; i < 20 && !tookPart; ++i) {
    std::remove(logFile().c_str());
    const ChildResult two = runClient({"plan", task}, settings);
    ASSERT_EQ(0, two.status) << two.output;
    EXPECT_EQ(plans(one.output), plans(two.output));
    tookPart = linesWith(logFile(), {" 0 of them on further devices"}).size() <
               linesWith(logFile(), {"of them on further devices"}).size();
  }
  EXPECT_TRUE(tookPart);
}

TEST_F(SettingsTest, DevicesOfAnotherModelDoNotHelp) {
  if (!onSimulator()) GTEST_SKIP() << "needs devices of chosen models";
  const ChildResult child = runClient({"plan", ConvolutionCase().serialized()},
                                      {{"UCUDNN_SIMULATOR_DEVICES", "H200,P100-SXM2"},
                                       {"UCUDNN_BENCHMARK_DEVICES", "all"},
                                       {"UCUDNN_LOG_LEVEL", "info"},
                                       {"UCUDNN_LOG_FILE", logFile()}});
  EXPECT_EQ(0, child.status) << child.output;
  const auto helped = linesWith(logFile(), {"of them on further devices"});
  EXPECT_FALSE(helped.empty());
  EXPECT_EQ(helped.size(), linesWith(logFile(), {" 0 of them on further devices"}).size());
}

TEST_F(SettingsTest, EquivalenceTestLogsSmallDistancesForEveryType) {
  for (const cudnnDataType_t type :
       {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE}) {
    ConvolutionCase parameters;
    parameters.type = type;
    parameters.channels = 24;
    const ForcedSplits forced({parameters});
    const std::string log = logFile() + std::to_string(type);
    const EnvironmentGuard settings(
        {{"UCUDNN_EQUIVALENCE_TEST", "1"}, {"UCUDNN_LOG_LEVEL", "info"}, {"UCUDNN_LOG_FILE", log}});
    const Handles handles;
    Convolution convolution(parameters);
    const DeviceBuffer workspace(kLimit);
    for (const ucudnnOperation_t operation : kOperations)
      ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, {workspace.get(), kLimit}, 1, 0.5));
    const auto lines = linesWith(log, {"equivalence test", "normalized L2 distance"});
    // Filter gradients in half and bfloat16 are not split.
    const bool splitsAll = type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE;
    EXPECT_EQ(splitsAll ? 3U : 2U, lines.size()) << "type " << type;
    for (const std::string& line : lines) {
      const std::string number = line.substr(line.rfind(' '));
      EXPECT_LE(std::stod(number), std::max(toleranceBetweenAlgorithms(), tolerance(parameters)))
          << line;
    }
  }
}

}  // namespace
}  // namespace ucudnn::test
