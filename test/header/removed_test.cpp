// The functions that cuDNN 8 and 9 dropped, for a raw handle: plain cuDNN's best algorithm within
// the limit.
#include <gtest/gtest.h>
#include <ucudnn/ucudnn.h>

#include <algorithm>
#include <vector>

namespace {

/// The offers of the double of cuDNN, best first; its GetWorkspaceSize answers the workspace.
struct Offer {
  int algo;
  cudnnStatus_t status;
  size_t workspaceBytes;
};

std::vector<Offer> offers;
cudnnStatus_t queryStatus = CUDNN_STATUS_SUCCESS;
int requested = 0;

template <typename Perf>
cudnnStatus_t answer(int requestedCount, int* returnedCount, Perf* results) {
  requested = requestedCount;
  if (queryStatus != CUDNN_STATUS_SUCCESS) return queryStatus;
  *returnedCount = std::min(requestedCount, static_cast<int>(offers.size()));
  for (int i = 0; i < *returnedCount; ++i) {
    results[i] = Perf{};
    results[i].algo = static_cast<decltype(results[i].algo)>(offers[static_cast<size_t>(i)].algo);
    results[i].status = offers[static_cast<size_t>(i)].status;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t workspaceOf(int algo, size_t* bytes) {
  for (const Offer& offer : offers) {
    if (offer.algo == algo) {
      *bytes = offer.workspaceBytes;
      return CUDNN_STATUS_SUCCESS;
    }
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace

// Doubles of plain cuDNN. This test is not linked with the real one.
#define UCUDNN_TEST_DOUBLE(OPERATION, TYPE, A, B, C, D)                                \
  cudnnStatus_t cudnnGetConvolution##OPERATION##Algorithm_v7(                          \
      cudnnHandle_t,                                                                   \
      A,                                                                               \
      B,                                                                               \
      C,                                                                               \
      D,                                                                               \
      int count,                                                                       \
      int* returned,                                                                   \
      cudnnConvolution##TYPE##AlgoPerf_t* results) {                                   \
    return answer(count, returned, results);                                           \
  }                                                                                    \
  cudnnStatus_t cudnnGetConvolution##OPERATION##WorkspaceSize(                         \
      cudnnHandle_t, A, B, C, D, cudnnConvolution##TYPE##Algo_t algo, size_t* bytes) { \
    return workspaceOf(static_cast<int>(algo), bytes);                                 \
  }
UCUDNN_TEST_DOUBLE(Forward,
                   Fwd,
                   cudnnTensorDescriptor_t,
                   cudnnFilterDescriptor_t,
                   cudnnConvolutionDescriptor_t,
                   cudnnTensorDescriptor_t)
UCUDNN_TEST_DOUBLE(BackwardData,
                   BwdData,
                   cudnnFilterDescriptor_t,
                   cudnnTensorDescriptor_t,
                   cudnnConvolutionDescriptor_t,
                   cudnnTensorDescriptor_t)
UCUDNN_TEST_DOUBLE(BackwardFilter,
                   BwdFilter,
                   cudnnTensorDescriptor_t,
                   cudnnTensorDescriptor_t,
                   cudnnConvolutionDescriptor_t,
                   cudnnFilterDescriptor_t)

namespace {

/// The value of `algo` before the call: a value of all three enums that no case below offers.
constexpr int kUntouched = 5;

struct Answer {
  cudnnStatus_t status;
  int algo;
};

/// Asks for each of the three operations; their preferences have the same values.
template <typename Preference, typename Algo, typename... Descriptors>
Answer ask(cudnnStatus_t (*function)(cudnnHandle_t, Descriptors..., Preference, size_t, Algo*),
           int preference,
           size_t limit) {
  Algo algo = static_cast<Algo>(kUntouched);
  const cudnnStatus_t status =
      function(nullptr, Descriptors()..., static_cast<Preference>(preference), limit, &algo);
  return {status, static_cast<int>(algo)};
}

std::vector<Answer> askAll(int preference, size_t limit) {
  using X = cudnnTensorDescriptor_t;
  using W = cudnnFilterDescriptor_t;
  using C = cudnnConvolutionDescriptor_t;
  return {ask<cudnnConvolutionFwdPreference_t, cudnnConvolutionFwdAlgo_t, X, W, C, X>(
              &cudnnGetConvolutionForwardAlgorithm, preference, limit),
          ask<cudnnConvolutionBwdDataPreference_t, cudnnConvolutionBwdDataAlgo_t, W, X, C, X>(
              &cudnnGetConvolutionBackwardDataAlgorithm, preference, limit),
          ask<cudnnConvolutionBwdFilterPreference_t, cudnnConvolutionBwdFilterAlgo_t, X, X, C, W>(
              &cudnnGetConvolutionBackwardFilterAlgorithm, preference, limit)};
}

constexpr int kNoWorkspace = 0, kFastest = 1, kLimit = 2;

TEST(RemovedApiTest, PreferencesHaveCudnn7sValues) {
  EXPECT_EQ(CUDNN_CONVOLUTION_FWD_NO_WORKSPACE, 0);
  EXPECT_EQ(CUDNN_CONVOLUTION_FWD_PREFER_FASTEST, 1);
  EXPECT_EQ(CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT, 2);
  EXPECT_EQ(CUDNN_CONVOLUTION_BWD_DATA_NO_WORKSPACE, 0);
  EXPECT_EQ(CUDNN_CONVOLUTION_BWD_DATA_PREFER_FASTEST, 1);
  EXPECT_EQ(CUDNN_CONVOLUTION_BWD_DATA_SPECIFY_WORKSPACE_LIMIT, 2);
  EXPECT_EQ(CUDNN_CONVOLUTION_BWD_FILTER_NO_WORKSPACE, 0);
  EXPECT_EQ(CUDNN_CONVOLUTION_BWD_FILTER_PREFER_FASTEST, 1);
  EXPECT_EQ(CUDNN_CONVOLUTION_BWD_FILTER_SPECIFY_WORKSPACE_LIMIT, 2);
}

TEST(RemovedApiTest, RawHandlesGetTheBestWithinTheLimit) {
  const cudnnStatus_t ok = CUDNN_STATUS_SUCCESS, failed = CUDNN_STATUS_NOT_SUPPORTED;
  const struct {
    const char* name;
    std::vector<Offer> offers;
    int preference;
    size_t limit;
    cudnnStatus_t status;
    int algo;
  } cases[] = {
      {"the fastest", {{4, ok, 900}, {1, ok, 50}, {0, ok, 0}}, kFastest, 0, ok, 4},
      {"the limit is reached", {{4, ok, 900}, {1, ok, 50}, {0, ok, 0}}, kLimit, 50, ok, 1},
      {"a byte too small", {{4, ok, 900}, {1, ok, 50}, {0, ok, 0}}, kLimit, 49, ok, 0},
      {"no workspace", {{4, ok, 900}, {1, ok, 50}, {0, ok, 0}}, kNoWorkspace, 900, ok, 0},
      {"skips what failed", {{4, failed, 0}, {1, ok, 50}}, kFastest, 0, ok, 1},
      {"none fits", {{4, ok, 900}}, kLimit, 10, CUDNN_STATUS_NOT_SUPPORTED, kUntouched},
      {"none offered", {}, kFastest, 0, CUDNN_STATUS_NOT_SUPPORTED, kUntouched},
      {"no such preference", {{0, ok, 0}}, 3, 0, CUDNN_STATUS_BAD_PARAM, kUntouched},
  };
  for (const auto& each : cases) {
    offers = each.offers;
    for (const Answer& answer : askAll(each.preference, each.limit)) {
      EXPECT_EQ(answer.status, each.status) << each.name;
      EXPECT_EQ(answer.algo, each.algo) << each.name;
    }
  }
}

TEST(RemovedApiTest, CudnnsOwnErrorIsHandedBack) {
  offers = {{0, CUDNN_STATUS_SUCCESS, 0}};
  queryStatus = CUDNN_STATUS_EXECUTION_FAILED;
  for (const Answer& answer : askAll(kFastest, 0)) {
    EXPECT_EQ(answer.status, CUDNN_STATUS_EXECUTION_FAILED);
  }
  queryStatus = CUDNN_STATUS_SUCCESS;
}

TEST(RemovedApiTest, RefusesToAnswerNowhere) {
  cudnnHandle_t raw = nullptr;
  EXPECT_EQ(cudnnGetConvolutionForwardAlgorithm(raw,
                                                nullptr,
                                                nullptr,
                                                nullptr,
                                                nullptr,
                                                CUDNN_CONVOLUTION_FWD_PREFER_FASTEST,
                                                0,
                                                nullptr),
            CUDNN_STATUS_BAD_PARAM);
}

TEST(RemovedApiTest, AsksForEveryAlgorithmTwice) {
  offers = {{0, CUDNN_STATUS_SUCCESS, 0}};
  cudnnConvolutionFwdAlgo_t algo;
  cudnnHandle_t raw = nullptr;
  cudnnGetConvolutionForwardAlgorithm(
      raw, nullptr, nullptr, nullptr, nullptr, CUDNN_CONVOLUTION_FWD_PREFER_FASTEST, 0, &algo);
  EXPECT_EQ(requested, 2 * CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
}

TEST(RemovedApiTest, SetRnnDescriptorIsNotSupported) {
  const UcudnnHandle_t handle;
  EXPECT_EQ(cudnnSetRNNDescriptor(handle,
                                  nullptr,
                                  1,
                                  1,
                                  nullptr,
                                  CUDNN_LINEAR_INPUT,
                                  CUDNN_UNIDIRECTIONAL,
                                  CUDNN_LSTM,
                                  CUDNN_RNN_ALGO_STANDARD,
                                  CUDNN_DATA_FLOAT),
            CUDNN_STATUS_NOT_SUPPORTED);
}

}  // namespace
