// Run with UCUDNN_SIMULATOR_PROFILE=misc/profiles/h200_engines.csv, and the legacy algorithms'.
#include <algorithm>

#include "backend_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

struct Measured {
  EngineText text;
  double timeMs;
  std::int64_t workspaceBytes;
};

Measured measure(const Convolution& convolution,
                 const BackendGraph& graph,
                 const Descriptor& config) {
  const auto plan = graph.plan(config);
  const DeviceBuffer workspace(static_cast<std::size_t>(workspaceOf(*plan)));
  for (const DeviceBuffer* buffer : {&convolution.x(), &convolution.w(), &convolution.y()}) {
    EXPECT_NE(nullptr, buffer->get());
  }
  const double before = ucudnnSimulatorClock(nullptr);
  EXPECT_CUDNN(graph.run(*plan, workspace.get()));
  return {textOf(config), ucudnnSimulatorClock(nullptr) - before, workspaceOf(*plan)};
}

std::vector<Measured> results(const ConvolutionCase& parameters,
                              Operation operation,
                              cudnnBackendHeurMode_t mode) {
  Convolution convolution(parameters);
  const BackendGraph graph(convolution, operation);
  std::vector<Measured> measured;
  for (const auto& config : graph.configs(mode)) {
    measured.push_back(measure(convolution, graph, *config));
  }
  return measured;
}

std::vector<EngineText> texts(const std::vector<Measured>& measured) {
  std::vector<EngineText> texts;
  for (const Measured& one : measured) texts.push_back(one.text);
  return texts;
}

const EngineText kFirst{67, {{2, 9}, {13, 0}, {18, 0}, {25, 0}, {27, 4}, {28, 1}}};
const EngineText kSecond{67, {{2, 3}, {13, 0}, {18, 0}, {25, 0}, {27, 1}, {28, 2}}};

TEST(EngineProfileTest, ModeAGivesTheTablesEnginesInItsOrder) {
  const auto measured = results(alexnetConv2(256), Operation::kForward, CUDNN_HEUR_MODE_A);
  ASSERT_EQ(31U, measured.size());
  EXPECT_EQ(kFirst, measured[0].text);
  EXPECT_EQ(199410275, measured[0].workspaceBytes);
  EXPECT_NEAR(0.53440, measured[0].timeMs, 1e-6);  // the better of two timings
  EXPECT_EQ(kSecond, measured[1].text);
  EXPECT_NEAR(0.50192, measured[1].timeMs, 1e-6);
  EXPECT_EQ((EngineText{28, {{2, 4}, {3, 0}}}), measured.back().text);
}

TEST(EngineProfileTest, TheOtherModesGiveWhatTheyProposed) {
  const auto a = texts(results(alexnetConv2(256), Operation::kForward, CUDNN_HEUR_MODE_A));
  const auto b = texts(results(alexnetConv2(256), Operation::kForward, CUDNN_HEUR_MODE_B));
  const auto has = [](const std::vector<EngineText>& all, const EngineText& text) {
    return std::find(all.begin(), all.end(), text) != all.end();
  };
  const EngineText onlyInB{70, {{2, 2}, {18, 0}}};
  EXPECT_FALSE(has(a, onlyInB));
  EXPECT_TRUE(has(b, onlyInB));
  EXPECT_EQ(
      (std::vector<EngineText>{
          {70, {{2, 2}, {18, 0}}}, {70, {{2, 12}, {18, 1}}}, {0, {}}, {1, {}}, {28, {}}, {71, {}}}),
      texts(results(alexnetConv2(256), Operation::kForward, CUDNN_HEUR_MODE_FALLBACK)));
}

TEST(EngineProfileTest, BetweenRecordedBatchSizesBothNeighboursEnginesAreThere) {
  const EngineText text{70, {{2, 4}, {18, 0}}};
  const auto timeOf = [&](int batch) {
    Convolution convolution(alexnetConv2(batch));
    const BackendGraph graph(convolution, Operation::kForward);
    const auto config = graph.config(text, CUDNN_STATUS_SUCCESS);
    return measure(convolution, graph, *config).timeMs;
  };
  EXPECT_NEAR((timeOf(128) + timeOf(256)) / 2, timeOf(192), 1e-6);
  EXPECT_NEAR(2 * timeOf(256), timeOf(512), 1e-6);
}

// Backward filter's heuristics split sums as the batch needs it.
TEST(EngineProfileTest, BetweenRecordedBatchSizesNumbersOfSplitsMayDiffer) {
  const auto measured =
      texts(results(alexnetConv2(200), Operation::kBackwardFilter, CUDNN_HEUR_MODE_A));
  EXPECT_EQ(1, std::count_if(measured.begin(), measured.end(), [](const EngineText& text) {
              return text.engine == 48;
            }));
}

TEST(EngineProfileTest, WhatItGivesCanBeRebuiltAndRun) {
  for (const Operation operation : kOperations) {
    for (const int batch : {3, 64, 300}) {
      Convolution convolution(alexnetConv2(batch));
      const BackendGraph graph(convolution, operation);
      const auto configs = graph.allConfigs();
      EXPECT_GT(configs.size(), 15U);
      for (const auto& config : configs) {
        const auto rebuilt = graph.config(textOf(*config), CUDNN_STATUS_SUCCESS);
        const Measured first = measure(convolution, graph, *config);
        EXPECT_NEAR(first.timeMs, measure(convolution, graph, *rebuilt).timeMs, 1e-6);
      }
    }
  }
}

TEST(EngineProfileTest, NotesOfRecordedEngines) {
  Convolution convolution(alexnetConv2(64));
  const BackendGraph filter(convolution, Operation::kBackwardFilter);
  const BackendGraph data(convolution, Operation::kBackwardData);
  EXPECT_FALSE(hasNote(*filter.engine(17, CUDNN_STATUS_SUCCESS), CUDNN_NUMERICAL_NOTE_WINOGRAD));
  EXPECT_TRUE(hasNote(*filter.engine(48, CUDNN_STATUS_SUCCESS), CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  EXPECT_FALSE(hasNote(*filter.engine(67, CUDNN_STATUS_SUCCESS), CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  EXPECT_TRUE(hasNote(*data.engine(50, CUDNN_STATUS_SUCCESS), CUDNN_NUMERICAL_NOTE_FFT));
}

TEST(EngineProfileTest, WhatWasNotRecordedIsRefused) {
  Convolution convolution(alexnetConv2(64));
  const BackendGraph graph(convolution, Operation::kForward);
  graph.config({38, {}}, CUDNN_STATUS_NOT_SUPPORTED);
  graph.config({67, {{2, 23}}}, CUDNN_STATUS_NOT_SUPPORTED);
  graph.engine(22, CUDNN_STATUS_NOT_SUPPORTED);
}

// A filter of one tap has the same strides in both formats.
TEST(EngineProfileTest, AFilterOfOneTapIsFound) {
  ConvolutionCase downsample;  // ResNet-18's, of its second stage
  downsample.batch = 128;
  downsample.channels = 64;
  downsample.filters = 128;
  downsample.input = {56, 56};
  downsample.filter = {1, 1};
  downsample.pad = {0, 0};
  downsample.stride = {2, 2};
  downsample.math = CUDNN_DEFAULT_MATH;
  const auto measured = results(downsample, Operation::kBackwardFilter, CUDNN_HEUR_MODE_FALLBACK);
  const auto found = std::find_if(measured.begin(), measured.end(), [](const Measured& one) {
    return one.text == EngineText{20, {}};
  });
  ASSERT_NE(measured.end(), found);
  EXPECT_NEAR(0.13331, found->timeMs, 1e-6);
}

TEST(EngineProfileTest, LeavesTheUnrecordedToTheModel) {
  ConvolutionCase other = alexnetConv2(64);
  other.filters = 191;
  const auto measured = results(other, Operation::kForward, CUDNN_HEUR_MODE_A);
  EXPECT_GE(measured.size(), 6U);
  EXPECT_LE(measured.size(), 12U);
}

}  // namespace
}  // namespace ucudnn::simulator::test
