// The work of μ-cuDNN beside the convolutions of a call voids no capture of its client's.
#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"
#include "recording.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

class CaptureGuardTest : public LibraryTest {};

/// The handle works on a stream that no capture concerns.
class OwnStream {
 public:
  explicit OwnStream(const Handles& handles) : handles_(handles) {
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    EXPECT_CUDNN(cudnnSetStream(handles.ours, stream_));
  }
  ~OwnStream() {
    EXPECT_CUDNN(cudnnSetStream(handles_.ours, nullptr));
    EXPECT_CUDA(cudaStreamDestroy(stream_));
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

 private:
  const Handles& handles_;
  cudaStream_t stream_ = nullptr;
};

TEST_F(CaptureGuardTest, PlanningLeavesOtherStreamsCapturesValid) {
  const Handles handles;
  const OwnStream stream(handles);
  int channels = 230;
  for (const bool inAnotherThread : {false, true})
    for (const cudaStreamCaptureMode mode : kCaptureModes) {
      SCOPED_TRACE("mode " + std::to_string(mode) + (inAnotherThread ? ", another thread" : ""));
      const Convolution convolution(fftCase(++channels));
      const long long measuredBefore = statistics().kernelsMeasured;
      setArithmetic(Arithmetic::kOff);  // only times are wanted
      expectUndisturbed(inAnotherThread, mode, [&] {
        ucudnnPlan_t plan{};
        std::vector<ucudnnMicroBatches_t> entries;
        EXPECT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries));
      });
      EXPECT_LT(measuredBefore, statistics().kernelsMeasured);
    }
}

TEST_F(CaptureGuardTest, EquivalenceTestLeavesOtherStreamsCapturesValid) {
  const ConvolutionCase parameters = fftCase(240);
  const ForcedSplits forced({parameters});
  const TemporaryDirectory directory;
  const std::string log = directory.file("log");
  const EnvironmentGuard settings(
      {{"UCUDNN_EQUIVALENCE_TEST", "1"}, {"UCUDNN_LOG_LEVEL", "info"}, {"UCUDNN_LOG_FILE", log}});
  const Handles handles;
  const OwnStream stream(handles);
  Convolution convolution(parameters);
  const DeviceBuffer workspace(kLimit);
  const auto tests = [&] { return linesWith(log, {"normalized L2 distance"}).size(); };
  for (const bool inAnotherThread : {false, true})
    for (const cudaStreamCaptureMode mode : kCaptureModes) {
      SCOPED_TRACE("mode " + std::to_string(mode) + (inAnotherThread ? ", another thread" : ""));
      const std::size_t testsBefore = tests();
      expectUndisturbed(inAnotherThread, mode, [&] {
        EXPECT_CUDNN(
            convolution.run(handles.ours, UCUDNN_FORWARD, 0, {workspace.get(), workspace.bytes()}));
      });
      EXPECT_EQ(testsBefore + 1, tests());
    }
}

TEST_F(CaptureGuardTest, CapturedCallIsNotTestedForEquivalence) {
  const ConvolutionCase parameters = fftCase(241);
  const ForcedSplits forced({parameters});
  const EnvironmentGuard settings("UCUDNN_EQUIVALENCE_TEST", "1");
  const Handles handles;
  Convolution convolution(parameters);
  const DeviceBuffer workspace(kLimit);
  const auto expected = convolution.undivided(handles.native, UCUDNN_FORWARD, 0, 1, 0);
  Recording recording;
  ASSERT_CUDNN(cudnnSetStream(handles.ours, recording.stream()));
  ASSERT_NO_FATAL_FAILURE(recording.begin());
  EXPECT_CUDNN(convolution.run(handles.ours, UCUDNN_FORWARD, 0, {workspace.get(), kLimit}));
  ASSERT_NO_FATAL_FAILURE(recording.end());
  convolution.y().poison();
  ASSERT_NO_FATAL_FAILURE(recording.launch());
  EXPECT_LE(
      distance(convolution.geometry(UCUDNN_FORWARD), convolution.y().read(), expected.value()),
      toleranceBetweenAlgorithms());
}

/// The three diagnosis functions about forward.
struct Diagnosis {
  Diagnosis(const Handles& handles, const Convolution& convolution) {
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    statuses.push_back(convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries));
    int count = 0;
    statuses.push_back(ucudnnGetConvolutionCandidates(handles.ours,
                                                      UCUDNN_FORWARD,
                                                      convolution.xDesc(),
                                                      convolution.wDesc(),
                                                      convolution.convDesc(),
                                                      convolution.yDesc(),
                                                      0,
                                                      &count,
                                                      nullptr));
    std::vector<ucudnnParetoPoint_t> front;
    statuses.push_back(convolution.front(handles.ours, UCUDNN_FORWARD, &front));
    sizes = {entries.size(), static_cast<std::size_t>(count), front.size()};
  }

  std::vector<cudnnStatus_t> statuses;
  std::vector<std::size_t> sizes;
};

TEST_F(CaptureGuardTest, DiagnosisOfACapturedStreamAnswersWhatIsKnown) {
  const Handles handles;
  setArithmetic(Arithmetic::kOff);  // only times are wanted
  for (const bool known : {false, true}) {
    SCOPED_TRACE(known ? "known" : "unknown");
    const Convolution convolution(fftCase(known ? 243 : 242));
    std::optional<Diagnosis> before;
    if (known) before.emplace(handles, convolution);
    Recording recording;
    ASSERT_CUDNN(cudnnSetStream(handles.ours, recording.stream()));
    ASSERT_NO_FATAL_FAILURE(recording.begin());
    const long long measuredBefore = statistics().kernelsMeasured;
    const Diagnosis during(handles, convolution);
    EXPECT_EQ(measuredBefore, statistics().kernelsMeasured);
    ASSERT_NO_FATAL_FAILURE(recording.end());
    ASSERT_CUDNN(cudnnSetStream(handles.ours, nullptr));
    const auto expected = known ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    EXPECT_EQ(std::vector<cudnnStatus_t>(3, expected), during.statuses);
    if (known) {
      EXPECT_EQ(before->statuses, during.statuses);
      EXPECT_EQ(before->sizes, during.sizes);
    }
    const Diagnosis after(handles, convolution);
    EXPECT_EQ(std::vector<cudnnStatus_t>(3, CUDNN_STATUS_SUCCESS), after.statuses);
  }
}

}  // namespace
}  // namespace ucudnn::test
