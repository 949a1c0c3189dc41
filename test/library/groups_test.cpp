// A convolution descriptor whose groups don't go with the tensors.
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

class GroupsTest : public LibraryTest {};

/// The ways in which a call runs.
const std::map<std::string, std::string> kWays[] = {
    {{"UCUDNN_KERNELS", "legacy"},
     {"UCUDNN_BATCH_SIZE_POLICY", "undivided"},
     {"UCUDNN_GRAPH_MEMORY", "0"}},
    {{"UCUDNN_KERNELS", "legacy"}, {"UCUDNN_GRAPH_MEMORY", "0"}},
    {{"UCUDNN_KERNELS", "all"}, {"UCUDNN_GRAPH_MEMORY", "0"}},
    {{"UCUDNN_KERNELS", "all"}},
    {{"UCUDNN_TOTAL_WORKSPACE_SIZE", "64MiB"}},
};

// A planned call takes the groups from the channels, and cuDNN or we see that the descriptor says
// something else.
TEST_F(GroupsTest, WhatTheChannelsDoNotMakeIsRefusedAsByCudnn) {
  int channels = 232;
  for (const auto& way : kWays) {
    SCOPED_TRACE(testing::PrintToString(way));
    const EnvironmentGuard settings(way);
    const ConvolutionCase parameters = fftCase(channels += 2);
    const ForcedSplits forced({parameters});
    const Handles handles;
    Convolution convolution(parameters);
    const DeviceBuffer workspace(kLimit);
    const Workspace all{workspace.get(), kLimit};
    for (const ucudnnOperation_t operation : kOperations) {
      SCOPED_TRACE(toText(operation));
      ucudnnPlan_t plan{};
      std::vector<ucudnnMicroBatches_t> entries;
      ASSERT_CUDNN(convolution.plan(handles.ours, operation, kLimit, &plan, &entries));
      const auto run = [&](auto handle) { return convolution.run(handle, operation, 0, all); };
      for (int call = 0; call < 3; ++call) ASSERT_CUDNN(run(handles.ours));
      ASSERT_CUDNN(cudnnSetConvolutionGroupCount(convolution.convDesc(), 2));
      const cudnnStatus_t expected = run(handles.native);
      EXPECT_NE(CUDNN_STATUS_SUCCESS, expected);
      EXPECT_EQ(expected, run(handles.ours));
      ASSERT_CUDNN(cudnnSetConvolutionGroupCount(convolution.convDesc(), 1));
      const ucudnnStatistics_t before = statistics();
      EXPECT_CUDNN(run(handles.ours));
      EXPECT_EQ(before.bypassedCalls, statistics().bypassedCalls) << "the plan is gone";
    }
  }
}

}  // namespace
}  // namespace ucudnn::test
