// The memory that graphs of replayed calls take, and what is captured for it.
#include "../support/simulator.hpp"
#include "replay.hpp"

namespace ucudnn::test {
namespace {

class ReplayMemoryTest : public ReplayFixture {
 protected:
  /// Bytes of the graph of one forward call.
  static long long graphBytes(const ConvolutionCase& parameters = replayCase()) {
    Repeated calls(parameters);
    calls.call(UCUDNN_FORWARD);
    return calls.call(UCUDNN_FORWARD).graphBytes;
  }
};

/// Buffers for the three tensors, which take turns with the convolution's own.
class Buffers {
 public:
  Buffers(Convolution& convolution, unsigned seed) : convolution_(convolution) {
    for (const ucudnnOperation_t which : kOperations) {
      tensors_[which] = std::make_unique<DeviceBuffer>(convolution.output(which).bytes());
      tensors_[which]->write(randomValues(convolution.geometry(which), seed + which));
    }
  }
  /// In, and at the second time out.
  void exchange() {
    for (const ucudnnOperation_t which : kOperations)
      tensors_[which] = convolution_.exchange(which, std::move(tensors_[which]));
  }

 private:
  Convolution& convolution_;
  std::unique_ptr<DeviceBuffer> tensors_[3];
};

TEST_F(ReplayMemoryTest, RotationOverSetsOfBuffersIsReplayedFromTheSecondRoundOn) {
  for (const unsigned sets : {1U, 2U, 4U, 8U}) {
    SCOPED_TRACE(std::to_string(sets) + " sets");
    Repeated calls(replayCase());
    std::vector<std::unique_ptr<Buffers>> buffers;
    for (unsigned i = 0; i < sets; ++i)
      buffers.push_back(std::make_unique<Buffers>(calls.convolution(), 10 * i));
    for (int round = 0; round < 5; ++round)
      for (const auto& set : buffers)
        for (const ucudnnOperation_t operation : kOperations) {
          set->exchange();
          const Counts did = calls.call(operation);
          set->exchange();
          EXPECT_EQ(round == 0 ? 0 : 1, did.replayed);
          EXPECT_EQ(onSimulator() && round == 1 ? 1 : 0, did.captures);
        }
  }
}

/// Outputs that take turns.
std::vector<std::unique_ptr<DeviceBuffer>> outputs(Repeated& calls, int count) {
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (int i = 0; i < count; ++i)
    buffers.push_back(std::make_unique<DeviceBuffer>(calls.convolution().y().bytes()));
  return buffers;
}

// Each call is noted when it first comes; two must not drive out each other's note for ever.
TEST_F(ReplayMemoryTest, ManyCallsThatTakeTurnsAreAllReplayedInTheEnd) {
  constexpr int kBuffers = 400, kRounds = 12;
  Repeated calls(replayCase());
  ASSERT_CUDNN(ucudnnSetGraphMemory(calls.handle(), std::size_t{1} << 30));
  auto buffers = outputs(calls, kBuffers);
  for (int round = 0; round < kRounds; ++round) {
    const Counts before = Counts::now();
    for (auto& output : buffers) {
      output = calls.convolution().exchange(UCUDNN_FORWARD, std::move(output));
      ASSERT_CUDNN(calls.enqueue(UCUDNN_FORWARD));
      output = calls.convolution().exchange(UCUDNN_FORWARD, std::move(output));
    }
    if (round == kRounds - 1) {
      EXPECT_EQ(kBuffers, (Counts::now() - before).replayed);
    }
  }
  EXPECT_EQ(kBuffers, statistics().graphs);
}

TEST_F(ReplayMemoryTest, AddressesThatNeverRepeatAreNotCaptured) {
  Repeated calls(replayCase());
  std::vector<std::unique_ptr<Buffers>> used;  // not freed: an address would come again
  for (unsigned i = 0; i < 40; ++i) {
    used.push_back(std::make_unique<Buffers>(calls.convolution(), i));
    used.back()->exchange();
    for (const ucudnnOperation_t operation : kOperations) {
      const Counts did = calls.call(operation);
      EXPECT_EQ(0, did.replayed);
      EXPECT_EQ(0, did.captures);
      EXPECT_EQ(0, did.graphs);
    }
    used.back()->exchange();
  }
}

/// A forward call that writes to the buffer.
Counts callInto(Repeated& calls, std::unique_ptr<DeviceBuffer>& output) {
  output = calls.convolution().exchange(UCUDNN_FORWARD, std::move(output));
  const Counts did = calls.call(UCUDNN_FORWARD);
  output = calls.convolution().exchange(UCUDNN_FORWARD, std::move(output));
  return did;
}

TEST_F(ReplayMemoryTest, RotationThatDoesNotFitKeepsSomeAndCapturesNothingOverAndOver) {
  constexpr int kFitting = 3;
  const long long granted = kFitting * graphBytes() + 1000;
  Repeated calls(replayCase());
  ASSERT_CUDNN(ucudnnSetGraphMemory(calls.handle(), static_cast<std::size_t>(granted)));
  auto buffers = outputs(calls, 8);
  for (int round = 0; round < 6; ++round) {
    long long replayed = 0;
    std::int64_t captures = 0;
    for (auto& output : buffers) {
      const Counts did = callInto(calls, output);
      replayed += did.replayed;
      captures += did.captures;
      EXPECT_GE(granted, statistics().graphBytes);
    }
    EXPECT_EQ(round == 0 ? 0 : kFitting, replayed) << "round " << round;
    EXPECT_EQ(onSimulator() && round == 1 ? kFitting : 0, captures) << "round " << round;
  }
  // Other buffers for good: theirs replace the former ones.
  auto others = outputs(calls, 2);
  for (int round = 0; round < 3; ++round)
    for (auto& output : others) {
      EXPECT_EQ(round == 0 ? 0 : 1, callInto(calls, output).replayed);
      EXPECT_GE(granted, statistics().graphBytes);
    }
}

// A graph that has no chance to fit must not drive out graphs that do.
TEST_F(ReplayMemoryTest, GraphTooLargeForTheMemoryLeavesTheOthersAlone) {
  ConvolutionCase large = replayCase();
  large.batch = 126;    // six micro-batches, or more
  large.channels += 8;  // another problem, whose undivided kernels are slow as well
  const ForcedSplits forced({large, replayCase()});
  const long long granted = graphBytes() + 1000;
  if (graphBytes(large) <= granted) GTEST_SKIP() << "its graph is as small as the other's";
  const EnvironmentGuard graphs("UCUDNN_GRAPH_MEMORY", std::to_string(granted));
  Repeated calls(replayCase());
  Repeated larger(large);
  calls.call(UCUDNN_FORWARD);
  calls.call(UCUDNN_FORWARD);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 2; ++j) EXPECT_EQ(0, larger.call(UCUDNN_FORWARD).replayed);
    const Counts after = calls.call(UCUDNN_FORWARD);
    EXPECT_EQ(1, after.replayed);
    EXPECT_EQ(0, after.captures);
  }
}

TEST_F(ReplayMemoryTest, GraphsAreGivenBackWithTheSettingAndWithTheirHandle) {
  const auto live = [] { return liveHandles("graphExec"); };
  Repeated kept(replayCase());
  kept.call(UCUDNN_FORWARD);
  kept.call(UCUDNN_FORWARD);
  const long long own = statistics().graphBytes;
  EXPECT_LT(0, own);
  {
    Repeated calls(replayCase());
    for (const ucudnnOperation_t operation : kOperations)
      for (int i = 0; i < 3; ++i) calls.call(operation);
    EXPECT_EQ(4, statistics().graphs);
    EXPECT_EQ(onSimulator() ? 4 : 0, live());
    ASSERT_CUDNN(ucudnnSetGraphMemory(calls.handle(), 0));
    EXPECT_EQ(1, statistics().graphs);
    EXPECT_EQ(onSimulator() ? 1 : 0, live());
    EXPECT_EQ(0, calls.call(UCUDNN_FORWARD).replayed);
    ASSERT_CUDNN(ucudnnSetGraphMemory(calls.handle(), std::size_t{64} << 20));
    for (int i = 0; i < 3; ++i) calls.call(UCUDNN_FORWARD);
    EXPECT_EQ(2, statistics().graphs);
  }
  EXPECT_EQ(1, statistics().graphs);
  EXPECT_EQ(own, statistics().graphBytes);
  EXPECT_EQ(onSimulator() ? 1 : 0, live());
  const Counts after = kept.call(UCUDNN_FORWARD);
  EXPECT_EQ(1, after.replayed);
  EXPECT_EQ(0, after.captures);
}

// A handle may go while its graphs run.
TEST_F(ReplayMemoryTest, GraphsAreGivenBackWhileTheyRun) {
  auto calls = std::make_unique<Repeated>(replayCase());
  for (int i = 0; i < 3; ++i) ASSERT_CUDNN(calls->enqueue(UCUDNN_FORWARD));
  ASSERT_CUDNN(ucudnnSetGraphMemory(calls->handle(), 0));
  calls->call(UCUDNN_FORWARD);
  for (int i = 0; i < 3; ++i) ASSERT_CUDNN(calls->enqueue(UCUDNN_BACKWARD_DATA));
  calls.reset();
  EXPECT_CUDA(cudaDeviceSynchronize());
}

TEST_F(ReplayMemoryTest, WhereAGraphFindsNoMemoryTheCallIsEnqueued) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator can be short of memory";
  Repeated calls(replayCase());
  for (const ucudnnOperation_t operation : kOperations) {
    calls.call(operation);
    setMemory(0, 1024);
    for (int i = 0; i < 4; ++i) {
      const Counts did = calls.call(operation);
      EXPECT_EQ(0, did.replayed + did.graphs + did.graphBytes);
      EXPECT_EQ(1, did.split);
      EXPECT_EQ(i == 0 ? 1 : 0, did.captures) << "it rests";
    }
    setMemory(0, std::size_t{100} << 30);
  }
  EXPECT_CUDA(cudaGetLastError());
}

}  // namespace
}  // namespace ucudnn::test
