// Convolutions whose engines read blocks of pixels as one: what is offered, and what is refused; on
// the simulator, and on a GPU.
#include "kernels/blocks.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "blocks_fixture.hpp"
#include "support/operations.hpp"
#include "support/simulator.hpp"
#include "support/skips.hpp"

namespace ucudnn {
namespace {

using namespace test;

/// In a process of its own, where nothing has been loaded yet.
void expectBlocksWhileCapturing() {
  cudaStream_t stream = nullptr;
  UCUDNN_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  UCUDNN_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  const bool exists = Blocking::exists(stem(kAlexNet), 16);
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  std::exit(exists && error == cudaSuccess ? 0 : 1);
}

TEST_F(BlocksTest, TheirCodeIsLoadedBesideACapture) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(expectBlocksWhileCapturing(), ::testing::ExitedWithCode(0), "");
}

/// In a process of its own, too. "No" is remembered by databases; a failure is asked again.
void expectThatFailureToLoadIsNoAnswer() {
  const auto ask = [](std::int64_t failing) {
    failCall(failing);
    std::string answer;
    try {
      answer = Blocking::exists(stem(kAlexNet), 16) ? "yes" : "no";
    } catch (const Error&) {
      answer = "none";
    }
    failCall(0);
    return cudaGetLastError() == cudaSuccess ? answer : answer + ", with an error left";
  };
  setArithmetic(Arithmetic::kOff);
  std::string answers = ask(0);
  setArithmetic(Arithmetic::kFull);
  // The thread's capture mode, the library, and its first kernel.
  for (const int failing : {1, 2, 3, 0}) answers += " " + ask(failing);
  std::fprintf(stderr, "%s\n", answers.c_str());
  std::exit(0);
}

TEST_F(BlocksTest, AFailureToLoadTheirCodeIsNoAnswer) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  if (!onSimulator()) GTEST_SKIP() << "only the simulator makes calls fail";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      expectThatFailureToLoadIsNoAnswer(), ::testing::ExitedWithCode(0), "no none none none yes");
}

TEST_F(BlocksTest, AStepBecomesChannels) {
  const Blocking once(stem(kAlexNet), 16), twice(stem(kResNet), 16);
  EXPECT_EQ(once.problem().xSizes, (Problem::Sizes{3, 48, 7, 7}));
  EXPECT_EQ(once.problem().wSizes, (Problem::Sizes{8, 48, 3, 3}));
  EXPECT_EQ(once.problem().ySizes, stem(kAlexNet).ySizes);
  EXPECT_FALSE(once.copies().hasY());
  // Twelve by twelve pixels of y, in blocks of two by two.
  EXPECT_EQ(twice.problem().ySizes, (Problem::Sizes{3, 32, 6, 6}));
  EXPECT_EQ(twice.problem().wSizes, (Problem::Sizes{32, 48, 3, 3}));
  EXPECT_EQ(twice.problem().xSizes, (Problem::Sizes{3, 48, 8, 8}));
  EXPECT_TRUE(twice.copies().hasY());
  const Blocking last(stem(kAlexNet), 16, true);
  EXPECT_EQ(last.problem().xSizes, once.problem().xSizes);
  EXPECT_EQ(last.problem().ySizes, once.problem().ySizes);
  EXPECT_EQ(last.problem().yStrides[1], 1);
  EXPECT_TRUE(last.copies().hasY());
}

/// CUDA has no more than 65535 thread blocks in y and z.
TEST_F(BlocksTest, LinesMayBeLong) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  BlockCopy copy{};
  copy.samples = copy.channels = copy.height = copy.down = 1;
  copy.rows = copy.columns = 2;
  copy.across = kMostColumns << 16;
  copy.width = 2 * copy.across;
  copy.numbers = copy.numberBytes = 4;
  std::fill_n(copy.strides, 3, copy.width);
  copy.strides[3] = 1;
  const DeviceBuffer tensor(16 << 20), blocks(32 << 20);
  copy.tensor = tensor.get();
  copy.blocks = blocks.get();
  EXPECT_EQ(toBlocks(copy, nullptr), cudaSuccess);
  EXPECT_EQ(fromBlocks(copy, nullptr), cudaSuccess);
}

/// Engines read sixteen bytes at once.
TEST_F(BlocksTest, ZerosFillTheChannelsThatEnginesReadAtOnce) {
  EXPECT_EQ(Blocking(inHalf(stem(kResNet)), 4).problem().xSizes[1], 16);
  EXPECT_EQ(Blocking(inHalf(stem(kResNet)), 4).problem().wSizes[1], 16);
  EXPECT_EQ(Blocking(stem({24, 5, 2, 3}), 9).problem().xSizes[1], 28);
  EXPECT_EQ(Blocking(stem(kResNet), 4).problem().xSizes[1], 12);
}

TEST_F(BlocksTest, WhatHasNoBlocksIsRefused) {
  const auto changed = [](auto change) {
    Problem problem = stem(kResNet, 4);
    change(problem);
    return problem;
  };
  using P = Problem&;
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  ASSERT_EQ(Blocking::exists(changed([](P) {}), 4), kHasBlockCopies);
  const std::vector<Problem> others{
      changed([](P p) { p.wType = CUDNN_DATA_HALF; }),
      changed([](P p) { p.yType = CUDNN_DATA_BFLOAT16; }),
      changed([](P p) { p.xType = p.wType = p.yType = CUDNN_DATA_DOUBLE; }),
      changed([](P p) { p.groups = 2, setSizes(p, 4, 8, false); }),
      changed([](P p) { p.mode = CUDNN_CONVOLUTION; }),
      changed([](P p) { p.dilations[1] = 2, p.pads[1] = 6; }),
      changed([](P p) {
        setLine(p, 0, {24, 1, 0, 2}), setSizes(p, 4, 8, false);
      }),
      changed([](P p) { setSizes(p, 65, 8, false); }),
      changed([](P p) { p.xStrides[3] = 1 << 28; }),
      changed([](P p) { p.xSizes[2] = p.ySizes[2] = p.wSizes[2] = kMost; }),
      changed([](P p) {
        p.dimensions = 5;
        p.xSizes[4] = p.ySizes[4] = p.wSizes[4] = p.strides[2] = p.dilations[2] = 1;
        setSizes(p, 4, 8, false);
      })};
  for (const Problem& problem : others)
    for (const int pixels : {2, 4, 8, 16}) EXPECT_FALSE(Blocking::exists(problem, pixels));
  for (const int pixels : {-4, 0, 2, 3, 5, 8, 12, 100, 1 << 30})
    EXPECT_FALSE(Blocking::exists(changed([](P) {}), pixels)) << pixels;
  const Problem wideSteps = changed([](P p) {
    setLine(p, 0, {24, 7, 3, 1}), setLine(p, 1, {256, 64, 0, 64}), setSizes(p, 4, 8, false);
  });
  EXPECT_FALSE(Blocking::exists(wideSteps, 64));
  const Problem endless = changed([](P p) { p.strides = {1 << 30, 1 << 30}; });
  EXPECT_EQ(Blocking::pixelsOf(endless), 0);
  EXPECT_FALSE(Blocking::exists(endless, 0));
  const Problem manyFilters = changed([](P p) { setSizes(p, 4, 65, false); });
  EXPECT_EQ(Blocking::exists(manyFilters, 4), kHasBlockCopies);
  EXPECT_FALSE(Blocking::exists(manyFilters, 16));
  for (const Operation operation : kOperations) {
    const bool isGradient = operation == Operation::kBackwardFilter;
    const Problem half = inHalf(changed([&](P p) { p.operation = operation; }));
    EXPECT_EQ(Blocking::exists(half, 4), kHasBlockCopies);
    EXPECT_EQ(Blocking::exists(half, 16), kHasBlockCopies && !isGradient)
        << "the gradient would be rounded twice";
  }
  const auto copiesY = [](const Problem& problem, int pixels) {
    return Blocking::exists(problem, pixels, true);
  };
  EXPECT_EQ(copiesY(changed([](P) {}), 4), kHasBlockCopies);
  EXPECT_FALSE(copiesY(changed([](P) {}), 16)) << "blocks of y are copied anyway";
  EXPECT_FALSE(copiesY(changed([](P p) { p.mathType = CUDNN_FMA_MATH; }), 4)) << "no tensor cores";
  EXPECT_FALSE(copiesY(changed([](P p) { setSizes(p, 4, 8, true); }), 4)) << "y is last";
  EXPECT_FALSE(copiesY(changed([](P p) { setSizes(p, 4, 10, false); }), 4)) << "y is filled";
  EXPECT_FALSE(copiesY(changed([](P p) {
                         p.operation = Operation::kBiasActivationForward;
                         p.addsZ = 1;
                       }),
                       4));
  const Problem fused = changed([](P p) { p.operation = Operation::kBiasActivationForward; });
  EXPECT_EQ(Blocking::exists(fused, 4), kHasBlockCopies);
  EXPECT_FALSE(Blocking::exists(fused, 16));
  EngineConfiguration value = engines(stem(kVgg)).front();
  EXPECT_FALSE(offer(stem(kVgg), value, 2));
  value.blocks = 2;
  EXPECT_THROW(build(stem(kVgg), {idOf(value), stem(kVgg).mathType, kEngines}), Error);
}

/// Few channels: 16 pixels of an AlexNet's, 4 and 16 of a ResNet's, 4 of a VGG's, none of more.
TEST_F(BlocksTest, EnginesAreOfferedForBlocksOfFewChannels) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const auto blocksOf = [&](Problem problem) {
    std::vector<int> pixels;
    bool copiesY = false, keepsY = false;
    for (const KernelOffer& offer :
         offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true)) {
      if (offer.kernel.source != kEngines) continue;
      const EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
      const int found = value.blocks;
      if (found > 1 && (pixels.empty() || pixels.back() != found)) pixels.push_back(found);
      if (found > 1 && found == Blocking::pixelsOf(problem))
        (value.last != 0 ? copiesY : keepsY) = true;
    }
    if (Blocking::pixelsOf(problem) > 1 && !pixels.empty()) {
      const bool isTensor = problem.mathType != CUDNN_FMA_MATH;
      EXPECT_EQ(copiesY, isTensor) << problem.text();
      EXPECT_EQ(keepsY, !isTensor || problem.xType == CUDNN_DATA_FLOAT) << problem.text();
    }
    return pixels;
  };
  using Pixels = std::vector<int>;
  for (const Operation operation : kOperations) {
    const auto with = [&](Problem problem, int mathType = CUDNN_DEFAULT_MATH) {
      problem.operation = operation;
      problem.mathType = mathType;
      return problem;
    };
    EXPECT_EQ(blocksOf(with(stem(kAlexNet))), Pixels{16});
    EXPECT_EQ(blocksOf(with(stem(kResNet))), (Pixels{4, 16}));
    EXPECT_EQ(blocksOf(with(stem(kResNet), CUDNN_FMA_MATH)), Pixels{4});
    EXPECT_EQ(blocksOf(with(stem(kVgg))), Pixels{4});
    EXPECT_EQ(blocksOf(with(stem(kVgg), CUDNN_FMA_MATH)), Pixels{});
    EXPECT_EQ(blocksOf(with(stem(kResNet, 5))), Pixels{});
    const bool isGradient = operation == Operation::kBackwardFilter;
    EXPECT_EQ(blocksOf(with(inHalf(stem(kAlexNet)))), Pixels{16});
    EXPECT_EQ(blocksOf(with(inHalf(stem(kResNet)))), isGradient ? Pixels{4} : (Pixels{4, 16}));
    EXPECT_EQ(blocksOf(with(inHalf(stem(kVgg)))), isGradient ? Pixels{} : Pixels{4});
  }
}

}  // namespace
}  // namespace ucudnn
