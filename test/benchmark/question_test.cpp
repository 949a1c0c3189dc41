// The questions that fast tuning's rules are asked, and the sizes that they are asked about.
#include "benchmark/question.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "benchmark_fixture.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"

namespace ucudnn::test {
namespace {

using Sizes = std::vector<int>;

class QuestionTest : public BenchmarkTest {
 protected:
  static BenchmarkRequest fast(int batch) {
    BenchmarkRequest request = question(batch, 64 * kMebibyte);
    request.problem.mathType = CUDNN_DEFAULT_MATH;
    request.kernels = Kernels::kAll;
    request.tuning = Tuning::kFast;
    return request;
  }

  Sizes anchorsOf(const BenchmarkRequest& request) {
    Sizes sizes;
    const Question asked = questionOf(request);
    for (const auto& anchor : asked.anchors()) sizes.push_back(anchor.batch);
    return sizes;
  }

  /// For 64 samples: whether a kernel of that source is timed at `batch`, if it needs no workspace
  /// and takes `ms` at 16 samples, where an engine that needs `fastBytes` of the limit takes 1 ms.
  bool isTimed(int source, double ms, std::size_t fastBytes, int batch) {
    const BenchmarkRequest request = fast(64);
    Question asked = questionOf(request);
    const auto& anchors = asked.anchors();
    const auto& last = anchors.back().offers;
    const auto slow = std::find_if(last.begin(), last.end(), [&](const KernelOffer& offer) {
      return offer.kernel.source == source;
    });
    if (anchors.front().batch != 16 || slow == last.end()) throw std::logic_error("no such kernel");
    Kernel other = slow->kernel;
    other.source = kEngines;
    ++other.id;
    const auto measured = [](Kernel kernel, std::size_t bytes, double timeMs) {
      return Measurement{{{bytes, true, true}, kernel}, {timeMs, timeMs}, true, true};
    };
    asked.add(16, {measured(other, fastBytes, 1), measured(slow->kernel, 0, ms)});
    Question::Anchor anchor{batch, anchors.back().descriptors, {*slow}};
    anchor.offers.front().workspaceBytes = 0;
    return !asked.judge(anchor).tasks.empty();
  }
};

/// 0.1 ms for two samples is more than 0.014 for four: another thread's work ran meanwhile.
TEST_F(QuestionTest, ATimeThatOthersContradictIsTakenAgain) {
  Question asked = questionOf(fast(4));
  const Kernel fft{7, 1}, other{8, 1};
  const auto measured = [](Kernel kernel, double timeMs) {
    return Measurement{{{0, true, true}, kernel}, {timeMs, timeMs}, true, true};
  };
  asked.add(2, {measured(fft, 0.1), measured(other, 0.001)});
  asked.add(4, {measured(fft, 0.014), measured(other, 0.002)});
  EXPECT_TRUE(asked.isWorthRefining(2, measured(fft, 0.1)));
  EXPECT_FALSE(asked.isDoubtful(2, measured(fft, 0.014)));
  EXPECT_TRUE(asked.isDoubtful(4, measured(other, 0.1))) << "50 times as long for twice as many";
  EXPECT_FALSE(asked.isDoubtful(4, measured(other, 0.0045))) << "half of it may be a gap";
  EXPECT_FALSE(asked.isDoubtful(2, measured({9, 1}, 0.1))) << "nothing contradicts it";
}

TEST_F(QuestionTest, WhatIsFastestElsewhereComesFirst) {
  BenchmarkRequest request = fast(64);
  const auto kernelsOf = [&] {
    std::vector<Kernel> kernels;
    const Question asked = questionOf(request);
    for (const KernelOffer& offer : asked.anchors().front().offers) kernels.push_back(offer.kernel);
    return kernels;
  };
  std::vector<Kernel> expected = kernelsOf();
  const std::size_t count = expected.size();
  ASSERT_LT(3U, count);
  Measurements elsewhere;
  request.elsewhere = &elsewhere;
  EXPECT_EQ(expected, kernelsOf());
  const int batch = questionOf(request).anchors().front().batch;
  for (const auto& [kernel, ms] : {std::pair(expected[2], 2.0), {expected[count - 1], 1.0}})
    elsewhere[batch].kernels.push_back({{{0, true, true}, kernel}, {ms, ms}, true, true});
  elsewhere[2 * batch].kernels.push_back({{{0, true, true}, expected[1]}, {0.1, 0.1}, true, true});
  std::rotate(expected.begin(), expected.begin() + 2, expected.begin() + 3);
  std::rotate(expected.begin(), expected.end() - 1, expected.end());
  EXPECT_EQ(expected, kernelsOf());
}

TEST_F(QuestionTest, FastTuningBeginsWhereSamplesFillTheDevice) {
  EXPECT_EQ(anchorsOf(fast(256)), (Sizes{32, 16, 8, 4, 2, 1, 64, 128, 256}));
  EXPECT_EQ(anchorsOf(fast(64)), (Sizes{16, 8, 4, 2, 1, 32, 64}));
  EXPECT_EQ(anchorsOf(fast(8)), (Sizes{8, 4, 2, 1}));
  BenchmarkRequest large = fast(16);
  constexpr int kChannels = 2048, kImage = 16 * 16;  // 1e10 multiply-adds a sample
  for (auto* const sizes : {&large.problem.xSizes, &large.problem.ySizes})
    *sizes = {16, kChannels, 16, 16, 0};
  for (auto* const strides : {&large.problem.xStrides, &large.problem.yStrides})
    *strides = {kChannels * kImage, kImage, 16, 1, 0};
  large.problem.wSizes = {kChannels, kChannels, 3, 3, 0};
  large.problem.pads = {1, 1, 0};
  EXPECT_EQ(anchorsOf(large), (Sizes{2, 1, 4, 8, 16}));
  large.tuning = Tuning::kExhaustive;
  EXPECT_EQ(anchorsOf(large), (Sizes{1, 2, 4, 8, 16}));
}

TEST_F(QuestionTest, WhatIsFarBehindIsTimedAtTheWholeUnlessItIsHopeless) {
  const std::size_t half = 32 * kMebibyte;
  EXPECT_TRUE(isTimed(kEngines, 1.9, half, 32));
  EXPECT_FALSE(isTimed(kEngines, 3, half, 32)) << "far behind";
  EXPECT_TRUE(isTimed(kEngines, 3, half + 1, 32)) << "what is faster needs more than half";
  EXPECT_TRUE(isTimed(kEngines, 3, half, 64)) << "the whole";
  EXPECT_FALSE(isTimed(kEngines, 20, half, 64)) << "hopeless";
  EXPECT_TRUE(isTimed(kAlgorithms, 20, half, 64)) << "Find lists it";
  EXPECT_FALSE(isTimed(kAlgorithms, 20, half, 32));
}

}  // namespace
}  // namespace ucudnn::test
