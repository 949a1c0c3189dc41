// Answers that are cuDNN's own, and limits at their ends.
#include <algorithm>
#include <limits>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr int kNoWorkspace = 0;  // the preferences of the removed queries
constexpr int kPreferFastest = 1;
constexpr int kSpecifyLimit = 2;
constexpr std::size_t kLimit = std::size_t{64} << 20;

class AnswersTest : public LibraryTest {};

ConvolutionCase batchOfOne() {
  ConvolutionCase result = fftCase(16);
  result.batch = 1;
  return result;
}

TEST_F(AnswersTest, DeterministicSettingHoldsForABatchOfOne) {
  const EnvironmentGuard setting("UCUDNN_DETERMINISTIC", "1");
  const Handles handles;
  Convolution convolution(batchOfOne());
  const DeviceBuffer memory(kLimit);
  const Workspace all{memory.get(), memory.bytes()};
  int left = 0;
  for (const ucudnnOperation_t operation : kOperations)
    for (const Query how : kQueries) {
      SCOPED_TRACE(std::string(toText(operation)) + ", query " +
                   std::to_string(static_cast<int>(how)));
      std::vector<Performance> native, results;
      ASSERT_CUDNN(convolution.query(handles.native, operation, how, 16, &native, all));
      ASSERT_CUDNN(convolution.query(handles.ours, operation, how, 16, &results, all));
      const auto deterministic = [](const Performance& entry) {
        return entry.determinism == CUDNN_DETERMINISTIC;
      };
      left += std::all_of(native.begin(), native.end(), deterministic) ? 0 : 1;
      EXPECT_TRUE(std::all_of(results.begin(), results.end(), deterministic));
      EXPECT_LT(0U, results.size());
      // Where cuDNN's first is none of them, another is.
      std::vector<Performance> first;
      ASSERT_CUDNN(convolution.query(handles.ours, operation, how, 1, &first, all));
      ASSERT_EQ(1U, first.size());
      EXPECT_EQ(CUDNN_DETERMINISTIC, first[0].determinism);
      EXPECT_EQ(CUDNN_STATUS_SUCCESS, first[0].status);
    }
  EXPECT_LT(0, left) << "the test was to have something to leave out";
}

TEST_F(AnswersTest, DeterministicSettingHoldsForTheRemovedQueries) {
  const EnvironmentGuard setting("UCUDNN_DETERMINISTIC", "1");
  const Handles handles;
  const Convolution convolution(batchOfOne());
  for (const ucudnnOperation_t operation : kOperations)
    for (const int preference : {kNoWorkspace, kPreferFastest}) {
      SCOPED_TRACE(std::string(toText(operation)) + ", preference " + std::to_string(preference));
      int algorithm = -1;
      const cudnnStatus_t status =
          convolution.queryPreferred(handles.ours, operation, preference, 0, &algorithm);
      bool found = false;  // by cuDNN, within the limit
      for (int other = 0; other < 8; ++other) {
        std::size_t bytes = 0;
        const bool deterministic =
            operation == UCUDNN_FORWARD ||
            (other != 0 && (operation != UCUDNN_BACKWARD_FILTER || other != 3));
        found = found || (deterministic &&
                          convolution.workspaceSize(handles.native, operation, other, &bytes) ==
                              CUDNN_STATUS_SUCCESS &&
                          (preference == kPreferFastest || bytes == 0));
      }
      ASSERT_EQ(found ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED, status);
      if (!found || operation == UCUDNN_FORWARD) continue;
      EXPECT_NE(0, algorithm);
      EXPECT_TRUE(operation != UCUDNN_BACKWARD_FILTER || algorithm != 3);
    }
}

/// FindEx with one of the buffers, from 0, null.
template <typename Handle>
cudnnStatus_t findForward(Handle handle, Convolution& c, int null) {
  cudnnConvolutionFwdAlgoPerf_t results[4];
  int returned = 0;
  const auto unless = [&](int i, DeviceBuffer& buffer) -> void* {
    return i == null ? nullptr : buffer.get();
  };
  return cudnnFindConvolutionForwardAlgorithmEx(handle,
                                                c.xDesc(),
                                                unless(0, c.x()),
                                                c.wDesc(),
                                                unless(1, c.w()),
                                                c.convDesc(),
                                                c.yDesc(),
                                                unless(2, c.y()),
                                                4,
                                                &returned,
                                                results,
                                                nullptr,
                                                0);
}

TEST_F(AnswersTest, FindExWithoutABufferGetsCudnnsOwnAnswerAndTeachesNothing) {
  const Handles handles;
  Convolution convolution(fftCase(17));
  for (int null = 0; null < 3; ++null) {
    SCOPED_TRACE("buffer " + std::to_string(null));
    const ucudnnStatistics_t before = statistics();
    EXPECT_EQ(findForward(handles.native, convolution, null),
              findForward(handles.ours, convolution, null));
    EXPECT_EQ(before.plans, statistics().plans);
    EXPECT_EQ(before.kernelsMeasured, statistics().kernelsMeasured);
  }
  const ucudnnStatistics_t before = statistics();
  EXPECT_CUDNN(findForward(handles.ours, convolution, -1));
  EXPECT_EQ(before.plans + 1, statistics().plans);
}

TEST_F(AnswersTest, LargestLimitIsALimitAndNotTheDefault) {
  const ForcedSplits forced({fftCase(18)});
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDefaultWorkspaceLimit(0));
  const Convolution convolution(fftCase(18));
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    const auto bytesWith = [&](int preference) {
      int algorithm = -1;
      EXPECT_CUDNN(convolution.queryPreferred(handles.ours,
                                              operation,
                                              preference,
                                              std::numeric_limits<std::size_t>::max(),
                                              &algorithm));
      std::size_t bytes = 0;
      EXPECT_CUDNN(convolution.workspaceSize(handles.ours, operation, algorithm, &bytes));
      return bytes;
    };
    EXPECT_LT(0U, bytesWith(kSpecifyLimit));
    EXPECT_EQ(0U, bytesWith(kPreferFastest)) << "the setting is the limit where none is named";
  }
}

}  // namespace
}  // namespace ucudnn::test
