// A plan's calls in turns with those of the client's own kernel. Copies of different sizes stand in
// for both.
#include "context/speed_check.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "support/device.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kShort = std::size_t{1} << 20, kLong = std::size_t{64} << 20;

class SpeedCheckTest : public ::testing::Test {
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

  /// Runs the check's calls; how many each side had.
  std::pair<int, int> run(SpeedCheck& check, std::size_t planBytes, std::size_t ownBytes) {
    int plans = 0, owns = 0;
    for (int call = 0; call < 10 * SpeedCheck::kCalls; ++call) {
      const SpeedCheck::Next next = check.next();
      if (next != SpeedCheck::Next::kPlan && next != SpeedCheck::Next::kOwn) break;
      ++(next == SpeedCheck::Next::kPlan ? plans : owns);
      EXPECT_TRUE(check.begin(stream_));
      const std::size_t bytes = next == SpeedCheck::Next::kPlan ? planBytes : ownBytes;
      EXPECT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 0, bytes, stream_));
      EXPECT_TRUE(check.end(stream_));
    }
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(SpeedCheck::Next::kOver, check.next());
    EXPECT_EQ(SpeedCheck::Next::kOver, check.next());
    return {plans, owns};
  }

  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
};

TEST_F(SpeedCheckTest, BothRunEquallyOften) {
  SpeedCheck check;
  const auto [plans, owns] = run(check, kShort, kShort);
  EXPECT_EQ(SpeedCheck::kCalls, plans);
  EXPECT_EQ(SpeedCheck::kCalls, owns);
}

TEST_F(SpeedCheckTest, TheSlowerPlanGoes) {
  SpeedCheck check;
  run(check, kLong, kShort);
  EXPECT_TRUE(check.ownIsFaster());
}

TEST_F(SpeedCheckTest, TheFasterPlanStays) {
  SpeedCheck check;
  run(check, kShort, kLong);
  EXPECT_FALSE(check.ownIsFaster());
}

}  // namespace
}  // namespace ucudnn::test
