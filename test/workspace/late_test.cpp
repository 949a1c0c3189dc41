// Convolutions that show up later.
#include "network.hpp"

namespace ucudnn::test {
namespace {

class LateTest : public TotalWorkspaceTest {};

#ifdef UCUDNN_HAVE_DIVISION
TEST_F(LateTest, NewcomersGetWhatIsLeftAndOneNewDivisionWhenTheyHaveSettled) {
  setTotal(4 * wantedBytes(0), UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE);
  const Handles handles;
  Network first({0, 1});
  first.prepare();
  // Nothing was asked about: the first call knows of itself alone, the others are newcomers.
  first.iterate(handles.ours);
  first.iterate(handles.ours);
  first.expectRight(handles.native);
  const std::size_t settled = layouts("divide it");
  EXPECT_EQ(2U, settled);
  first.iterate(handles.ours);
  EXPECT_EQ(settled, layouts("divide it"));

  Network late({2, 3});
  late.prepare();
  late.iterate(handles.ours);
  late.expectRight(handles.native);
  EXPECT_EQ(settled, layouts("divide it")) << "solved at once";
  for (int iteration = 0; iteration < 4; ++iteration) {
    first.prepare();
    late.prepare();
    first.iterate(handles.ours);
    late.iterate(handles.ours);
    first.expectRight(handles.native);
    late.expectRight(handles.native);
  }
  EXPECT_EQ(settled + 1, layouts("divide it"));
  EXPECT_EQ(1U, layouts("12 convolutions divide it"));
}

TEST_F(LateTest, WhatWasAskedAboutButNeverRunsLosesItsSegment) {
  setTotal(4 * wantedBytes(0), UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE);
  const Handles handles;
  Convolution asked(layerCase(2));
  std::vector<Performance> results;
  for (const ucudnnOperation_t operation : kOperations)
    ASSERT_CUDNN(asked.query(handles.ours, operation, Query::kGet, 1, &results));
  Network network({0});
  network.prepare();
  for (int iteration = 0; iteration < 5; ++iteration) network.iterate(handles.ours);
  network.expectRight(handles.native);
  EXPECT_EQ(1U, layouts("4 convolutions divide it"));  // the three, and the first call
  EXPECT_EQ(1U, layouts("3 convolutions divide it"));
}

TEST_F(LateTest, LayersThatRunNoMoreAreForgotten) {
  setTotal(6 * wantedBytes(0), UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE);
  const Handles handles;
  setArithmetic(Arithmetic::kOff);
  Network stays({0});
  Network goes({1});
  Network comes({2});
  for (int iteration = 0; iteration < 4; ++iteration) {
    stays.iterate(handles.ours);
    goes.iterate(handles.ours);
  }
  EXPECT_EQ(1U, layouts("6 convolutions divide it"));
  for (int iteration = 0; iteration < 40000; ++iteration) stays.iterate(handles.ours);
  for (int iteration = 0; iteration < 8; ++iteration) {
    stays.iterate(handles.ours);
    comes.iterate(handles.ours);
  }
  EXPECT_EQ(0U, layouts("9 convolutions divide it"));
  EXPECT_EQ(2U, layouts("6 convolutions divide it"));
}
#endif

TEST_F(LateTest, SharingNeedsNoNewSolveForNewcomers) {
  setTotal(wantedBytes(0), UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const Handles handles;
  Network first({0});
  Network late({1});
  for (Network* const network : {&first, &late}) {
    network->prepare();
    network->iterate(handles.ours);
    network->expectRight(handles.native);
  }
  EXPECT_EQ(1U, layouts());
  EXPECT_EQ(6U, logged({"% of the total"}).size()) << "a line for each, whenever it came";
  EXPECT_EQ(1U, logged({"6 placed so far"}).size());
}

}  // namespace
}  // namespace ucudnn::test
