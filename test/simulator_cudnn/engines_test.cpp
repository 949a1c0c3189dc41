// The simulated engines: notes, knobs, limits, workspaces, times.
#include <algorithm>
#include <set>

#include "backend_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

class EnginesTest : public testing::Test {
 protected:
  EnginesTest() { ucudnnSimulatorSetArithmetic(2); }
  ~EnginesTest() override { ucudnnSimulatorSetArithmetic(0); }
};

std::set<std::int64_t> enginesOf(const std::vector<DescriptorPointer>& configs) {
  std::set<std::int64_t> engines;
  for (const auto& config : configs) engines.insert(textOf(*config).engine);
  return engines;
}

// AlexNet's second convolution: 38 engine configurations on an H200.
ConvolutionCase largeCase(int batch) {
  ConvolutionCase large;
  large.batch = batch;
  large.channels = 64;
  large.filters = 192;
  large.input = {27, 27};
  large.filter = {5, 5};
  large.pad = {2, 2};
  return large;
}

double timeMs(const Convolution& convolution, const BackendGraph& graph, const Descriptor& plan) {
  const DeviceBuffer workspace(static_cast<std::size_t>(workspaceOf(plan)));
  // Filling buffers that are made now takes the stream's time.
  for (const DeviceBuffer* buffer : {&convolution.x(), &convolution.w(), &convolution.y()}) {
    EXPECT_NE(nullptr, buffer->get());
  }
  const double before = ucudnnSimulatorClock(nullptr);
  EXPECT_CUDNN(graph.run(plan, workspace.get()));
  return ucudnnSimulatorClock(nullptr) - before;
}

/// The fastest configuration within a limit.
double bestMs(int batch, Operation operation, std::int64_t limit) {
  Convolution convolution(largeCase(batch));
  const BackendGraph graph(convolution, operation);
  double best = 1e9;
  for (const auto& config : graph.allConfigs()) {
    const auto plan = graph.plan(*config);
    if (workspaceOf(*plan) <= limit) best = std::min(best, timeMs(convolution, graph, *plan));
  }
  return best;
}

TEST_F(EnginesTest, ThereAreSixToTwelveConfigurationsOfSeveralEngines) {
  for (const Operation operation : kOperations) {
    Convolution convolution(largeCase(32));
    const BackendGraph graph(convolution, operation);
    const auto configs = graph.configs(CUDNN_HEUR_MODE_A);
    EXPECT_GE(configs.size(), 6U);
    EXPECT_LE(configs.size(), 12U);
    EXPECT_GE(enginesOf(configs).size(), 5U);
    EXPECT_GT(graph.configs(CUDNN_HEUR_MODE_B).size(), configs.size());
  }
}

TEST_F(EnginesTest, ConfigurationsAreRebuiltFromTheirText) {
  for (const Operation operation : kOperations) {
    Convolution convolution(largeCase(4));
    const BackendGraph graph(convolution, operation);
    for (const auto& config : graph.allConfigs()) {
      const EngineText text = textOf(*config);
      SCOPED_TRACE(testing::Message() << text);
      const auto rebuilt = graph.config(text, CUDNN_STATUS_SUCCESS);
      EXPECT_EQ(text, textOf(*rebuilt));
      const auto first = graph.plan(*config);
      const auto second = graph.plan(*rebuilt);
      EXPECT_EQ(workspaceOf(*first), workspaceOf(*second));
      const double time = timeMs(convolution, graph, *first);
      EXPECT_NEAR(time, timeMs(convolution, graph, *second), 1e-6 * time);
    }
  }
}

TEST_F(EnginesTest, KnobsOfAConfigurationAreWithinTheirRanges) {
  Convolution convolution(largeCase(4));
  const BackendGraph graph(convolution, Operation::kForward);
  for (const auto& config : graph.configs(CUDNN_HEUR_MODE_A)) {
    const EngineText text = textOf(*config);
    const auto infos = engineOf(*config)->descriptors(
        CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS);
    EXPECT_EQ(text.knobs.size(), infos.size()) << text;
    for (const auto& info : infos) {
      const auto type =
          info->one<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE);
      const auto value = text.knobs.at(type);
      EXPECT_GE(value,
                info->one<std::int64_t>(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, CUDNN_TYPE_INT64));
      EXPECT_LE(value,
                info->one<std::int64_t>(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64));
      EXPECT_EQ(1, info->one<std::int64_t>(CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64));
    }
  }
}

TEST_F(EnginesTest, NotesSayWhatTheKernelsAre) {
  Convolution convolution(largeCase(4));
  const auto engineOn = [&](Operation operation, std::int64_t index) {
    return BackendGraph(convolution, operation).engine(index, CUDNN_STATUS_SUCCESS);
  };
  const auto atomic = engineOn(Operation::kBackwardFilter, 20);
  EXPECT_TRUE(hasNote(*atomic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
  EXPECT_FALSE(hasNote(*atomic, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  EXPECT_TRUE(
      hasNote(*engineOn(Operation::kBackwardData, 25), CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
  EXPECT_TRUE(hasNote(*engineOn(Operation::kForward, 3), CUDNN_NUMERICAL_NOTE_FFT));
  const auto winograd = engineOn(Operation::kBackwardFilter, 17);
  EXPECT_FALSE(hasNote(*winograd, CUDNN_NUMERICAL_NOTE_WINOGRAD)) << "as on an H200";
  EXPECT_FALSE(hasNote(*atomic, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
  for (const Operation operation : kOperations) {
    const std::int64_t compiled[] = {71, 78, 70};
    const auto engine = engineOn(operation, compiled[static_cast<int>(operation)]);
    EXPECT_TRUE(hasBehavior(*engine, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION));
    EXPECT_TRUE(hasBehavior(*engine, CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API));
  }
}

TEST_F(EnginesTest, SumsOfHalvesMayBeHalves) {
  ConvolutionCase half = largeCase(4);
  for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    half.type = type;
    Convolution convolution(half);
    const BackendGraph graph(convolution, Operation::kBackwardFilter);
    EXPECT_TRUE(hasNote(*graph.engine(20, CUDNN_STATUS_SUCCESS),
                        CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
    EXPECT_FALSE(hasNote(*graph.engine(34, CUDNN_STATUS_SUCCESS),
                         CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
  }
}

TEST_F(EnginesTest, EnginesRefuseWhatTheyCannotCompute) {
  const auto status = [](const ConvolutionCase& parameters,
                         Operation operation,
                         std::int64_t index,
                         cudnnStatus_t expected,
                         std::int64_t alignment = 16) {
    Convolution convolution(parameters);
    BackendGraph::Options options;
    options.alignment = alignment;
    BackendGraph(convolution, operation, options).engine(index, expected);
  };
  ConvolutionCase plain = largeCase(4);
  status(plain, Operation::kForward, 38, CUDNN_STATUS_SUCCESS);
  status(plain, Operation::kForward, 38, CUDNN_STATUS_NOT_SUPPORTED, 4);
  status(plain, Operation::kForward, 46, CUDNN_STATUS_SUCCESS, 4);
  status(plain, Operation::kForward, 2, CUDNN_STATUS_NOT_SUPPORTED);
  ConvolutionCase grouped = plain;
  grouped.groups = 2;
  status(grouped, Operation::kForward, 38, CUDNN_STATUS_NOT_SUPPORTED);
  status(grouped, Operation::kForward, 67, CUDNN_STATUS_SUCCESS);
  ConvolutionCase strided = plain;
  strided.stride = {2, 2};
  status(strided, Operation::kBackwardFilter, 17, CUDNN_STATUS_NOT_SUPPORTED);
  ConvolutionCase seven = plain;
  seven.filter = {7, 7};
  seven.pad = {3, 3};
  status(seven, Operation::kBackwardFilter, 17, CUDNN_STATUS_NOT_SUPPORTED);
  ConvolutionCase wide = plain;
  wide.type = wide.computeType = CUDNN_DATA_DOUBLE;
  status(wide, Operation::kForward, 67, CUDNN_STATUS_NOT_SUPPORTED);
  status(wide, Operation::kForward, 28, CUDNN_STATUS_SUCCESS);
  ConvolutionCase gapped = plain;
  gapped.layout = Layout::kGapped;
  status(gapped, Operation::kForward, 46, CUDNN_STATUS_SUCCESS);
  status(gapped, Operation::kForward, 0, CUDNN_STATUS_SUCCESS);
}

TEST_F(EnginesTest, CompiledEnginesDoNotScale) {
  for (const double beta : {0.0, 1.0}) {
    ConvolutionCase scaled = largeCase(4);
    scaled.beta = beta;
    Convolution convolution(scaled);
    const BackendGraph graph(convolution, Operation::kBackwardFilter);
    graph.config({70, {}}, beta == 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(beta == 0 ? 1U : 0U, enginesOf(graph.configs(CUDNN_HEUR_MODE_FALLBACK)).count(70));
    EXPECT_EQ(1U, enginesOf(graph.configs(CUDNN_HEUR_MODE_FALLBACK)).count(20));
  }
}

// As cuDNN 9.19: filters with their channels innermost are accumulated in the workspace.
TEST_F(EnginesTest, AccumulatedFiltersMayNeedMoreWorkspace) {
  std::int64_t bytes[2];
  for (const int beta : {0, 1}) {
    ConvolutionCase scaled = largeCase(4);
    scaled.layout = Layout::kNhwc;
    scaled.beta = beta;
    Convolution convolution(scaled);
    const BackendGraph graph(convolution, Operation::kBackwardFilter);
    bytes[beta] = workspaceOf(*graph.plan(*graph.config({68, {}}, CUDNN_STATUS_SUCCESS)));
  }
  EXPECT_EQ(bytes[0] + 64 * 192 * 25 * 4, bytes[1]);
}

// As cuDNN 9.19: the channels of a 1x1 filter are innermost in either layout.
TEST_F(EnginesTest, WhatHasChannelsInnermostIsNotCopied) {
  constexpr std::int64_t kDescribed = 131;
  ConvolutionCase small = largeCase(4);
  small.filter = {1, 1};
  small.pad = {0, 0};
  const std::int64_t tensors = std::int64_t{4} * (64 + 192) * 27 * 27 * 4;
  for (const bool isNhwc : {false, true}) {
    small.layout = isNhwc ? Layout::kNhwc : Layout::kNchw;
    Convolution convolution(small);
    const BackendGraph graph(convolution, Operation::kForward);
    const auto config = graph.config({67, {{CUDNN_KNOB_TYPE_WORKSPACE, 1}}}, CUDNN_STATUS_SUCCESS);
    EXPECT_EQ((isNhwc ? 0 : tensors) + kDescribed, workspaceOf(*graph.plan(*config)));
  }
}

TEST_F(EnginesTest, HeuristicsAreGoodNotPerfect) {
  bool perfect = true;
  for (const Operation operation : kOperations) {
    Convolution convolution(largeCase(64));
    const BackendGraph graph(convolution, operation);
    std::vector<double> times;
    std::vector<EngineText> texts;
    for (const auto& config : graph.configs(CUDNN_HEUR_MODE_A)) {
      times.push_back(timeMs(convolution, graph, *graph.plan(*config)));
      texts.push_back(textOf(*config));
    }
    EXPECT_LT(times.front(), 1.5 * *std::min_element(times.begin(), times.end()));
    EXPECT_LT(times.front(), times.back());
    perfect = perfect && std::is_sorted(times.begin(), times.end());
    std::vector<EngineText> instant;
    for (const auto& config : graph.configs(CUDNN_HEUR_MODE_INSTANT)) {
      instant.push_back(textOf(*config));
    }
    EXPECT_EQ(texts, instant);
  }
  EXPECT_FALSE(perfect);
}

TEST_F(EnginesTest, ATestScalesTheTimeOfOneConfigurationAtOneBatch) {
  constexpr double kFactor = 1.0 / 8;
  const auto times = [](int batch, bool scales) {
    Convolution convolution(largeCase(batch));
    const BackendGraph graph(convolution, Operation::kForward);
    const auto configs = graph.configs(CUDNN_HEUR_MODE_A);
    if (scales) ucudnnSimulatorScaleTime(configs.front()->get(), kFactor);
    std::vector<double> all;
    for (const auto& config : configs)
      all.push_back(timeMs(convolution, graph, *graph.plan(*config)));
    return all;
  };
  const std::vector<double> before = times(48, false), other = times(24, false);
  const std::vector<double> after = times(48, true);
  ASSERT_FALSE(other.empty());
  ASSERT_EQ(before.size(), after.size());
  // To within the clock's ticks.
  EXPECT_NEAR(before[0] * kFactor, after[0], 1e-6);
  for (std::size_t i = 1; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-6);
  EXPECT_NEAR(other[0], times(24, false)[0], 1e-6);
}

TEST_F(EnginesTest, TheBestEngineChangesWithTheBatch) {
  std::set<EngineText> winners;
  for (const int batch : {1, 8, 64, 256}) {
    Convolution convolution(largeCase(batch));
    const BackendGraph graph(convolution, Operation::kForward);
    double best = 1e9;
    EngineText winner;
    for (const auto& config : graph.configs(CUDNN_HEUR_MODE_A)) {
      const double time = timeMs(convolution, graph, *graph.plan(*config));
      if (time < best) {
        best = time;
        winner = textOf(*config);
      }
    }
    winners.insert(winner);
  }
  EXPECT_GT(winners.size(), 1U);
}

TEST_F(EnginesTest, SplittingPaysUnderALimit) {
  constexpr std::int64_t kLimit = std::int64_t{64} << 20;
  constexpr std::int64_t kUnlimited = std::int64_t{16} << 30;
  for (const Operation operation : kOperations) {
    SCOPED_TRACE(static_cast<int>(operation));
    const double undivided = bestMs(256, operation, kLimit);
    EXPECT_LT(bestMs(256, operation, kUnlimited), 0.8 * undivided);
    EXPECT_LT(4 * bestMs(64, operation, kLimit), 0.9 * undivided);
    EXPECT_LT(undivided, 1e9);  // something needs little workspace
  }
}

}  // namespace
}  // namespace ucudnn::simulator::test
