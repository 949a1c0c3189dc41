// UCUDNN_SIMULATOR_ARITHMETIC=sampled and off.
#include <algorithm>
#include <cstring>

#include "convolution_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

class SamplingTest : public testing::TestWithParam<ConvolutionCase> {
 protected:
  ~SamplingTest() override { ucudnnSimulatorSetArithmetic(static_cast<int>(Arithmetic::kFull)); }
};

// Larger than the number of samples in each tensor but the filter.
std::vector<ConvolutionCase> sampledCases() {
  std::vector<ConvolutionCase> cases;
  for (const char* name :
       {"Plain", "AlphaBeta", "Gapped", "Nhwc", "TrueConvolutionStridedDilated"}) {
    for (const ConvolutionCase& convolution : convolutionCases()) {
      if (convolution.name != name) continue;
      cases.push_back(convolution);
      cases.back().input = {23, 31};
      cases.back().channels = 6;
    }
  }
  return cases;
}

TEST_P(SamplingTest, ComputesSomeOutputsExactlyAndLeavesTheOthers) {
  for (const Operation operation : kOperations) {
    SCOPED_TRACE(static_cast<int>(operation));
    Convolution convolution(GetParam());
    const std::vector<char> before = convolution.output(operation).read();
    const std::vector<char> full = convolution.expected(operation);
    ucudnnSimulatorSetArithmetic(static_cast<int>(Arithmetic::kSampled));
    ASSERT_CUDNN(convolution.run(operation, 0));
    const std::vector<char> sampled = convolution.output(operation).read();
    const Geometry& geometry = convolution.geometry(operation);
    std::size_t computed = 0;
    for (std::size_t i = 0; i < geometry.bytes(); i += sizeof(float)) {
      const bool changed = std::memcmp(&sampled[i], &before[i], sizeof(float)) != 0;
      if (!changed) continue;
      ++computed;
      ASSERT_EQ(0, std::memcmp(&sampled[i], &full[i], sizeof(float))) << i;
    }
    EXPECT_GT(computed, std::min<std::size_t>(50, geometry.elements() / 8));
    // Gaps between samples and equal values hide some.
    EXPECT_LE(computed, std::min<std::size_t>(512, geometry.elements()));
  }
}

TEST_P(SamplingTest, ChoosesTheSameOutputsSplitOrNot) {
  ucudnnSimulatorSetArithmetic(static_cast<int>(Arithmetic::kSampled));
  for (const Operation operation : {Operation::kForward, Operation::kBackwardData}) {
    SCOPED_TRACE(static_cast<int>(operation));
    Convolution convolution(GetParam());
    const std::vector<char> before = convolution.output(operation).read();
    ASSERT_CUDNN(convolution.run(operation, 0));
    const std::vector<char> undivided = convolution.output(operation).read();
    EXPECT_NE(before, undivided);
    convolution.output(operation).write(before);
    ASSERT_CUDNN(convolution.run(operation, 0, 0, 1, GetParam().beta));
    ASSERT_CUDNN(convolution.run(operation, 0, 1, 2, GetParam().beta));
    EXPECT_EQ(undivided, convolution.output(operation).read());
  }
}

TEST_P(SamplingTest, AccumulatesFilterGradientsOverParts) {
  ucudnnSimulatorSetArithmetic(static_cast<int>(Arithmetic::kSampled));
  Convolution convolution(GetParam());
  const std::vector<char> before = convolution.w().read();
  ASSERT_CUDNN(convolution.run(Operation::kBackwardFilter, 0));
  const std::vector<char> undivided = convolution.w().read();
  convolution.w().write(before);
  ASSERT_CUDNN(convolution.run(Operation::kBackwardFilter, 0, 0, 2, GetParam().beta));
  ASSERT_CUDNN(convolution.run(Operation::kBackwardFilter, 0, 2, 1, 1));
  EXPECT_EQ(undivided, convolution.w().read());
}

TEST_P(SamplingTest, OffTakesTimeAndLeavesEverything) {
  ucudnnSimulatorSetArithmetic(static_cast<int>(Arithmetic::kOff));
  Convolution convolution(GetParam());
  const std::vector<char> before = convolution.y().read();
  const double clock = ucudnnSimulatorClock(nullptr);
  ASSERT_CUDNN(convolution.run(Operation::kForward, 0));
  EXPECT_EQ(before, convolution.y().read());
  EXPECT_GT(ucudnnSimulatorClock(nullptr), clock);
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         SamplingTest,
                         testing::ValuesIn(sampledCases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ucudnn::simulator::test
