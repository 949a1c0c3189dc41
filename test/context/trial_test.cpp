// A plan's calls in turns with those of the client's own kernel. Copies of different sizes stand in
// for both.
#include "context/trial.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "support/device.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kShort = std::size_t{1} << 20, kLong = std::size_t{64} << 20;

class TrialTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!hasDevice()) GTEST_SKIP() << "no device";
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaMalloc(&memory_, kLong));
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
    EXPECT_EQ(cudaSuccess, cudaFree(memory_));
  }

  /// Runs the trial's calls; how many each side had.
  std::pair<int, int> run(Trial& trial, std::size_t planBytes, std::size_t ownBytes) {
    int plans = 0, owns = 0;
    for (int call = 0; call < 10 * Trial::kCalls; ++call) {
      const Trial::Next next = trial.next();
      if (next != Trial::Next::kPlan && next != Trial::Next::kOwn) break;
      ++(next == Trial::Next::kPlan ? plans : owns);
      EXPECT_TRUE(trial.begin(stream_));
      const std::size_t bytes = next == Trial::Next::kPlan ? planBytes : ownBytes;
      EXPECT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 0, bytes, stream_));
      EXPECT_TRUE(trial.end(stream_));
    }
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(Trial::Next::kOver, trial.next());
    EXPECT_EQ(Trial::Next::kOver, trial.next());
    return {plans, owns};
  }

  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
};

TEST_F(TrialTest, BothRunEquallyOften) {
  Trial trial;
  const auto [plans, owns] = run(trial, kShort, kShort);
  EXPECT_EQ(Trial::kCalls, plans);
  EXPECT_EQ(Trial::kCalls, owns);
}

TEST_F(TrialTest, TheSlowerPlanGoes) {
  Trial trial;
  run(trial, kLong, kShort);
  EXPECT_TRUE(trial.ownIsFaster());
}

TEST_F(TrialTest, TheFasterPlanStays) {
  Trial trial;
  run(trial, kShort, kLong);
  EXPECT_FALSE(trial.ownIsFaster());
}

}  // namespace
}  // namespace ucudnn::test
