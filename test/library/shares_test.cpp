// ucudnnGetShares on unequal devices, compared with the times of all shares.
#include <algorithm>
#include <memory>
#include <numeric>

#include "../support/simulator.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{8} << 20;

constexpr int kChannels = 36;

ConvolutionCase caseOf(int batch, int filters, int channels = kChannels) {
  ConvolutionCase one = fftCase(channels);
  one.batch = batch;
  one.filters = filters;
  return one;
}

/// An A100 and two H200.
class SharesTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (IsSkipped()) return;
    setArithmetic(Arithmetic::kOff);
    EXPECT_CUDA(cudaSetDevice(kA100));
  }

  static constexpr int kA100 = 0, kH200 = 1, kOtherH200 = 2;
  static constexpr int kBatch = 32;
  static constexpr int kFilters[] = {24, 96};

  static void ask(UcudnnHandle_t handle, int channels = kChannels) {
    for (const int filters : kFilters) {
      const Convolution convolution(caseOf(kBatch, filters, channels), Convolution::Contents::kAny);
      int algorithm = 0;
      for (const ucudnnOperation_t operation : kOperations)
        EXPECT_CUDNN(convolution.queryPreferred(
            handle, operation, CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT, kLimit, &algorithm));
    }
  }

  static std::vector<int> shares(UcudnnHandle_t handle, const std::vector<int>& devices) {
    std::vector<int> found(devices.size(), -1);
    EXPECT_CUDNN(ucudnnGetShares(
        handle, kBatch, static_cast<int>(devices.size()), devices.data(), found.data()));
    EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0), kBatch);
    return found;
  }

  /// By number of samples, from plans that a handle on the device tells.
  static std::vector<double> timesOn(int device, std::size_t limitBytes) {
    EXPECT_CUDA(cudaSetDevice(device));
    std::vector<double> times = {0};
    {
      const Handles handles;
      for (int samples = 1; samples <= kBatch; ++samples) {
        double ms = 0;
        for (const int filters : kFilters) {
          const Convolution convolution(caseOf(samples, filters), Convolution::Contents::kAny);
          for (const ucudnnOperation_t operation : kOperations) {
            ucudnnPlan_t plan{};
            std::vector<ucudnnMicroBatches_t> entries;
            EXPECT_CUDNN(convolution.plan(handles.ours, operation, limitBytes, &plan, &entries));
            ms += plan.predictedMs;
          }
        }
        times.push_back(ms);
      }
    }
    EXPECT_CUDA(cudaSetDevice(kA100));
    return times;
  }

  /// The least that the slower of two takes.
  static double bestMs(const std::vector<double>& a, const std::vector<double>& b) {
    double best = a[kBatch] + b[kBatch];
    for (std::size_t share = 0; share <= kBatch; ++share)
      best = std::min(best, std::max(a[share], b[kBatch - share]));
    return best;
  }
};

TEST_F(SharesTest, GoByTheTimesOfWhatTheHandleWasAskedAbout) {
  if (!onSimulator()) GTEST_SKIP() << "needs devices of chosen models";
  const Handles handles;
  ask(handles.ours);
  const std::vector<int> found = shares(handles.ours, {kA100, kH200});
  EXPECT_GT(found[1], found[0]);
  EXPECT_GT(found[0], 0);
  const std::vector<double> slow = timesOn(kA100, kLimit), fast = timesOn(kH200, kLimit);
  const double ms =
      std::max(slow[static_cast<std::size_t>(found[0])], fast[static_cast<std::size_t>(found[1])]);
  EXPECT_LE(ms, 1.03 * bestMs(slow, fast));
  int current = -1;
  EXPECT_CUDA(cudaGetDevice(&current));
  EXPECT_EQ(current, kA100);
}

TEST_F(SharesTest, EqualDevicesGetEqualSharesAndMeasureOnce) {
  if (!onSimulator()) GTEST_SKIP() << "needs devices of chosen models";
  const Handles handles;
  ask(handles.ours);
  EXPECT_EQ(shares(handles.ours, {kH200, kOtherH200}), (std::vector<int>{16, 16}));
  const long long measured = statistics().kernelsMeasured;
  shares(handles.ours, {kH200, kOtherH200});
  EXPECT_EQ(statistics().kernelsMeasured, measured);
}

TEST_F(SharesTest, ADeviceHasTheLimitOfItsHandles) {
  if (!onSimulator()) GTEST_SKIP() << "needs devices of chosen models";
  const Handles handles;
  ask(handles.ours);
  EXPECT_CUDA(cudaSetDevice(kOtherH200));
  const auto other = std::make_unique<Handles>();
  EXPECT_CUDNN(other->ours.setWorkspaceLimit(0));
  EXPECT_CUDA(cudaSetDevice(kA100));
  const std::vector<int> found = shares(handles.ours, {kH200, kOtherH200});
  EXPECT_GT(found[0], found[1]) << "no workspace there";
  const std::vector<double> large = timesOn(kH200, kLimit), none = timesOn(kH200, 0);
  EXPECT_LE(
      std::max(large[static_cast<std::size_t>(found[0])], none[static_cast<std::size_t>(found[1])]),
      1.03 * bestMs(large, none));
}

TEST_F(SharesTest, OneDeviceTakesAll) {
  const Handles handles;
  ask(handles.ours);
  EXPECT_EQ(shares(handles.ours, {0}), std::vector<int>{kBatch});
}

TEST_F(SharesTest, WrongQuestionsAreRefused) {
  const Handles handles;
  const int devices[] = {0, 99};
  int found[2] = {-1, -1};
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, ucudnnGetShares(handles.ours, 8, 1, devices, found))
      << "nothing was asked about";
  ask(handles.ours);
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetShares(handles.ours, 0, 1, devices, found));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetShares(handles.ours, 8, 0, devices, found));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetShares(handles.ours, 8, 1, nullptr, found));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetShares(handles.ours, 8, 1, devices, nullptr));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetShares(nullptr, 8, 1, devices, found));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetShares(handles.ours, 8, 2, devices, found));
  EXPECT_EQ(found[0], -1) << "written on success alone";
}

TEST_F(SharesTest, NothingIsMeasuredWhileTheStreamIsCaptured) {
  const Handles handles;
  ask(handles.ours);
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_CUDNN(cudnnSetStream(handles.ours, stream));
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const int device = 0;
  int found = -1;
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, ucudnnGetShares(handles.ours, 8, 1, &device, &found));
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDNN(cudnnSetStream(handles.ours, nullptr));
  EXPECT_CUDA(cudaStreamDestroy(stream));
}

TEST_F(SharesTest, ADeviceWithoutMemoryTakesNoPart) {
  if (!onSimulator()) GTEST_SKIP() << "needs a device without memory";
  const Handles handles;
  ask(handles.ours, 44);  // nothing is known of it
  setMemory(kH200, 1024);
  EXPECT_EQ(shares(handles.ours, {kA100, kH200}), (std::vector<int>{kBatch, 0}));
  setMemory(kH200, SIZE_MAX);
}

}  // namespace
}  // namespace ucudnn::test
