// Handles, streams and threads as clients use them: misc/docs/CLIENTS.md, "At run time", 1, 2,
// 3, 13.
#include <thread>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

/// Runs an operation on a handle and compares with plain cuDNN's result of the same buffers.
void expectRightResult(UcudnnHandle_t ours, ucudnnOperation_t operation, Convolution& convolution) {
  cudnnHandle_t native = nullptr;
  ASSERT_CUDNN(cudnnCreate(&native));
  const auto expected = convolution.undivided(native, operation, 0, 1, 0);
  EXPECT_CUDNN(cudnnDestroy(native));
  ASSERT_TRUE(expected);
  std::vector<Performance> named;
  ASSERT_CUDNN(convolution.query(ours, operation, Query::kGet, 1, &named));
  const std::size_t bytes = named.at(0).memory;
  const DeviceBuffer workspace(bytes);
  convolution.output(operation).poison();
  ASSERT_CUDNN(convolution.run(ours, operation, 0, {workspace.get(), bytes}));
  EXPECT_LE(
      distance(convolution.geometry(operation), convolution.output(operation).read(), *expected),
      toleranceBetweenAlgorithms());
}

class HandleTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (IsSkipped()) return;
    static int tests = 0;
    case_ = fftCase(64 + ++tests);
    forced_.emplace(std::vector<ConvolutionCase>{case_});
  }

  ConvolutionCase case_;
  std::optional<ForcedSplits> forced_;
};

TEST_F(HandleTest, QueryOnOneRunOnAnotherInAnotherThread) {
  const Handles asked;
  Convolution convolution(case_);
  for (const ucudnnOperation_t operation : kOperations) {
    std::vector<Performance> results;
    ASSERT_CUDNN(convolution.query(asked.ours, operation, Query::kGet, 1, &results));
    const ucudnnStatistics_t before = statistics();
    std::thread([&] {
      const Handles running;
      expectRightResult(running.ours, operation, convolution);
    }).join();
    EXPECT_EQ(before.kernelsLoaded, statistics().kernelsLoaded);
    EXPECT_EQ(before.splitCalls + 1, statistics().splitCalls);
  }
}

TEST_F(HandleTest, MovesBetweenThreads) {
  const Handles handles;
  Convolution convolution(case_);
  for (int thread = 0; thread < 3; ++thread)
    std::thread([&] { expectRightResult(handles.ours, UCUDNN_FORWARD, convolution); }).join();
}

TEST_F(HandleTest, ManyHandlesStreamsAndThreadsAtOnce) {
  constexpr int kThreads = 4;
  const auto work = [&] {
    const Handles handles;
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    Convolution convolution(case_);
    const DeviceBuffer workspace(kLimit);
    const Workspace all{workspace.get(), workspace.bytes()};
    for (int round = 0; round < 3; ++round)
      for (const ucudnnOperation_t operation : kOperations) {
        convolution.fill();
        const auto expected = convolution.undivided(handles.native, operation, 0, 1, 0);
        convolution.output(operation).poison();
        ASSERT_CUDNN(cudnnSetStream(handles.ours, stream));
        ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, all));
        ASSERT_CUDA(cudaStreamSynchronize(stream));
        EXPECT_LE(distance(convolution.geometry(operation),
                           convolution.output(operation).read(),
                           expected.value()),
                  toleranceBetweenAlgorithms());
      }
    EXPECT_CUDA(cudaStreamDestroy(stream));
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

// Caffe's groups: one problem on several streams, nothing waits in between.
TEST_F(HandleTest, SeveralStreamsAtOnceFromOneThread) {
  constexpr int kStreams = 3;
  const Handles handles;
  std::vector<std::unique_ptr<Convolution>> convolutions;
  std::vector<std::unique_ptr<DeviceBuffer>> workspaces;
  std::vector<UcudnnHandle_t> ours(kStreams);
  std::vector<cudaStream_t> streams(kStreams);
  std::vector<std::vector<char>> expected;
  for (std::size_t i = 0; i < kStreams; ++i) {
    convolutions.push_back(std::make_unique<Convolution>(case_));
    expected.push_back(
        convolutions[i]->undivided(handles.native, UCUDNN_BACKWARD_FILTER, 0, 1, 0).value());
    convolutions[i]->w().poison();
    workspaces.push_back(std::make_unique<DeviceBuffer>(kLimit));
    ASSERT_CUDNN(cudnnCreate(&ours[i]));
    ASSERT_CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  }
  for (std::size_t i = 0; i < kStreams; ++i) {
    ASSERT_CUDNN(cudnnSetStream(ours[i], streams[i]));
    ASSERT_CUDNN(convolutions[i]->run(
        ours[i], UCUDNN_BACKWARD_FILTER, 0, {workspaces[i]->get(), workspaces[i]->bytes()}));
  }
  for (std::size_t i = 0; i < kStreams; ++i) {
    EXPECT_LE(distance(convolutions[i]->geometry(UCUDNN_BACKWARD_FILTER),
                       convolutions[i]->w().read(),
                       expected[i]),
              toleranceBetweenAlgorithms());
    EXPECT_CUDNN(cudnnDestroy(ours[i]));
    EXPECT_CUDA(cudaStreamDestroy(streams[i]));
  }
}

TEST_F(HandleTest, StreamIsDestroyedBeforeTheHandle) {
  const Handles handles;
  Convolution convolution(case_);
  for (int round = 0; round < 2; ++round) {
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreate(&stream));
    ASSERT_CUDNN(cudnnSetStream(handles.ours, stream));
    expectRightResult(handles.ours, UCUDNN_FORWARD, convolution);
    ASSERT_CUDA(cudaStreamDestroy(stream));
  }
}

TEST_F(HandleTest, NativeHandleIsAdoptedOnFirstUse) {
  for (int round = 0; round < 3; ++round) {  // the address may be the same again
    cudnnHandle_t native = nullptr;
    ASSERT_CUDNN(cudnnCreate(&native));
    const UcudnnHandle_t ours = native;
    Convolution convolution(case_);
    const long long splitBefore = statistics().splitCalls;
    expectRightResult(ours, UCUDNN_BACKWARD_DATA, convolution);
    EXPECT_EQ(splitBefore + 1, statistics().splitCalls);
    // By either function: one of them leaves a context behind, which must do no harm.
    EXPECT_CUDNN(round == 0 ? cudnnDestroy(native) : cudnnDestroy(ours));
  }
}

// The state of a raw handle that plain cudnnDestroy ended is not passed to the new handle.
TEST_F(HandleTest, CreatedHandleInheritsNothingFromItsAddress) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator's addresses come back soon";
  Convolution convolution(case_);
  const DeviceBuffer workspace(kLimit);
  const Workspace all{workspace.get(), kLimit};
  cudnnHandle_t native = nullptr;
  ASSERT_CUDNN(cudnnCreate(&native));
  UcudnnHandle_t adopted = native;
  ASSERT_CUDNN(adopted.setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::undivided));
  for (int call = 0; call < 2; ++call)
    ASSERT_CUDNN(convolution.run(adopted, UCUDNN_FORWARD, 0, all));
  ASSERT_CUDNN(cudnnDestroy(native));

  std::vector<UcudnnHandle_t> created;
  bool found = false;
  while (!found && created.size() < 64) {
    created.emplace_back();
    ASSERT_CUDNN(cudnnCreate(&created.back()));
    found = created.back() == native;
  }
#ifdef __SANITIZE_ADDRESS__
  if (!found) {
    for (const UcudnnHandle_t handle : created) EXPECT_CUDNN(cudnnDestroy(handle));
    GTEST_SKIP() << "AddressSanitizer keeps freed addresses from coming back";
  }
#endif
  EXPECT_TRUE(found) << "the address was to come back";
  const ucudnnStatistics_t before = statistics();
  EXPECT_CUDNN(convolution.run(created.back(), UCUDNN_FORWARD, 0, all));
  EXPECT_EQ(before.splitCalls + 1, statistics().splitCalls) << "the policy was another handle's";
  for (const UcudnnHandle_t handle : created) EXPECT_CUDNN(cudnnDestroy(handle));
}

TEST_F(HandleTest, CreatingOneMeasuresAndAllocatesNothing) {
  const Handles first;  // what the process needs once
  const std::int64_t mallocs = callCount("cudaMalloc");
  const std::int64_t waits = callCount("cudaDeviceSynchronize");
  const ucudnnStatistics_t before = statistics();
  { const Handles handles; }
  EXPECT_EQ(mallocs, callCount("cudaMalloc"));
  EXPECT_EQ(waits, callCount("cudaDeviceSynchronize"));
  EXPECT_EQ(before.kernelsMeasured, statistics().kernelsMeasured);
}

}  // namespace
}  // namespace ucudnn::test
