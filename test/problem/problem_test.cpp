// The problem as a value.
#include "problem/problem.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "support/problems.hpp"

namespace ucudnn {
namespace {

using test::sampleProblem;

struct Change {
  std::string field;
  std::function<void(Problem&)> apply;
  bool isBatch = false;  ///< a text is the same at every batch size
};

/// Has every dimension, and the fields that only one operation has.
Problem fullProblem() {
  Problem problem = sampleProblem(Operation::kBiasActivationForward);
  problem.dimensions = 5;
  problem.xSizes = {8, 4, 5, 9, 7};
  problem.xStrides = {1260, 315, 63, 7, 1};
  problem.wSizes = {6, 4, 3, 2, 3};
  problem.ySizes = {8, 6, 5, 9, 8};
  problem.yStrides = {2160, 360, 72, 8, 1};
  problem.pads = {1, 2, 3};
  problem.strides = {1, 2, 3};
  problem.dilations = {1, 2, 3};
  problem.activation = CUDNN_ACTIVATION_RELU;
  return problem;
}

template <typename Member>
void addEach(std::vector<Change>& changes, const std::string& name, Member Problem::*member) {
  for (std::size_t i = 0; i < (Problem().*member).size(); ++i)
    changes.push_back({name + "[" + std::to_string(i) + "]",
                       [member, i](Problem& problem) { (problem.*member)[i] += 1; }});
}

/// One change for each field.
std::vector<Change> changes() {
  std::vector<Change> list = {
      {"operation", [](Problem& p) { p.operation = Operation::kForward; }},
      {"dimensions", [](Problem& p) { p.dimensions = 4; }},
      {"xType", [](Problem& p) { p.xType = CUDNN_DATA_HALF; }},
      {"wType", [](Problem& p) { p.wType = CUDNN_DATA_BFLOAT16; }},
      {"yType", [](Problem& p) { p.yType = CUDNN_DATA_DOUBLE; }},
      {"wFormat", [](Problem& p) { p.wFormat = CUDNN_TENSOR_NHWC; }},
      {"mode", [](Problem& p) { p.mode = CUDNN_CONVOLUTION; }},
      {"computeType", [](Problem& p) { p.computeType = CUDNN_DATA_HALF; }},
      {"mathType", [](Problem& p) { p.mathType = CUDNN_DEFAULT_MATH; }},
      {"mathType tensor", [](Problem& p) { p.mathType = CUDNN_TENSOR_OP_MATH; }},
      {"mathType tensor_conversion",
       [](Problem& p) { p.mathType = CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION; }},
      {"groups", [](Problem& p) { p.groups = 2; }},
      {"activation", [](Problem& p) { p.activation = CUDNN_ACTIVATION_IDENTITY; }},
      {"addsZ", [](Problem& p) { p.addsZ = 1; }},
      {"activationValue", [](Problem& p) { p.activationValue = 1; }},
      {"transform fourier", [](Problem& p) { p.transform = Transform::kFourier; }},
      {"transform none", [](Problem& p) { p.transform = Transform::kNone; }},
      {"reducedSums", [](Problem& p) { p.reducedSums = 1; }},
  };
  addEach(list, "xSizes", &Problem::xSizes);
  addEach(list, "xStrides", &Problem::xStrides);
  addEach(list, "wSizes", &Problem::wSizes);
  addEach(list, "ySizes", &Problem::ySizes);
  addEach(list, "yStrides", &Problem::yStrides);
  addEach(list, "pads", &Problem::pads);
  addEach(list, "strides", &Problem::strides);
  addEach(list, "dilations", &Problem::dilations);
  for (Change& change : list)
    change.isBatch = change.field == "xSizes[0]" || change.field == "ySizes[0]";
  return list;
}

TEST(ProblemTest, EqualProblemsHaveEqualHashes) {
  EXPECT_EQ(fullProblem(), fullProblem());
  EXPECT_EQ(fullProblem().hash(), fullProblem().hash());
}

TEST(ProblemTest, EveryFieldTellsProblemsApart) {
  const Problem base = fullProblem();
  std::unordered_set<std::size_t> hashes{base.hash()};
  for (const Change& change : changes()) {
    Problem changed = base;
    change.apply(changed);
    EXPECT_NE(changed, base) << change.field;
    EXPECT_TRUE(hashes.insert(changed.hash()).second) << change.field;
  }
}

// The hot table takes the hash's lowest bits.
TEST(ProblemTest, LowBitsOfTheHashSpread) {
  constexpr std::size_t kProblems = 256, kSlots = 1024;
  std::set<std::size_t> slots;
  for (std::size_t i = 0; i < kProblems; ++i)
    slots.insert(sampleProblem(Operation::kForward,
                               2 + static_cast<int>(i % 16),
                               1 + static_cast<int>(i / 16))
                     .hash() %
                 kSlots);
  // 1024 (1 - (1 - 1/1024)^256) = 227 are expected of a random function; its deviation is 5.
  EXPECT_GT(slots.size(), 200u);
}

TEST(ProblemTest, TextTellsEveryFieldApartButTheBatch) {
  const Problem base = fullProblem();
  std::set<std::string> texts{base.text()};
  for (const Change& change : changes()) {
    Problem changed = base;
    change.apply(changed);
    if (change.isBatch)
      EXPECT_EQ(changed.text(), base.text()) << change.field;
    else
      EXPECT_TRUE(texts.insert(changed.text()).second) << change.field << ": " << changed.text();
  }
}

TEST(ProblemTest, TextIsReadable) {
  EXPECT_EQ(sampleProblem(Operation::kBackwardData).text(),
            "backward_data x=float:*,4,9,8/288,72,8,1 w=float:4,4,3,3/nchw "
            "y=float:*,4,9,8/288,72,8,1 pad=1,1 stride=1,1 dilation=1,1 groups=1 "
            "cross_correlation compute=float math=fma");
}

// A database knows problems by their texts: those of before must find what was measured.
TEST(ProblemTest, TextNamesWhatKernelsMayDoOnlyWhereItIsUnusual) {
  Problem problem = sampleProblem(Operation::kBiasActivationForward);
  problem.activation = CUDNN_ACTIVATION_RELU;
  const std::string before =
      "bias_activation_forward x=float:*,4,9,8/288,72,8,1 w=float:4,4,3,3/nchw "
      "y=float:*,4,9,8/288,72,8,1 pad=1,1 stride=1,1 dilation=1,1 groups=1 "
      "cross_correlation compute=float math=fma activation=1 adds_z=0";
  EXPECT_EQ(problem.text(), before);
  problem.transform = Transform::kFourier;
  EXPECT_EQ(problem.text(), before + " transform=fourier");
  problem.transform = Transform::kNone;
  EXPECT_EQ(problem.text(), before + " transform=none");
  problem.reducedSums = 1;
  EXPECT_EQ(problem.text(), before + " transform=none sums=reduced");
}

TEST(ProblemTest, AllowsTransformsThatAreNoLessExact) {
  using T = Transform;
  Problem problem;
  const auto allowed = [&](Transform least) {
    problem.transform = least;
    return std::vector<bool>{
        problem.allows(T::kWinograd), problem.allows(T::kFourier), problem.allows(T::kNone)};
  };
  EXPECT_EQ(allowed(Problem().transform), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(allowed(T::kFourier), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(allowed(T::kNone), (std::vector<bool>{false, false, true}));
}

TEST(ProblemTest, WithBatchChangesTheBatchAlone) {
  const Problem base = fullProblem();
  const Problem smaller = base.withBatch(3);
  EXPECT_EQ(smaller.batch(), 3);
  EXPECT_EQ(smaller.ySizes[0], 3);
  EXPECT_NE(smaller, base);
  EXPECT_EQ(smaller.withBatch(base.batch()), base);
  EXPECT_EQ(smaller.text(), base.text());
}

TEST(ProblemTest, FiltersArePackedInTheirFormat) {
  Problem problem = sampleProblem();
  problem.wSizes = {5, 2, 3, 7};
  EXPECT_EQ(problem.wStrides(), (Problem::FilterStrides{42, 21, 7, 1, 0}));
  problem.wFormat = CUDNN_TENSOR_NHWC;
  EXPECT_EQ(problem.wStrides(), (Problem::FilterStrides{42, 1, 14, 2, 0}));
  problem.dimensions = 5;
  problem.wSizes = {5, 2, 3, 7, 4};
  EXPECT_EQ(problem.wStrides(), (Problem::FilterStrides{168, 1, 56, 8, 2}));
  problem.wFormat = CUDNN_TENSOR_NCHW;
  EXPECT_EQ(problem.wStrides(), (Problem::FilterStrides{168, 84, 28, 4, 1}));
}

TEST(ProblemTest, BytesFollowStridesAndTypes) {
  Problem problem = sampleProblem(Operation::kForward, 8, 4);
  EXPECT_EQ(problem.xBytes(), 8u * 4 * 9 * 8 * 4);
  EXPECT_EQ(problem.xBatchStrideBytes(), 4u * 9 * 8 * 4);
  EXPECT_EQ(problem.wBytes(), 4u * 4 * 3 * 3 * 4);

  // Every second sample of a larger tensor: the last one ends where its own elements do.
  problem.xStrides[0] *= 2;
  EXPECT_EQ(problem.xBatchStrideBytes(), 2u * 4 * 9 * 8 * 4);
  EXPECT_EQ(problem.xBytes(), (7u * 2 + 1) * 4 * 9 * 8 * 4);

  problem.yType = CUDNN_DATA_DOUBLE;
  problem.wType = CUDNN_DATA_HALF;
  EXPECT_EQ(problem.yBytes(), 8u * 4 * 9 * 8 * 8);
  EXPECT_EQ(problem.yBatchStrideBytes(), 4u * 9 * 8 * 8);
  EXPECT_EQ(problem.wBytes(), 4u * 4 * 3 * 3 * 2);
}

TEST(ProblemTest, SizesBeyond32BitsDoNotWrap) {
  Problem problem = sampleProblem(Operation::kForward, 65536, 4);
  problem.xStrides[0] = 1 << 20;
  EXPECT_EQ(problem.xBytes(), ((std::size_t{65535} << 20) + 4 * 9 * 8) * 4);
}

/// One volume of four channels, each of so many elements.
Problem volume(std::int64_t channelStride) {
  Problem problem = sampleProblem(Operation::kForward, 1, 4);
  problem.xStrides = problem.yStrides = {4 * channelStride, channelStride, 8, 1, 0};
  return problem;
}

TEST(ProblemTest, LargeIsWhatSpansMoreThanAnIntCounts) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  Problem problem = sampleProblem(Operation::kForward, 2, 4);
  const std::int64_t sample = 4 * 9 * 8;
  problem.xStrides[0] = kMost - sample;
  EXPECT_FALSE(problem.isLarge());
  problem.xStrides[0] = kMost - sample + 1;
  EXPECT_TRUE(problem.isLarge());
  EXPECT_FALSE(problem.withBatch(1).isLarge());
  std::swap(problem.xStrides, problem.yStrides);
  EXPECT_TRUE(problem.isLarge());
  Problem filters = sampleProblem();
  filters.wSizes = {1 << 14, 1 << 14, 7, 1, 0};
  EXPECT_FALSE(filters.isLarge());
  filters.wSizes[2] = 8;
  EXPECT_TRUE(filters.isLarge());
}

/// Volumes that differ beyond 32 bits are two problems.
TEST(ProblemTest, StridesHave64Bits) {
  const Problem small = volume(72), large = volume((std::int64_t{1} << 33) + 72);
  EXPECT_NE(small, large);
  EXPECT_NE(small.hash(), large.hash());
  EXPECT_EQ(large.xBytes(), (3 * ((std::size_t{1} << 33) + 72) + 72) * sizeof(float));
  EXPECT_NE(large.text().find("4,9,8/34359738656,8589934664,8,1 "), std::string::npos)
      << large.text();
}

TEST(ProblemTest, MultiplyAddsCountEveryTap) {
  EXPECT_DOUBLE_EQ(sampleProblem(Operation::kForward, 8, 4).multiplyAdds(),
                   8.0 * 4 * 9 * 8 * (4 * 3 * 3));
}

TEST(ProblemTest, ElementBytesKnowTheFourPlannedTypes) {
  EXPECT_EQ(elementBytes(CUDNN_DATA_FLOAT), 4u);
  EXPECT_EQ(elementBytes(CUDNN_DATA_HALF), 2u);
  EXPECT_EQ(elementBytes(CUDNN_DATA_BFLOAT16), 2u);
  EXPECT_EQ(elementBytes(CUDNN_DATA_DOUBLE), 8u);
  for (const int type : {CUDNN_DATA_INT8, CUDNN_DATA_INT32, CUDNN_DATA_INT8x4, CUDNN_DATA_INT64})
    EXPECT_EQ(elementBytes(type), 0u) << type;
}

TEST(ProblemTest, OperationsHaveNames) {
  EXPECT_STREQ(toText(Operation::kForward), "forward");
  EXPECT_STREQ(toText(Operation::kBackwardData), "backward_data");
  EXPECT_STREQ(toText(Operation::kBackwardFilter), "backward_filter");
  EXPECT_STREQ(toText(Operation::kBiasActivationForward), "bias_activation_forward");
}

TEST(ProblemTest, OnlyADenseOutputIsOverwrittenSampleBySample) {
  Problem forward = fullProblem();
  forward.operation = Operation::kForward;
  const std::size_t yBytes = 2160 * sizeof(float), xBytes = 1260 * sizeof(float);
  EXPECT_EQ(yBytes, forward.overwrittenSampleBytes());
  Problem backward = forward;
  backward.operation = Operation::kBackwardData;
  EXPECT_EQ(xBytes, backward.overwrittenSampleBytes());
  Problem half = forward;
  half.yType = CUDNN_DATA_HALF;
  EXPECT_EQ(yBytes / 2, half.overwrittenSampleBytes());
  Problem last = forward;
  last.yStrides = {2160, 1, 432, 48, 6};
  EXPECT_EQ(yBytes, last.overwrittenSampleBytes());
  Problem one = forward;  // what its stride is says nothing
  one.ySizes = {8, 1, 5, 9, 8};
  one.yStrides = {360, 7, 72, 8, 1};
  EXPECT_EQ(360 * sizeof(float), one.overwrittenSampleBytes());

  for (Operation other : {Operation::kBackwardFilter, Operation::kBiasActivationForward}) {
    Problem problem = forward;
    problem.operation = other;
    EXPECT_EQ(0U, problem.overwrittenSampleBytes()) << toText(other);
  }
  const std::vector<Problem::Strides> gaps = {
      {2161, 360, 72, 8, 1},    // between samples
      {2592, 432, 72, 8, 1},    // between channels
      {4320, 720, 144, 16, 2},  // between pixels
      {72, 360, 72, 8, 1},      // samples overlap
      {2160, 0, 72, 8, 1},      // channels do
  };
  for (const Problem::Strides& strides : gaps) {
    Problem problem = forward;
    problem.yStrides = strides;
    EXPECT_EQ(0U, problem.overwrittenSampleBytes());
  }
}

}  // namespace
}  // namespace ucudnn
