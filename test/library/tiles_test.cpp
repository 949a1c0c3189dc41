// Plans of engines that compute a tile at a time, of problems so small that only a database says
// so: the results, and replay.
#include "../support/no_errata.hpp"
#include "../support/simulator.hpp"
#include "../support/temporary_directory.hpp"
#include "replay.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{4} << 20;

bool areTiled(const std::vector<ucudnnMicroBatches_t>& entries) {
  for (const ucudnnMicroBatches_t& entry : entries)
    if (std::string(entry.kernel).find("_tiles=2") == std::string::npos) return false;
  return !entries.empty();
}

/// With numbers of filters that no other test has.
std::vector<ConvolutionCase> tiledCases() {
  std::vector<ConvolutionCase> cases;
  const auto add = [&](const std::string& name, auto change) {
    ConvolutionCase next;
    next.name = name;
    next.math = CUDNN_DEFAULT_MATH;
    next.filters = 24;
    change(next);
    cases.push_back(next);
  };
  using C = ConvolutionCase&;
  add("Float", [](C) {});
  add("Fma", [](C c) { c.math = CUDNN_FMA_MATH; });
  add("Double", [](C c) { c.type = CUDNN_DATA_DOUBLE; });
  add("Half", [](C c) { c.type = CUDNN_DATA_HALF, c.math = CUDNN_TENSOR_OP_MATH; });
  add("HalfNhwc", [](C c) {
    c.type = CUDNN_DATA_HALF, c.math = CUDNN_TENSOR_OP_MATH, c.format = CUDNN_TENSOR_NHWC;
    c.filters = 32;
  });
  add("Nhwc", [](C c) { c.format = CUDNN_TENSOR_NHWC; });
  add("GroupsOfTwo", [](C c) { c.groups = 4; });
  add("StrideTwo", [](C c) { c.stride = {2, 2}; });
  add("NonPackedBatchStride", [](C c) { c.batchGap = 40; });
  add("OddFilters", [](C c) { c.filters = 25; });
  add("FiveDimensions", [](C c) {
    c.input = {5, 6, 4};
    c.filter = {3, 3, 3};
    c.pad = c.stride = c.dilation = {1, 1, 1};
  });
  return cases;
}

class TilesTest : public ReplayFixture, public ::testing::WithParamInterface<ConvolutionCase> {
 protected:
  TilesTest() : ReplayFixture({GetParam()}) {}
  void SetUp() override {
    ReplayFixture::SetUp();
    if (IsSkipped()) return;
    if (!onSimulator()) GTEST_SKIP() << "forceTiles knows the simulator's workspaces";
    forceTiles(database());
  }

  /// Whether filters can be cut, and nothing would be summed in half.
  static bool isTileable(ucudnnOperation_t operation) {
    const ConvolutionCase& c = GetParam();
    return c.filters % 2 == 0 &&
           !(operation == UCUDNN_BACKWARD_DATA && c.groups == 1 && c.type == CUDNN_DATA_HALF);
  }

 private:
  const EnvironmentGuard engines_{"UCUDNN_KERNELS", "engines"};
  const TemporaryDirectory files_;
  const EnvironmentGuard errata_{"CUDNN_ERRATA_JSON_FILE",
                                 writeNoErrata(files_.file("errata.json"))};
};

TEST_P(TilesTest, RightWhateverTheFactors) {
  const Handles handles;
  Convolution convolution(GetParam());
  const DeviceBuffer workspace(kLimit);
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    EXPECT_EQ(isTileable(operation) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED,
              convolution.plan(handles.ours, operation, kLimit, &plan, &entries));
    EXPECT_EQ(isTileable(operation), areTiled(entries));
    ASSERT_NO_FATAL_FAILURE(
        expectRightWhateverTheFactors(handles, convolution, operation, workspace));
  }
}

TEST_P(TilesTest, DividedCallsThatRepeatAreReplayed) {
  for (const ucudnnOperation_t operation : kOperations) {
    const bool isUndivided =
        operation == UCUDNN_BACKWARD_FILTER && GetParam().type == CUDNN_DATA_HALF;
    if (!isTileable(operation) || isUndivided) continue;
    Repeated calls(GetParam());
    for (const double beta : {0.0, 1.0}) expectReplayedFromTheSecondOn(calls, operation, beta);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, TilesTest, ::testing::ValuesIn(tiledCases()), [](const auto& test) {
  return test.param.name;
});

}  // namespace
}  // namespace ucudnn::test
