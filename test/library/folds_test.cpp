// Plans of filter gradients whose engines read several columns as one: the results, and replay.
#include "../support/simulator.hpp"
#include "replay.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{4} << 20;
constexpr ucudnnOperation_t kGradient = UCUDNN_BACKWARD_FILTER;

/// With numbers of filters that no other test has.
std::vector<ConvolutionCase> foldedCases() {
  std::vector<ConvolutionCase> cases;
  const auto add = [&](const std::string& name, auto change) {
    ConvolutionCase next;
    next.name = name;
    next.type = CUDNN_DATA_BFLOAT16;
    next.math = CUDNN_TENSOR_OP_MATH;
    next.format = CUDNN_TENSOR_NHWC;
    next.channels = 3;
    next.filters = 40;
    next.stride = {2, 2};
    change(next);
    cases.push_back(next);
  };
  using C = ConvolutionCase&;
  add("Bfloat16", [](C) {});
  add("Half", [](C c) { c.type = CUDNN_DATA_HALF; });
  add("ResNet", [](C c) { c.input = {11, 16}, c.filter = {7, 7}, c.pad = {3, 3}; });
  add("NonPackedBatchStride", [](C c) { c.batchGap = 40; });
  add("FiveDimensions", [](C c) {
    c.input = {5, 6, 8};
    c.filter = {3, 3, 3};
    c.pad = c.dilation = {1, 1, 1};
    c.stride = {1, 1, 2};
  });
  return cases;
}

class FoldsTest : public ReplayFixture, public ::testing::WithParamInterface<ConvolutionCase> {
 protected:
  FoldsTest() : ReplayFixture({GetParam()}) {}
  void SetUp() override {
    ReplayFixture::SetUp();
    if (!IsSkipped()) forceFolds(database());
  }

 private:
  const EnvironmentGuard engines_{"UCUDNN_KERNELS", "engines"};
};

TEST_P(FoldsTest, RightWhateverTheFactors) {
  const Handles handles;
  Convolution convolution(GetParam());
  const DeviceBuffer workspace(kLimit);
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  ASSERT_CUDNN(convolution.plan(handles.ours, kGradient, kLimit, &plan, &entries));
  ASSERT_EQ(1U, entries.size());
  EXPECT_NE(std::string(entries[0].kernel).find("_folds=2"), std::string::npos)
      << entries[0].kernel;
  EXPECT_EQ(GetParam().batch, entries[0].batch);
  for (const double alpha : {1.0, 1.5})
    for (const double beta : {0.0, 1.0, 0.5}) {
      convolution.fill();
      if (beta == 0) convolution.output(kGradient).poison();
      const auto expected = convolution.undivided(handles.native, kGradient, 0, alpha, beta);
      ASSERT_TRUE(expected);
      ASSERT_CUDNN(convolution.run(
          handles.ours, kGradient, 0, {workspace.get(), workspace.bytes()}, alpha, beta));
      EXPECT_LE(
          distance(
              convolution.geometry(kGradient), convolution.output(kGradient).read(), *expected),
          tolerance(GetParam()))
          << "alpha " << alpha << ", beta " << beta;
    }
}

TEST_P(FoldsTest, CallsThatRepeatAreReplayed) {
  Repeated calls(GetParam());
  for (const double beta : {0.0, 1.0})
    for (const long long replayed : {0, 1, 1})
      EXPECT_EQ(replayed, calls.call(kGradient, 1, beta).replayed) << "beta " << beta;
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         FoldsTest,
                         ::testing::ValuesIn(foldedCases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ucudnn::test
