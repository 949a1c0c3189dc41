// Plans of engines that read blocks of pixels as one, and of algorithms that run on planes, of
// problems so small that only a database says so: the results, replay, and failures.
#include <stdexcept>

#include "../support/simulator.hpp"
#include "../support/skips.hpp"
#include "replay.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{4} << 20;
/// More than any of the cases needs: cuDNN says how much that is.
constexpr std::size_t kEnough = std::size_t{2} << 20;

struct BlockCase {
  ConvolutionCase convolution;
  std::string kernel;  ///< of plans, behind the engine's or the algorithm's name

  bool isInPlanes() const { return kernel == "_planes"; }
  bool isInBands() const { return kernel.find("_bands=") != std::string::npos; }
};

std::ostream& operator<<(std::ostream& stream, const BlockCase& tested) {
  return stream << tested.convolution << tested.kernel;
}

bool areBlocked(const std::vector<ucudnnMicroBatches_t>& entries, const BlockCase& tested) {
  for (const ucudnnMicroBatches_t& entry : entries)
    if (std::string(entry.kernel).find(tested.kernel) == std::string::npos) return false;
  return !entries.empty();
}

/// Each with a number of filters that no other test has: a process plans a problem once.
std::vector<BlockCase> cases() {
  std::vector<BlockCase> all;
  const auto add = [&](const std::string& name, int pixels, auto change) {
    ConvolutionCase next;
    next.name = name;
    next.math = CUDNN_DEFAULT_MATH;
    next.channels = 3;
    next.filters = 20 + static_cast<int>(all.size());
    next.input = {13, 14};
    next.filter = {5, 5};
    next.stride = {2, 2};
    change(next);
    all.push_back({next, "_blocks=" + std::to_string(pixels)});
  };
  using C = ConvolutionCase&;
  add("Float", 4, [](C) {});
  add("Twice", 16, [](C) {});
  add("Fma", 4, [](C c) { c.math = CUDNN_FMA_MATH; });
  add("Nhwc", 4, [](C c) { c.format = CUDNN_TENSOR_NHWC; });
  add("NhwcTwice", 16, [](C c) { c.format = CUDNN_TENSOR_NHWC; });
  add("OddBatchStride", 4, [](C c) { c.batchGap = 41; });
  add("OddBatchStrideTwice", 16, [](C c) { c.batchGap = 41; });
  add("OneStep", 4, [](C c) { c.stride = {1, 1}; });
  add("OtherSteps", 6, [](C c) { c.stride = {3, 2}, c.pad = {4, 0}; });
  const auto addPixels = [&](const std::string& name, int taps, int step) {
    add(name, 1, [&](C c) {
      c.channels = 8;
      c.filters += c.filters % 4 == 0 ? 0 : 4 - c.filters % 4;
      c.filter = {taps, taps};
      c.stride = {step, step};
      if (taps == 1) c.pad = {0, 0};
    });
  };
  addPixels("Pixels", 5, 1);
  addPixels("PixelsThatTheStepReads", 1, 2);
  addPixels("Bands", 5, 1);
  all.back().kernel += "_bands=3";
  addPixels("BandsOfSteps", 5, 2);
  all.back().kernel += "_bands=2";
  addPixels("Folds", 5, 1);
  all.back().kernel += "_folds=4";
  addPixels("FoldsOfStepsInBands", 5, 2);
  all.back().kernel += "_folds=2_bands=2";
  for (std::size_t i = 0, pixels = all.size(); i < pixels; ++i) {
    const std::string& name = all[i].convolution.name;
    if (name != "Float" && name != "Fma" && name != "OddBatchStride" && name != "OtherSteps")
      continue;
    all.push_back(all[i]);
    all.back().convolution.name = name + "InPlanes";
    all.back().convolution.filters += 9;
    all.back().kernel = "_planes";
  }
  return all;
}

BlockCase bands() {
  for (const BlockCase& each : cases())
    if (each.isInBands()) return each;
  throw std::logic_error("there are none");
}

class BlocksTest : public ReplayFixture, public ::testing::WithParamInterface<BlockCase> {
 protected:
  BlocksTest() : ReplayFixture({GetParam().convolution}) {}
  void SetUp() override {
    ReplayFixture::SetUp();
    if (IsSkipped()) return;
    UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
    if (!onSimulator()) GTEST_SKIP() << "what blocks need is known of the simulator's engines";
    if (GetParam().isInPlanes())
      forcePlanes(database(), kEnough);
    else
      forceKernels(database(), GetParam().kernel, kEnough);
  }

 private:
  const EnvironmentGuard kernels_{"UCUDNN_KERNELS", GetParam().isInPlanes() ? "legacy" : "engines"};
};

TEST_P(BlocksTest, RightWhateverTheFactors) {
  const Handles handles;
  Convolution convolution(GetParam().convolution);
  const DeviceBuffer workspace(kLimit);
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    ASSERT_CUDNN(convolution.plan(handles.ours, operation, kLimit, &plan, &entries));
    EXPECT_TRUE(areBlocked(entries, GetParam())) << textOf(entries);
    ASSERT_NO_FATAL_FAILURE(
        expectRightWhateverTheFactors(handles, convolution, operation, workspace));
  }
}

TEST_P(BlocksTest, DividedCallsThatRepeatAreReplayed) {
  for (const ucudnnOperation_t operation : kOperations) {
    Repeated calls(GetParam().convolution);
    for (const double beta : {0.0, 1.0}) expectReplayedFromTheSecondOn(calls, operation, beta);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, BlocksTest, ::testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.convolution.name;
});

class BlocksFaultTest : public BlocksTest {};

/// Until what blocks compute is written to the client's output nothing is lost: cuDNN runs the call
/// instead, also where it adds. But once a band has been added the call has failed.
TEST_P(BlocksFaultTest, AnyCallMayFailAndTheResultIsRight) {
  Convolution convolution(GetParam().convolution);
  const DeviceBuffer workspace(kLimit);
  for (const ucudnnOperation_t operation : kOperations)
    for (const double beta : {0.0, 1.0}) {
      std::int64_t calls = 1;
      for (std::int64_t n = 0; n <= calls; ++n) {
        SCOPED_TRACE(std::string(toText(operation)) + ", beta " + std::to_string(beta) + ", call " +
                     std::to_string(n) + " of " + std::to_string(calls));
        const Handles handles;
        ucudnnPlan_t plan{};
        std::vector<ucudnnMicroBatches_t> entries;
        ASSERT_CUDNN(convolution.plan(handles.ours, operation, kLimit, &plan, &entries));
        ASSERT_TRUE(areBlocked(entries, GetParam())) << textOf(entries);
        convolution.fill();
        const auto expected = convolution.undivided(handles.native, operation, 0, 1, beta);
        ASSERT_TRUE(expected);
        const std::int64_t before = callCount();
        failCall(n);
        const cudnnStatus_t status = convolution.run(
            handles.ours, operation, 0, {workspace.get(), workspace.bytes()}, 1, beta);
        failCall(0);
        const bool mayFail = GetParam().isInBands() && beta != 0;
        if (mayFail && n > 0 && status == CUDNN_STATUS_EXECUTION_FAILED) {
          static_cast<void>(cudaGetLastError());
          continue;
        }
        EXPECT_CUDNN(status);
        if (n == 0) calls = callCount() - before;
        EXPECT_CUDA(cudaGetLastError());
        EXPECT_LE(
            distance(
                convolution.geometry(operation), convolution.output(operation).read(), *expected),
            tolerance(GetParam().convolution));
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         BlocksFaultTest,
                         ::testing::Values(cases()[0], cases()[1], bands(), cases().back()),
                         [](const auto& test) { return test.param.convolution.name; });

}  // namespace
}  // namespace ucudnn::test
