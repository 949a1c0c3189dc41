// Plans in a file: the same in every process that names it, nothing measured.
#include <fstream>
#include <iterator>
#include <regex>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;
constexpr int kChannels = 56;

std::string contentOf(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The client's output about its plans, and about results that no other order of sums can change.
std::string saidOf(const ChildResult& child) {
  std::string said;
  for (const std::string word : {"plan ", "predicted ", "result forward "}) {
    const std::regex line("(^|\n)(" + word + "[^\n]*)");
    std::sregex_iterator match(child.output.begin(), child.output.end(), line);
    for (; match != std::sregex_iterator(); ++match) said += match->str(2) + "\n";
  }
  return said;
}

bool says(const ChildResult& child, const std::string& words) {
  return child.output.find(words) != std::string::npos;
}

bool hasSplit(const ChildResult& child) {
  return std::regex_search(child.output, std::regex("\\+ ([2-9]|[1-9][0-9]+) x|\\+.*\\+"));
}

class PlansTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    setArithmetic(Arithmetic::kOff);  // here plans are made; processes of their own run them
  }
  void TearDown() override {
    setArithmetic(Arithmetic::kFull);
    LibraryTest::TearDown();
  }

  using Environment = std::map<std::string, std::string>;

  ChildResult client(const std::string& command,
                     const ConvolutionCase& parameters,
                     Environment environment) const {
    environment.insert({"UCUDNN_LOG_LEVEL", "warn"});
    // Only "run" compares results.
    if (command == "plan") environment["UCUDNN_SIMULATOR_ARITHMETIC"] = "off";
    if (command == "plan-fused") environment["UCUDNN_SIMULATOR_ARITHMETIC"] = "timed";
    environment.insert({"UCUDNN_LOG_FILE", log_});
    const ChildResult child = runClient({command, parameters.serialized()}, environment);
    EXPECT_EQ(0, child.status) << child.output;
    return child;
  }

  /// Another process's plans, all of them split.
  void save(const ConvolutionCase& parameters, Environment environment = {}) const {
    const ForcedSplits forced({parameters});
    environment["LIBRARY_CLIENT_SAVE"] = file_;
    EXPECT_TRUE(hasSplit(client("plan", parameters, environment)));
    EXPECT_TRUE(linesWith(log_, {}).empty());
  }

  void change(const std::string& from, const std::string& to) const {
    const std::string text = contentOf(file_);
    const std::string changed = std::regex_replace(text, std::regex(from), to);
    EXPECT_NE(text, changed);
    std::ofstream(file_) << changed;
  }

  TemporaryDirectory directory_;
  const std::string file_ = directory_.file("plans.json");
  const std::string log_ = directory_.file("log");
  ConvolutionCase case_ = fftCase(kChannels);
};

TEST_F(PlansTest, AnotherProcessHasTheSamePlansAndBitsAndMeasuresNothing) {
  case_.math = CUDNN_DEFAULT_MATH;
  const std::pair<const char*, const char*> settings[] = {
      {"legacy", "0"}, {"legacy", "64MiB"}, {"engines", "0"}, {"all", "64MiB"}};
  for (const auto& [kernels, memory] : settings) {
    SCOPED_TRACE(std::string(kernels) + ", " + memory);
    const ForcedSplits forced({case_});
    for (const char* const command : {"plan", "run"}) {
      const ChildResult first = client(command,
                                       case_,
                                       {{"UCUDNN_KERNELS", kernels},
                                        {"UCUDNN_GRAPH_MEMORY", memory},
                                        {"LIBRARY_CLIENT_SAVE", file_}});
      const std::string again = directory_.file("again.json");
      // The file's own kernels run, whatever the setting says.
      const ChildResult second = client(command,
                                        case_,
                                        {{"UCUDNN_DATABASE", ""},
                                         {"UCUDNN_GRAPH_MEMORY", memory},
                                         {"UCUDNN_PLANS", file_},
                                         {"LIBRARY_CLIENT_SAVE", again}});
      EXPECT_TRUE(says(second, "measured 0 loaded 0")) << second.output;
      if (*command == 'p')
        EXPECT_TRUE(*kernels == 'l' ? hasSplit(first) : says(first, " eng")) << first.output;
      else
        EXPECT_TRUE(says(first, "result forward ")) << first.output;
      EXPECT_EQ(saidOf(first), saidOf(second));
      EXPECT_EQ(contentOf(file_), contentOf(again));
    }
    EXPECT_TRUE(linesWith(log_, {}).empty());
  }
}

TEST_F(PlansTest, TilesAreFrozenToo) {
  if (!onSimulator()) GTEST_SKIP() << "forceTiles knows the simulator's workspaces";
  case_.math = CUDNN_DEFAULT_MATH;
  const EnvironmentGuard kernels("UCUDNN_KERNELS", "engines");
  const ForcedSplits forced({case_});
  forceTiles(forced.database());
  const ChildResult first = client("run", case_, {{"LIBRARY_CLIENT_SAVE", file_}});
  const Environment frozen{
      {"UCUDNN_DATABASE", ""}, {"UCUDNN_KERNELS", "legacy"}, {"UCUDNN_PLANS", file_}};
  const ChildResult second = client("run", case_, frozen);
  EXPECT_TRUE(says(second, "measured 0 loaded 0")) << second.output;
  EXPECT_EQ(saidOf(first), saidOf(second));
  EXPECT_TRUE(linesWith(log_, {}).empty());
  for (const char* const lie : {"_tiles=3", "_tiles=999"}) {
    change("_tiles=[0-9]+", lie);
    EXPECT_FALSE(says(client("run", case_, frozen), "measured 0"));
    EXPECT_EQ(3U, linesWith(log_, {"[warn]", lie, ": planned as usual"}).size());
    EXPECT_EQ(3U, linesWith(log_, {}).size());
    std::remove(log_.c_str());
  }
}

TEST_F(PlansTest, FusedCallsAreFrozenToo) {
  case_.math = CUDNN_DEFAULT_MATH;
  const auto splitsOf = [](const ChildResult& child) {
    const auto place = child.output.find(" split ");
    return place == std::string::npos ? "none" : child.output.substr(place);
  };
  for (const char* const kernels : {"legacy", "engines"}) {
    SCOPED_TRACE(kernels);
    const EnvironmentGuard guard("UCUDNN_KERNELS", kernels);
    const ForcedSplits forced({case_}, ForcedSplits::Operations::kFused);
    const ChildResult first = client("plan-fused", case_, {{"LIBRARY_CLIENT_SAVE", file_}});
    const bool hasEngines = contentOf(file_).find("\"eng") != std::string::npos;
    EXPECT_EQ(*kernels == 'e', hasEngines);
    // The file's own kernels run, whatever the setting says.
    const std::string again = directory_.file("again.json");
    const ChildResult second = client("plan-fused",
                                      case_,
                                      {{"UCUDNN_DATABASE", ""},
                                       {"UCUDNN_KERNELS", "legacy"},
                                       {"UCUDNN_PLANS", file_},
                                       {"LIBRARY_CLIENT_SAVE", again}});
    EXPECT_TRUE(says(second, "measured 0 loaded 0")) << second.output;
    EXPECT_EQ(" split 4\n", splitsOf(first));
    EXPECT_EQ(splitsOf(first), splitsOf(second));
    EXPECT_EQ(contentOf(file_), contentOf(again));
    EXPECT_TRUE(linesWith(log_, {}).empty());
  }
}

TEST_F(PlansTest, DeterministicHandleTakesNoOtherPlan) {
  save(case_);
  change("\"kernel\": \"[A-Z_0-9]+/", "\"kernel\": \"ALGO_0/");  // whose sums have no fixed order
  const EnvironmentGuard log({{"UCUDNN_LOG_LEVEL", "warn"}, {"UCUDNN_LOG_FILE", log_}});
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setPlans(file_));
  const Convolution convolution(case_);
  ucudnnPlan_t plan{};
  for (const bool deterministic : {false, true}) {
    SCOPED_TRACE(deterministic);
    ASSERT_CUDNN(handles.ours.setDeterministic(deterministic));
    for (const ucudnnOperation_t operation : {UCUDNN_BACKWARD_DATA, UCUDNN_BACKWARD_FILTER}) {
      std::vector<ucudnnMicroBatches_t> entries;
      ASSERT_CUDNN(convolution.plan(handles.ours, operation, kLimit, &plan, &entries));
      for (const ucudnnMicroBatches_t& entry : entries)
        EXPECT_EQ(deterministic, entry.deterministic != 0) << entry.kernel;
    }
    EXPECT_EQ(deterministic ? 2U : 0U, linesWith(log_, {"it is not deterministic"}).size());
    EXPECT_EQ(deterministic ? 2U : 0U, linesWith(log_, {}).size());
  }
}

TEST_F(PlansTest, WhatIsMissingIsPlannedAsUsualWithOneWarning) {
  save(case_);
  ConvolutionCase other = case_;
  ++other.channels;
  const ChildResult usual = client("plan", other, {});
  const ChildResult child = client("plan", other, {{"UCUDNN_PLANS", file_}});
  EXPECT_FALSE(says(child, "measured 0 ")) << child.output;
  // On a GPU no two measurements are the same.
  if (onSimulator()) {
    EXPECT_EQ(saidOf(usual), saidOf(child));
  }
  for (const char* const operation : {"forward", "backward_data", "backward_filter"})
    EXPECT_EQ(1U,
              linesWith(log_,
                        {"[warn]",
                         file_ + ": no plan for " + operation + " ",
                         "the file has none: planned as usual"})
                  .size());
  EXPECT_EQ(3U, linesWith(log_, {}).size());
}

TEST_F(PlansTest, StrictLeavesWhatIsMissingToCudnn) {
  save(case_);
  ConvolutionCase other = case_;
  ++other.channels;
  const Environment strict = {{"UCUDNN_PLANS", file_}, {"UCUDNN_PLANS_STRICT", "1"}};
  EXPECT_TRUE(says(client("run", other, strict), "measured 0 loaded 0 split 0"));
  EXPECT_EQ(3U, linesWith(log_, {"the file has none: left to cuDNN"}).size());
  EXPECT_EQ(3U, linesWith(log_, {}).size());
  EXPECT_FALSE(says(client("run", case_, strict), "split 0"));
  EXPECT_EQ(3U, linesWith(log_, {}).size());
}

TEST_F(PlansTest, PlansOfAnotherMachineAreTimedBeforeAndToldOnce) {
  save(case_);
  const std::string original = contentOf(file_);
  // Versions that no test runs with.
  const std::pair<const char*, const char*> changes[] = {
      {"\"cudnn_version\": [0-9]+", "\"cudnn_version\": 90000"},
      {"\"cuda_version\": [0-9]+", "\"cuda_version\": 12010"},
      {"\"device\": \"[^\"]*\"", "\"device\": \"GPU 9\""},
      {"\"cud[a-z]*_version\": [0-9]+,", ""}};
  const char* const told[] = {"cuDNN 9.0.0, and ", "CUDA 12.1, cuDNN", "made for GPU 9, "};
  for (const bool isStrict : {false, true})
    for (std::size_t i = 0; i < std::size(changes); ++i) {
      SCOPED_TRACE(std::string(changes[i].second) + (isStrict ? " strict" : ""));
      std::ofstream(file_) << original;
      change(changes[i].first, changes[i].second);
      const ChildResult child = client(
          "run", case_, {{"UCUDNN_PLANS", file_}, {"UCUDNN_PLANS_STRICT", isStrict ? "1" : "0"}});
      // A file that does not say what it was made for is taken to be made for this.
      const bool isTold = i < std::size(told), isTimed = isTold && !isStrict;
      EXPECT_NE(isTimed, says(child, "measured 0 ")) << child.output;
      if (!isTimed) {
        EXPECT_FALSE(says(child, "split 0")) << child.output;
      }
      const std::string use = isTimed ? "timed before it is used on " : "used as it is on ";
      EXPECT_EQ(
          isTold ? 1U : 0U,
          linesWith(log_, {"[warn]", isTold ? told[i] : "made for", isTold ? use : ""}).size());
      EXPECT_EQ(isTold ? 1U : 0U, linesWith(log_, {}).size());
      std::remove(log_.c_str());
    }
}

TEST_F(PlansTest, PlansOfTheMostSimilarMachineAreTaken) {
  save(case_);
  const std::string own = contentOf(file_);
  change("\"device\": \"[^\"]*\"", "\"device\": \"GPU 9\"");
  change("\"kernel\": \"[^\"]*\"", "\"kernel\": \"NO_SUCH/default\"");
  const auto plansIn = [](const std::string& text) {
    const std::size_t begin = text.find("[\n") + 2;
    return text.substr(begin, text.rfind("\n ]") - begin);
  };
  const std::string others = plansIn(contentOf(file_));
  std::ofstream(file_) << own.substr(0, own.find("[\n") + 2) << others << ",\n"
                       << plansIn(own) << "\n ]\n}\n";
  const ChildResult child = client("run", case_, {{"UCUDNN_PLANS", file_}});
  EXPECT_TRUE(says(child, "measured 0 ")) << child.output;
  EXPECT_TRUE(linesWith(log_, {}).empty());
}

TEST_F(PlansTest, KernelThatIsNotHereIsPlannedAsUsual) {
  const std::pair<const char*, const char*> kernels[] = {
      {"NO_SUCH/default", "this build knows no kernel NO_SUCH/default"},
      {"eng987654_k1=2", "cuDNN has no kernel eng987654_k1=2 here at batch "}};
  for (const auto& [kernel, warning] : kernels) {
    SCOPED_TRACE(kernel);
    std::remove(log_.c_str());
    save(case_);
    change("\"kernel\": \"[^\"]*\"", "\"kernel\": \"" + std::string(kernel) + "\"");
    const ChildResult child = client("run", case_, {{"UCUDNN_PLANS", file_}});
    EXPECT_FALSE(says(child, "measured 0 ")) << child.output;
    EXPECT_EQ(3U, linesWith(log_, {"[warn]", warning, ": planned as usual"}).size());
    EXPECT_EQ(3U, linesWith(log_, {}).size());
  }
}

TEST_F(PlansTest, LiesAboutTimesAndWorkspaceChangeNoResult) {
  save(case_);
  change("_bytes\": [0-9]+", "_bytes\": 0");
  change("_ms\": [0-9.e-]+", "_ms\": 1000000");
  const ChildResult child = client("run", case_, {{"UCUDNN_PLANS", file_}});
  EXPECT_TRUE(says(child, "measured 0 ")) << child.output;
  EXPECT_FALSE(says(child, "split 0")) << child.output;
}

TEST_F(PlansTest, LimitBelowThePlansWorkspaceIsPlannedAsUsual) {
  save(case_);
  const EnvironmentGuard log({{"UCUDNN_LOG_LEVEL", "warn"}, {"UCUDNN_LOG_FILE", log_}});
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setPlans(file_));
  const Convolution convolution(case_);
  const ucudnnStatistics_t before = statistics();
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  ASSERT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries));
  const std::size_t needed = plan.workspaceBytes;
  ASSERT_LT(0U, needed);
  ASSERT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, 2 * kLimit, &plan, &entries));
  EXPECT_EQ(needed, plan.workspaceBytes) << "it fits";
  EXPECT_EQ(before.kernelsMeasured, statistics().kernelsMeasured);
  EXPECT_EQ(before.plans + 1, statistics().plans);
  for (int i = 0; i < 2; ++i)
    ASSERT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, needed - 1, &plan, &entries));
  EXPECT_GT(needed, plan.workspaceBytes);
  EXPECT_LT(before.kernelsMeasured, statistics().kernelsMeasured);
  EXPECT_EQ(1U, linesWith(log_, {"it needs more workspace", "planned as usual"}).size());
}

TEST_F(PlansTest, BadFileIsRefusedLikeAnyBadSetting) {
  save(case_);
  change("\"version\": 1", "\"version\": 2");
  const std::string text = directory_.file("text");
  std::ofstream(text) << "{\n  no JSON";
  const std::pair<std::string, const char*> files[] = {{file_, "version is not 1"},
                                                       {text, "line 2: it is no JSON"},
                                                       {directory_.path(), "it is no regular file"},
                                                       {"/dev/zero", "it is no regular file"},
                                                       {directory_.file("none"), "No such file"}};
  const EnvironmentGuard log("UCUDNN_LOG_FILE", log_);
  for (const auto& [path, why] : files) {
    SCOPED_TRACE(path);
    {
      const EnvironmentGuard plans("UCUDNN_PLANS", path);
      UcudnnHandle_t handle = reinterpret_cast<cudnnHandle_t>(&handle);
      EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnCreate(&handle));
      EXPECT_TRUE(handle == nullptr);
      EXPECT_EQ(1U, linesWith(log_, {"cudnnCreate", "UCUDNN_PLANS=\"" + path, why}).size());
    }
    const Handles handles;
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, handles.ours.setPlans(path));
    EXPECT_EQ(1U, linesWith(log_, {"ucudnnSetPlans", path, why}).size());
  }
}

TEST_F(PlansTest, SetterReadsTheFileAnewAndTakesItAway) {
  save(case_);
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setPlans(file_));
  ASSERT_CUDNN(handles.ours.setPlansStrict(true));
  const Convolution convolution(case_);
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  ASSERT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries));
  std::ofstream(file_) << R"({"format": "ucudnn plans", "version": 1, "plans": []})";
  ASSERT_CUDNN(handles.ours.setDeterministic(false));
  EXPECT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries))
      << "other setters read nothing";
  ASSERT_CUDNN(handles.ours.setPlans(file_));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED,
            convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries));
  ASSERT_CUDNN(handles.ours.setPlans(""));
  EXPECT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries));
}

TEST_F(PlansTest, WhatCannotBeWrittenIsSaid) {
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnSavePlans(nullptr));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnSavePlans(""));
  const EnvironmentGuard log("UCUDNN_LOG_FILE", log_);
  const Handles handles;
  for (const std::string& path :
       {directory_.path(), directory_.file("no/folder"), std::string("/dev/null")}) {
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnSavePlans(path.c_str()));
    EXPECT_EQ(1U, linesWith(log_, {"ucudnnSavePlans", path}).size());
  }
}

}  // namespace
}  // namespace ucudnn::test
