// Plans of filter gradients in half and bfloat16 whose engines read several columns as one, or sum
// parts of the batch in float: the results, and replay.
#include "../support/simulator.hpp"
#include "replay.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{4} << 20;
constexpr ucudnnOperation_t kGradient = UCUDNN_BACKWARD_FILTER;

struct GradientCase {
  ConvolutionCase convolution;
  std::string kernel;  ///< of plans, behind the engine's name
};

std::ostream& operator<<(std::ostream& stream, const GradientCase& tested) {
  return stream << tested.convolution << tested.kernel;
}

/// With numbers of filters that no other test has.
std::vector<GradientCase> cases() {
  std::vector<GradientCase> all;
  const auto add = [&](const std::string& name, const std::string& kernel, auto change) {
    ConvolutionCase next;
    next.name = name;
    next.type = CUDNN_DATA_BFLOAT16;
    next.math = CUDNN_TENSOR_OP_MATH;
    next.batch = 8;
    change(next);
    all.push_back({next, kernel});
  };
  using C = ConvolutionCase&;
  const auto half = [](C c) { c.type = CUDNN_DATA_HALF; };
  const auto nhwc = [](C c) { c.format = CUDNN_TENSOR_NHWC; };
  const auto first = [&](C c) { nhwc(c), c.channels = 3, c.filters = 40, c.stride = {2, 2}; };
  const auto volume = [](C c) {
    c.input = {5, 6, 8};
    c.filter = {3, 3, 3};
    c.pad = c.dilation = {1, 1, 1};
    c.stride = {1, 1, 2};
  };
  const char* const folds = "_folds=2";
  add("Folded", folds, first);
  add("FoldedHalf", folds, [&](C c) { first(c), half(c); });
  add("FoldedResNet", folds, [&](C c) {
    first(c), c.input = {11, 16}, c.filter = {7, 7}, c.pad = {3, 3};
  });
  add("FoldedNonPackedBatchStride", folds, [&](C c) { first(c), c.batchGap = 40; });
  add("FoldedFiveDimensions", folds, [&](C c) { first(c), volume(c); });
  const char* const sums = "_sums=4";
  add("Summed", sums, [](C c) { c.filters = 40; });
  add("SummedHalf", sums, [&](C c) { half(c), c.filters = 40; });
  add("SummedNhwc", sums, [&](C c) { nhwc(c), c.filters = 40; });
  add("SummedGroups", sums, [](C c) { c.groups = 4, c.filters = 40; });
  add("SummedManySamples", sums, [](C c) { c.batch = 132, c.filters = 40; });
  add("SummedFiveDimensions", sums, [&](C c) { volume(c), c.filters = 40; });
  return all;
}

class GradientsTest : public ReplayFixture, public ::testing::WithParamInterface<GradientCase> {
 protected:
  GradientsTest() : ReplayFixture({GetParam().convolution}) {}
  void SetUp() override {
    ReplayFixture::SetUp();
    if (IsSkipped()) return;
    const std::string& kernel = GetParam().kernel;
    if (kernel.find("_folds") == 0) return forceKernels(database(), kernel);
    if (!onSimulator()) GTEST_SKIP() << "what parts need is known of the simulator's engines";
    forceKernels(database(), kernel, summedBytes());
  }

 private:
  /// For an engine without workspace: w, and a fourth of x and y, in float.
  static std::size_t summedBytes() {
    const Convolution convolution(GetParam().convolution);
    const auto bytesOf = [&](ucudnnOperation_t operation) {
      return 2 * convolution.geometry(operation).bytes();
    };
    const auto aligned = [](std::size_t bytes) { return (bytes + 511) / 512 * 512; };
    return aligned(bytesOf(UCUDNN_BACKWARD_FILTER)) + aligned(bytesOf(UCUDNN_BACKWARD_DATA) / 4) +
           bytesOf(UCUDNN_FORWARD) / 4;
  }

  const EnvironmentGuard engines_{"UCUDNN_KERNELS", "engines"};
};

TEST_P(GradientsTest, RightWhateverTheFactors) {
  const Handles handles;
  Convolution convolution(GetParam().convolution);
  const DeviceBuffer workspace(kLimit);
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  ASSERT_CUDNN(convolution.plan(handles.ours, kGradient, kLimit, &plan, &entries));
  ASSERT_EQ(1U, entries.size());
  EXPECT_NE(std::string(entries[0].kernel).find(GetParam().kernel), std::string::npos)
      << entries[0].kernel;
  EXPECT_EQ(GetParam().convolution.batch, entries[0].batch);
  ASSERT_NO_FATAL_FAILURE(
      expectRightWhateverTheFactors(handles, convolution, kGradient, workspace));
}

TEST_P(GradientsTest, CallsThatRepeatAreReplayed) {
  Repeated calls(GetParam().convolution);
  for (const double beta : {0.0, 1.0})
    for (const long long replayed : {0, 1, 1})
      EXPECT_EQ(replayed, calls.call(kGradient, 1, beta).replayed) << "beta " << beta;
}

INSTANTIATE_TEST_SUITE_P(Cases, GradientsTest, ::testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.convolution.name;
});

}  // namespace
}  // namespace ucudnn::test
