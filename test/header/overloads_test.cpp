// Every overload has cuDNN's very parameters and hands them on, in order, to its sister in the C
// ABI.
#include "cudnn_types.hpp"
//
#include <gtest/gtest.h>
#include <ucudnn/ucudnn.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "doubles.hpp"

// cuDNN 7's types of the three that cuDNN 8 dropped (cuDNN 7.6.5 Developer Guide, chapter 4).
namespace cudnn_types {
using GetConvolutionForwardAlgorithm = cudnnStatus_t (*)(cudnnHandle_t,
                                                         cudnnTensorDescriptor_t,
                                                         cudnnFilterDescriptor_t,
                                                         cudnnConvolutionDescriptor_t,
                                                         cudnnTensorDescriptor_t,
                                                         cudnnConvolutionFwdPreference_t,
                                                         size_t,
                                                         cudnnConvolutionFwdAlgo_t*);
using GetConvolutionBackwardDataAlgorithm = cudnnStatus_t (*)(cudnnHandle_t,
                                                              cudnnFilterDescriptor_t,
                                                              cudnnTensorDescriptor_t,
                                                              cudnnConvolutionDescriptor_t,
                                                              cudnnTensorDescriptor_t,
                                                              cudnnConvolutionBwdDataPreference_t,
                                                              size_t,
                                                              cudnnConvolutionBwdDataAlgo_t*);
using GetConvolutionBackwardFilterAlgorithm =
    cudnnStatus_t (*)(cudnnHandle_t,
                      cudnnTensorDescriptor_t,
                      cudnnTensorDescriptor_t,
                      cudnnConvolutionDescriptor_t,
                      cudnnFilterDescriptor_t,
                      cudnnConvolutionBwdFilterPreference_t,
                      size_t,
                      cudnnConvolutionBwdFilterAlgo_t*);
}  // namespace cudnn_types

#define UCUDNN_TEST_FOR_EACH_OVERLOAD(X)    \
  UCUDNN_TEST_FOR_EACH_FUNCTION(X)          \
  X(GetConvolutionForwardAlgorithm, 7)      \
  X(GetConvolutionBackwardDataAlgorithm, 7) \
  X(GetConvolutionBackwardFilterAlgorithm, 7)

using ucudnn_test::calls;

/// The type of a function's parameter, the first after the handle being 1.
template <std::size_t Index, typename Function>
struct ParameterType;
template <std::size_t Index, typename... Parameters>
struct ParameterType<Index, cudnnStatus_t (*)(cudnnHandle_t, Parameters...)> {
  using Type = typename std::tuple_element<Index - 1, std::tuple<Parameters...>>::type;
};

// Doubles of the library: they only write down what they were called with. Made from cuDNN's types,
// not from ucudnn/functions.h, whose order of arguments they check.
// clang-format off
#define UCUDNN_TEST_P(N, I) ParameterType<I, cudnn_types::N>::Type a##I
#define UCUDNN_TEST_PARAMETERS_6(N)                                                     \
  UCUDNN_TEST_P(N, 1), UCUDNN_TEST_P(N, 2), UCUDNN_TEST_P(N, 3), UCUDNN_TEST_P(N, 4),   \
  UCUDNN_TEST_P(N, 5), UCUDNN_TEST_P(N, 6)
#define UCUDNN_TEST_PARAMETERS_7(N) UCUDNN_TEST_PARAMETERS_6(N), UCUDNN_TEST_P(N, 7)
#define UCUDNN_TEST_PARAMETERS_8(N) UCUDNN_TEST_PARAMETERS_7(N), UCUDNN_TEST_P(N, 8)
#define UCUDNN_TEST_PARAMETERS_10(N)                                                    \
  UCUDNN_TEST_PARAMETERS_8(N), UCUDNN_TEST_P(N, 9), UCUDNN_TEST_P(N, 10)
#define UCUDNN_TEST_PARAMETERS_11(N) UCUDNN_TEST_PARAMETERS_10(N), UCUDNN_TEST_P(N, 11)
#define UCUDNN_TEST_PARAMETERS_12(N) UCUDNN_TEST_PARAMETERS_11(N), UCUDNN_TEST_P(N, 12)
#define UCUDNN_TEST_PARAMETERS_17(N)                                                    \
  UCUDNN_TEST_PARAMETERS_12(N), UCUDNN_TEST_P(N, 13), UCUDNN_TEST_P(N, 14),             \
  UCUDNN_TEST_P(N, 15), UCUDNN_TEST_P(N, 16), UCUDNN_TEST_P(N, 17)
#define UCUDNN_TEST_ARGUMENTS_6 a1, a2, a3, a4, a5, a6
#define UCUDNN_TEST_ARGUMENTS_7 UCUDNN_TEST_ARGUMENTS_6, a7
#define UCUDNN_TEST_ARGUMENTS_8 UCUDNN_TEST_ARGUMENTS_7, a8
#define UCUDNN_TEST_ARGUMENTS_10 UCUDNN_TEST_ARGUMENTS_8, a9, a10
#define UCUDNN_TEST_ARGUMENTS_11 UCUDNN_TEST_ARGUMENTS_10, a11
#define UCUDNN_TEST_ARGUMENTS_12 UCUDNN_TEST_ARGUMENTS_11, a12
#define UCUDNN_TEST_ARGUMENTS_17 UCUDNN_TEST_ARGUMENTS_12, a13, a14, a15, a16, a17
// clang-format on
#define UCUDNN_TEST_DOUBLE(NAME, COUNT)                                                    \
  cudnnStatus_t ucudnn##NAME(cudnnHandle_t handle, UCUDNN_TEST_PARAMETERS_##COUNT(NAME)) { \
    ucudnn_test::record("ucudnn" #NAME, handle, UCUDNN_TEST_ARGUMENTS_##COUNT);            \
    return CUDNN_STATUS_NOT_SUPPORTED;                                                     \
  }
#define UCUDNN_TEST_LAYER_DOUBLE(NAME, COUNT)                                                    \
  cudnnStatus_t ucudnn##NAME##Layer(                                                             \
      cudnnHandle_t handle, UCUDNN_TEST_PARAMETERS_##COUNT(NAME), ucudnnLayerId_t layerId) {     \
    ucudnn_test::record("ucudnn" #NAME "Layer", handle, UCUDNN_TEST_ARGUMENTS_##COUNT, layerId); \
    return CUDNN_STATUS_NOT_SUPPORTED;                                                           \
  }
UCUDNN_TEST_FOR_EACH_OVERLOAD(UCUDNN_TEST_LAYER_DOUBLE)
UCUDNN_TEST_FOR_EACH_SMALL_LAYER(UCUDNN_TEST_DOUBLE)
UCUDNN_TEST_FOR_EACH_OVERLOAD(UCUDNN_TEST_DOUBLE)

namespace {

cudnnStatus_t createStatus = CUDNN_STATUS_SUCCESS;
std::string lastText;

}  // namespace

cudnnStatus_t ucudnnCreate(cudnnHandle_t* handle) {
  *handle =
      createStatus == CUDNN_STATUS_SUCCESS ? ucudnn_test::fromWord<cudnnHandle_t>(64) : nullptr;
  return createStatus;
}
cudnnStatus_t ucudnnDestroy(cudnnHandle_t handle) {
  ucudnn_test::record("ucudnnDestroy", handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetBatchSizePolicy(cudnnHandle_t handle, ucudnnBatchSizePolicy_t policy) {
  ucudnn_test::record("ucudnnSetBatchSizePolicy", handle, policy);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetDefaultWorkspaceLimit(cudnnHandle_t handle, size_t bytes) {
  ucudnn_test::record("ucudnnSetDefaultWorkspaceLimit", handle, bytes);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetTotalWorkspaceSize(cudnnHandle_t handle, size_t bytes) {
  ucudnn_test::record("ucudnnSetTotalWorkspaceSize", handle, bytes);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetTotalWorkspacePolicy(cudnnHandle_t handle,
                                            ucudnnTotalWorkspacePolicy_t policy) {
  ucudnn_test::record("ucudnnSetTotalWorkspacePolicy", handle, policy);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnReleaseGraphs(cudnnHandle_t handle) {
  ucudnn_test::record("ucudnnReleaseGraphs", handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetDatabase(cudnnHandle_t handle, const char* path) {
  ucudnn_test::record("ucudnnSetDatabase", handle);
  lastText = path;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetPlans(cudnnHandle_t handle, const char* path) {
  ucudnn_test::record("ucudnnSetPlans", handle);
  lastText = path;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetPlansStrict(cudnnHandle_t handle, int enabled) {
  ucudnn_test::record("ucudnnSetPlansStrict", handle, enabled);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetMaxError(cudnnHandle_t handle, double error) {
  ucudnn_test::record("ucudnnSetMaxError", handle, static_cast<int>(error * 100));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetTuning(cudnnHandle_t handle, ucudnnTuning_t tuning) {
  ucudnn_test::record("ucudnnSetTuning", handle, tuning);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetKernels(cudnnHandle_t handle, ucudnnKernels_t kernels) {
  ucudnn_test::record("ucudnnSetKernels", handle, kernels);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetDeviceMemory(cudnnHandle_t handle, size_t bytes) {
  ucudnn_test::record("ucudnnSetDeviceMemory", handle, bytes);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetGraphMemory(cudnnHandle_t handle, size_t bytes) {
  ucudnn_test::record("ucudnnSetGraphMemory", handle, bytes);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetBenchmarkMemory(cudnnHandle_t handle, size_t bytes) {
  ucudnn_test::record("ucudnnSetBenchmarkMemory", handle, bytes);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetBenchmarkShare(cudnnHandle_t handle, double share) {
  ucudnn_test::record("ucudnnSetBenchmarkShare", handle, static_cast<int>(share * 100));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetBenchmarkDevices(cudnnHandle_t handle, const char* devices) {
  ucudnn_test::record("ucudnnSetBenchmarkDevices", handle);
  lastText = devices;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetBorrowOutput(cudnnHandle_t handle, int enabled) {
  ucudnn_test::record("ucudnnSetBorrowOutput", handle, enabled);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetDeterministic(cudnnHandle_t handle, int enabled) {
  ucudnn_test::record("ucudnnSetDeterministic", handle, enabled);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnSetEquivalenceTest(cudnnHandle_t handle, int enabled) {
  ucudnn_test::record("ucudnnSetEquivalenceTest", handle, enabled);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t ucudnnGetSettings(cudnnHandle_t handle, ucudnnSettings_t* settings) {
  ucudnn_test::record("ucudnnGetSettings", handle, settings->size);
  return CUDNN_STATUS_SUCCESS;
}

namespace {

constexpr std::uintptr_t kHandle = 64;

/// Calls an overload with the words 1, 2, 3, ... behind the handle, and expects its sister to have
/// got them.
template <typename... Parameters, std::size_t... Indices>
void expectHandedOn(const char* function,
                    cudnnStatus_t (*overload)(UcudnnHandle_t, Parameters...),
                    std::index_sequence<Indices...>) {
  calls().clear();
  const cudnnStatus_t status = overload(ucudnn_test::fromWord<cudnnHandle_t>(kHandle),
                                        ucudnn_test::fromWord<Parameters>(Indices + 1)...);
  EXPECT_EQ(status, CUDNN_STATUS_NOT_SUPPORTED) << function << ": the status is handed back";
  ASSERT_EQ(calls().size(), 1u) << function;
  EXPECT_EQ(calls()[0].function, function);
  EXPECT_EQ(calls()[0].arguments, (std::vector<std::uintptr_t>{kHandle, (Indices + 1)...}));
}

template <typename... Parameters>
void expectHandedOn(const char* function,
                    cudnnStatus_t (*overload)(UcudnnHandle_t, Parameters...)) {
  expectHandedOn(function, overload, std::index_sequence_for<Parameters...>());
}

/// cuDNN's type with our handle, without and with a layer id: what a client's typed function
/// pointers have.
template <typename Native>
struct OverloadTypes;
template <typename... Parameters>
struct OverloadTypes<cudnnStatus_t (*)(cudnnHandle_t, Parameters...)> {
  using Same = cudnnStatus_t (*)(UcudnnHandle_t, Parameters...);
  using WithLayer = cudnnStatus_t (*)(UcudnnHandle_t, Parameters..., ucudnn::LayerId);
};

#define UCUDNN_TEST_SAME(NAME, COUNT) \
  expectHandedOn("ucudnn" #NAME, static_cast<OverloadTypes<cudnn_types::NAME>::Same>(&cudnn##NAME));
TEST(OverloadsTest,
     HaveCudnnsParametersAndHandThemOn){UCUDNN_TEST_FOR_EACH_OVERLOAD(UCUDNN_TEST_SAME)
                                            UCUDNN_TEST_FOR_EACH_SMALL_LAYER(UCUDNN_TEST_SAME)}
#define UCUDNN_TEST_LAYER(NAME, COUNT)   \
  expectHandedOn("ucudnn" #NAME "Layer", \
                 static_cast<OverloadTypes<cudnn_types::NAME>::WithLayer>(&cudnn##NAME));
TEST(OverloadsTest, TakeALayerIdLast){UCUDNN_TEST_FOR_EACH_OVERLOAD(UCUDNN_TEST_LAYER)}

#define UCUDNN_TEST_ABI(NAME, COUNT) \
  static_assert(std::is_same<decltype(&ucudnn##NAME), cudnn_types::NAME>::value, "exactly cuDNN's");
UCUDNN_TEST_FOR_EACH_OVERLOAD(UCUDNN_TEST_ABI) UCUDNN_TEST_FOR_EACH_SMALL_LAYER(UCUDNN_TEST_ABI)

    TEST(OverloadsTest, CreateFillsTheHandleAndLeavesItNullOnAnError) {
  UcudnnHandle_t handle;
  createStatus = CUDNN_STATUS_SUCCESS;
  EXPECT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(ucudnn_test::word(static_cast<cudnnHandle_t>(handle)), kHandle);
  createStatus = CUDNN_STATUS_NOT_INITIALIZED;
  EXPECT_EQ(cudnnCreate(&handle), CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_FALSE(handle);
  EXPECT_EQ(cudnnCreate(static_cast<UcudnnHandle_t*>(nullptr)), CUDNN_STATUS_BAD_PARAM);
}

TEST(OverloadsTest, DestroyHandsTheNativeHandleOn) {
  calls().clear();
  cudnnStatus_t (*destroy)(UcudnnHandle_t) = &cudnnDestroy;
  EXPECT_EQ(destroy(ucudnn_test::fromWord<cudnnHandle_t>(kHandle)), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(calls().size(), 1u);
  EXPECT_EQ(calls()[0].arguments, std::vector<std::uintptr_t>{kHandle});
}

TEST(SettersTest, ReachTheSettingsOfTheHandle) {
  const UcudnnHandle_t handle = ucudnn_test::fromWord<cudnnHandle_t>(kHandle);
  const struct {
    const char* function;
    std::uintptr_t value;
    cudnnStatus_t (*set)(UcudnnHandle_t);
  } cases[] = {
      {"ucudnnSetBatchSizePolicy",
       0,
       [](UcudnnHandle_t h) {
         return h.setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::undivided);
       }},
      {"ucudnnSetBatchSizePolicy",
       1,
       [](UcudnnHandle_t h) {
         return h.setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::powerOfTwo);
       }},
      {"ucudnnSetBatchSizePolicy",
       2,
       [](UcudnnHandle_t h) {
         return h.setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::all);
       }},
      {"ucudnnSetBatchSizePolicy",
       2,
       [](UcudnnHandle_t h) {
         return h.setOptimizerBatchSizePolicy(UCUDNN_BATCH_SIZE_POLICY_ALL);
       }},
      {"ucudnnSetDefaultWorkspaceLimit",
       123,
       [](UcudnnHandle_t h) { return h.setDefaultWorkspaceLimit(123); }},
      {"ucudnnSetTotalWorkspaceSize",
       456,
       [](UcudnnHandle_t h) { return h.setTotalWorkspaceSize(456); }},
      {"ucudnnSetTotalWorkspacePolicy",
       1,
       [](UcudnnHandle_t h) {
         return h.setTotalWorkspacePolicy(UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
       }},
      {"ucudnnSetMaxError", 25, [](UcudnnHandle_t h) { return h.setMaxError(0.25); }},
      {"ucudnnSetTuning", 1, [](UcudnnHandle_t h) { return h.setTuning(UCUDNN_TUNING_FAST); }},
      {"ucudnnSetKernels", 2, [](UcudnnHandle_t h) { return h.setKernels(UCUDNN_KERNELS_ALL); }},
      {"ucudnnSetGraphMemory", 9, [](UcudnnHandle_t h) { return h.setGraphMemory(9); }},
      {"ucudnnSetDeviceMemory", 9, [](UcudnnHandle_t h) { return h.setDeviceMemory(9); }},
      {"ucudnnSetBenchmarkMemory", 7, [](UcudnnHandle_t h) { return h.setBenchmarkMemory(7); }},
      {"ucudnnSetBenchmarkShare", 25, [](UcudnnHandle_t h) { return h.setBenchmarkShare(0.25); }},
      {"ucudnnSetPlansStrict", 1, [](UcudnnHandle_t h) { return h.setPlansStrict(true); }},
      {"ucudnnSetBorrowOutput", 1, [](UcudnnHandle_t h) { return h.setBorrowOutput(true); }},
      {"ucudnnSetDeterministic", 1, [](UcudnnHandle_t h) { return h.setDeterministic(true); }},
      {"ucudnnSetDeterministic", 0, [](UcudnnHandle_t h) { return h.setDeterministic(false); }},
      {"ucudnnSetEquivalenceTest", 1, [](UcudnnHandle_t h) { return h.setEquivalenceTest(true); }},
      {"ucudnnGetSettings",
       sizeof(ucudnnSettings_t),
       [](UcudnnHandle_t h) {
         ucudnnSettings_t settings;
         return h.getSettings(&settings);
       }},
  };
  for (const auto& each : cases) {
    calls().clear();
    EXPECT_EQ(each.set(handle), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(calls().size(), 1u) << each.function;
    EXPECT_EQ(calls()[0].function, each.function);
    EXPECT_EQ(calls()[0].arguments, (std::vector<std::uintptr_t>{kHandle, each.value}));
  }
}

TEST(SettersTest, GraphsAreReleasedByTheHandle) {
  const UcudnnHandle_t handle(ucudnn_test::fromWord<cudnnHandle_t>(kHandle));
  calls().clear();
  EXPECT_EQ(handle.releaseGraphs(), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(calls().size(), 1u);
  EXPECT_EQ(calls()[0].function, "ucudnnReleaseGraphs");
}

TEST(SettersTest, PassTextsAndDeviceLists) {
  const UcudnnHandle_t handle = ucudnn_test::fromWord<cudnnHandle_t>(kHandle);
  handle.setDatabase("/tmp/a.db");
  EXPECT_EQ(lastText, "/tmp/a.db");
  handle.setPlans("/tmp/a.json");
  EXPECT_EQ(lastText, "/tmp/a.json");
  handle.setBenchmarkDevices("all");
  EXPECT_EQ(lastText, "all");
  handle.setDevices({0, 2, 10});
  EXPECT_EQ(lastText, "0,2,10");
  handle.setDevices({});
  EXPECT_EQ(lastText, "");
}

}  // namespace
