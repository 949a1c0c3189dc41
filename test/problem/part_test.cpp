// Parts of random convolutions, computed one after another by a plain loop in double, against the
// whole. All numbers are small integers, so that sums are exact in any order.
#include "problem/part.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "property/random.hpp"
#include "support/problems.hpp"

namespace ucudnn {
namespace {

using test::Random;

constexpr int kProblems = 10'000;

/// Elements of one tensor, of whatever type, as doubles.
struct Memory {
  std::vector<double> x, w, y, z, bias;
  bool operator==(const Memory& other) const {
    return x == other.x && w == other.w && y == other.y;
  }
};

/// A convolution on memory.
class Reference {
 public:
  Reference(const Part& part, Memory& memory, double beta)
      : p_(part.problem),
        wStrides_(part.wStrides),
        memory_(memory),
        beta_(part.offsets.adds ? 1 : beta),
        x_(elements(part.offsets.x, p_.xType)),
        w_(elements(part.offsets.w, p_.wType)),
        y_(elements(part.offsets.y, p_.yType)) {}

  void run() {
    scale();
    for (int n = 0; n < p_.ySizes[0]; ++n)
      for (int k = 0; k < p_.ySizes[1]; ++k)
        for (int c = 0; c < p_.wSizes[1]; ++c)
          for (int d = 0; d < size(p_.ySizes, 2); ++d)
            for (int h = 0; h < size(p_.ySizes, 3); ++h)
              for (int v = 0; v < size(p_.ySizes, 4); ++v) multiply(n, k, c, {d, h, v});
    if (p_.operation == Operation::kBiasActivationForward) activate();
  }

 private:
  using Place = std::array<int, 5>;

  std::size_t elements(std::size_t bytes, std::int32_t type) {
    EXPECT_EQ(bytes % elementBytes(type), 0U);
    return bytes / elementBytes(type);
  }
  int size(const Problem::Sizes& sizes, int dimension) const {
    return dimension < p_.dimensions ? sizes[dimension] : 1;
  }
  template <typename Strides>
  static std::size_t at(std::size_t first, const Strides& strides, const Place& place) {
    for (std::size_t i = 0; i < place.size(); ++i)
      first += static_cast<std::size_t>(place[i]) * static_cast<std::size_t>(strides[i]);
    return first;
  }

  void multiply(int n, int k, int c, const std::array<int, 3>& pixel) {
    const int ofGroup = k / (p_.ySizes[1] / p_.groups) * p_.wSizes[1];
    const std::size_t y = at(y_, p_.yStrides, {n, k, pixel[0], pixel[1], pixel[2]});
    std::array<int, 3> tap{};
    for (tap[0] = 0; tap[0] < size(p_.wSizes, 2); ++tap[0])
      for (tap[1] = 0; tap[1] < size(p_.wSizes, 3); ++tap[1])
        for (tap[2] = 0; tap[2] < size(p_.wSizes, 4); ++tap[2]) {
          Place inX{n, ofGroup + c}, inW{k, c};
          bool isInX = true;
          for (int i = 0; i < p_.dimensions - 2; ++i) {
            const auto j = static_cast<std::size_t>(i);
            inX[j + 2] = pixel[j] * p_.strides[j] - p_.pads[j] + tap[j] * p_.dilations[j];
            isInX = isInX && inX[j + 2] >= 0 && inX[j + 2] < p_.xSizes[j + 2];
            inW[j + 2] = p_.mode == CUDNN_CONVOLUTION ? p_.wSizes[j + 2] - 1 - tap[j] : tap[j];
          }
          if (isInX) add(at(x_, p_.xStrides, inX), at(w_, wStrides_, inW), y);
        }
  }
  void add(std::size_t x, std::size_t w, std::size_t y) {
    if (p_.operation == Operation::kBackwardData)
      memory_.x.at(x) += memory_.w.at(w) * memory_.y.at(y);
    else if (p_.operation == Operation::kBackwardFilter)
      memory_.w.at(w) += memory_.x.at(x) * memory_.y.at(y);
    else
      memory_.y.at(y) += memory_.x.at(x) * memory_.w.at(w);
  }

  template <typename Strides, typename Use>
  void forEach(const Problem::Sizes& sizes, const Strides& strides, std::size_t first, Use use) {
    Place i{};
    for (i[0] = 0; i[0] < sizes[0]; ++i[0])
      for (i[1] = 0; i[1] < sizes[1]; ++i[1])
        for (i[2] = 0; i[2] < size(sizes, 2); ++i[2])
          for (i[3] = 0; i[3] < size(sizes, 3); ++i[3])
            for (i[4] = 0; i[4] < size(sizes, 4); ++i[4])
              use(at(first, strides, i), static_cast<std::size_t>(i[1]));
  }
  void scale() {
    const auto by = [&](std::vector<double>& output) {
      return [&](std::size_t place, std::size_t) { output.at(place) *= beta_; };
    };
    if (p_.operation == Operation::kBackwardData)
      forEach(p_.xSizes, p_.xStrides, x_, by(memory_.x));
    else if (p_.operation == Operation::kBackwardFilter)
      forEach(p_.wSizes, wStrides_, w_, by(memory_.w));
    else if (p_.operation == Operation::kForward)
      forEach(p_.ySizes, p_.yStrides, y_, by(memory_.y));
    else
      forEach(p_.ySizes, p_.yStrides, y_, [&](std::size_t i, std::size_t) {
        memory_.y.at(i) = beta_ * memory_.z.at(i);
      });
  }
  void activate() {
    forEach(p_.ySizes, p_.yStrides, y_, [&](std::size_t i, std::size_t channel) {
      memory_.y.at(i) = std::max(0.0, memory_.y.at(i) + memory_.bias.at(channel));
    });
  }

  const Problem& p_;
  const Problem::FilterStrides& wStrides_;
  Memory& memory_;
  const double beta_;
  const std::size_t x_, w_, y_;
};

int extent(const Problem& problem, std::size_t spatial) {
  return (problem.wSizes[spatial + 2] - 1) * problem.dilations[spatial] + 1;
}

/// Strides, sometimes with gaps.
Problem::Strides layOut(Random& random, const Problem& problem, const Problem::Sizes& sizes) {
  Problem::Strides strides{};
  std::int64_t next = 1;
  const auto pack = [&](int i) {
    strides[i] = next;
    next = next * sizes[i] + (random.chance(0.1) ? random.between(1, 3) : 0);
  };
  const bool isChannelsLast = random.chance(0.4);
  if (isChannelsLast) pack(1);
  for (int i = problem.dimensions - 1; i > 1; --i) pack(i);
  if (!isChannelsLast) pack(1);
  pack(0);
  return strides;
}

Problem randomProblem(Random& random) {
  Problem problem;
  problem.operation = random.pick({Operation::kForward,
                                   Operation::kBackwardData,
                                   Operation::kBackwardFilter,
                                   Operation::kBiasActivationForward});
  problem.dimensions = random.between(3, 5);
  const auto type = [&] {
    return random.pick({CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_DOUBLE});
  };
  problem.xType = type(), problem.wType = type(), problem.yType = type();
  problem.wFormat = random.pick({CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC});
  problem.mode = random.pick({CUDNN_CROSS_CORRELATION, CUDNN_CONVOLUTION});
  problem.groups = random.pick({1, 1, 2, 3});
  problem.addsZ = 1;
  problem.xSizes[0] = problem.ySizes[0] = random.between(1, 4);
  problem.wSizes[1] = random.between(1, 3);
  problem.xSizes[1] = problem.wSizes[1] * problem.groups;
  problem.wSizes[0] = problem.ySizes[1] = problem.groups * random.between(1, 3);
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(problem.dimensions); ++i) {
    const int most = problem.dimensions == 5 ? 5 : problem.dimensions == 4 ? 7 : 20;
    problem.wSizes[i + 2] = random.between(1, problem.dimensions == 3 ? 5 : 3);
    problem.strides[i] = random.between(1, 4);
    problem.dilations[i] = random.pick({1, 1, 2, 3});
    problem.pads[i] = random.between(0, random.chance(0.1) ? 6 : extent(problem, i) - 1);
    const int least = std::max(1, extent(problem, i) - 2 * problem.pads[i]);
    problem.xSizes[i + 2] = random.between(least, std::max(least, most));
    problem.ySizes[i + 2] =
        (problem.xSizes[i + 2] + 2 * problem.pads[i] - extent(problem, i)) / problem.strides[i] + 1;
  }
  problem.xStrides = layOut(random, problem, problem.xSizes);
  problem.yStrides = layOut(random, problem, problem.ySizes);
  return problem;
}

Memory randomMemory(Random& random, const Problem& problem) {
  const auto numbers = [&](std::size_t bytes, std::int32_t type) {
    std::vector<double> values(bytes / elementBytes(type));
    for (double& value : values) value = random.between(-4, 4);
    return values;
  };
  return {numbers(problem.xBytes(), problem.xType),
          numbers(problem.wBytes(), problem.wType),
          numbers(problem.yBytes(), problem.yType),
          numbers(problem.yBytes(), problem.yType),
          numbers(64, CUDNN_DATA_HALF)};
}

/// All of a size, in one to four ranges.
std::vector<Range> rangesOf(Random& random, std::int32_t size) {
  std::vector<Range> ranges;
  for (std::int32_t first = 0; first < size; first = ranges.back().end()) {
    const std::int32_t left = size - first;
    ranges.push_back({first, ranges.size() == 3 ? left : random.between(1, (left + 1) / 2)});
  }
  return ranges;
}

/// The part itself, or parts of it, and perhaps of these.
class RandomCut {
 public:
  RandomCut(Random& random, int depth) : random_(random), depth_(depth) {}

  std::vector<Part> partsOf(const Part& whole) {
    parts_.clear();
    takenInto_.clear();
    add(whole, depth_);
    return std::move(parts_);
  }
  const std::string& directions() const { return takenInto_; }

 private:
  void add(const Part& whole, int depth) {
    if (depth == 0) {
      parts_.push_back(whole);
      return;
    }
    const Problem& problem = whole.problem;
    const bool isFused = problem.operation == Operation::kBiasActivationForward;
    std::vector<Direction> directions{Direction::kBatch};
    if (!isFused) directions.push_back(Direction::kGroups);
    if (!isFused && problem.groups == 1)
      directions.insert(directions.end(), {Direction::kFilters, Direction::kChannels});
    const std::size_t spatials = static_cast<std::size_t>(problem.dimensions) - 2;
    const std::size_t chosen = random_.below(directions.size() + 2 * spatials);
    const bool isSpatial = chosen >= directions.size();
    const std::size_t spatial = (chosen - directions.size()) % spatials;
    takenInto_ += isSpatial ? " spatial " + std::to_string(spatial)
                            : " direction " + std::to_string(static_cast<int>(directions[chosen]));
    const Problem::Sizes& output =
        problem.operation == Operation::kBackwardData ? problem.xSizes : problem.ySizes;
    const std::int32_t size = isSpatial ? output[spatial + 2] : sizeOf(problem, directions[chosen]);
    for (const Range range : rangesOf(random_, size))
      add(isSpatial ? cutBand(whole, spatial, range) : cut(whole, directions[chosen], range),
          depth - 1);
  }

  Random& random_;
  const int depth_;
  std::vector<Part> parts_;
  std::string takenInto_;
};

/// Expects cuDNN's conditions for a convolution's descriptors, except for a band that sees only the
/// padding.
void expectConvolution(const Part& part) {
  const Problem& problem = part.problem;
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(problem.dimensions); ++i) {
    EXPECT_GT(problem.ySizes[i + 2], 0);
    EXPECT_GE(part.padsAfter[i], 0);
    if (problem.xSizes[i + 2] == 0) continue;
    EXPECT_GE(problem.pads[i], 0);
    const int padded = problem.xSizes[i + 2] + problem.pads[i] + part.padsAfter[i];
    EXPECT_EQ(problem.ySizes[i + 2], (padded - extent(problem, i)) / problem.strides[i] + 1);
  }
}

/// Compares all parts of random problems that are cut so deep with the whole.
void compare(int problems, int depth) {
  Random random(static_cast<std::uint64_t>(depth));
  int divided = 0;
  for (int i = 0; i < problems && !::testing::Test::HasFailure(); ++i) {
    const Part whole(randomProblem(random));
    RandomCut cut(random, depth);
    const std::vector<Part> parts = cut.partsOf(whole);
    SCOPED_TRACE(whole.problem.text() + " N=" + std::to_string(whole.problem.batch()) + " in" +
                 cut.directions());
    Memory expected = randomMemory(random, whole.problem);
    Memory result = expected;
    const double beta = random.between(0, 2);
    Reference(whole, expected, beta).run();
    for (const Part& part : parts) {
      expectConvolution(part);
      Reference(part, result, beta).run();
    }
    EXPECT_TRUE(result == expected);
    if (parts.size() > 1) ++divided;
  }
  EXPECT_GT(divided, problems / 2);
}

TEST(PartTest, PartsInAnyDirectionAreTheWhole) {
  compare(kProblems, 1);
}

TEST(PartTest, PartsOfPartsAreTheWhole) {
  compare(kProblems / 4, 2);
  compare(kProblems / 8, 3);
}

/// Neighbouring bands of dy reach the same rows of dx, and add up there.
TEST(PartTest, WhatBandsOfYReachInXAddsUp) {
  Random random(1);
  int overlapping = 0;
  for (int i = 0; i < kProblems / 4 && !HasFailure(); ++i) {
    Problem problem = randomProblem(random);
    problem.operation = Operation::kBackwardData;
    SCOPED_TRACE(problem.text());
    const std::size_t spatial = random.below(static_cast<std::size_t>(problem.dimensions) - 2);
    Memory expected = randomMemory(random, problem);
    Memory result = expected;
    const Part whole(problem);
    Reference(whole, expected, 1).run();
    Range before;
    for (const Range y : rangesOf(random, problem.ySizes[spatial + 2])) {
      const Range x = rangeOfX(problem, spatial, y);
      Reference(cutSpatial(whole, spatial, x, y), result, 1).run();
      if (before.end() > x.first) ++overlapping;
      before = x;
    }
    EXPECT_TRUE(result == expected);
  }
  EXPECT_GT(overlapping, kProblems / 10);
}

Problem padded(Operation operation) {
  Problem problem = test::sampleProblem(operation);  // 3x3 with a pad of 1, 9 rows
  problem.strides[0] = 2;
  problem.ySizes[2] = 5;
  return problem;
}

TEST(PartTest, BandsHaveTheHaloAndThePaddingOfTheirOwn) {
  const Part whole(padded(Operation::kForward));
  const auto rowsOf = [&](Range band) {
    const Part part = cutBand(whole, 0, band);
    return std::vector<int>{part.problem.ySizes[2],
                            part.problem.xSizes[2],
                            part.problem.pads[0],
                            part.padsAfter[0],
                            static_cast<int>(part.offsets.x / sizeof(float)) / 8};
  };
  EXPECT_EQ(rowsOf({0, 2}), (std::vector<int>{2, 4, 1, 0, 0}));
  EXPECT_EQ(rowsOf({2, 2}), (std::vector<int>{2, 5, 0, 0, 3}));
  EXPECT_EQ(rowsOf({4, 1}), (std::vector<int>{1, 2, 0, 1, 7}));
  EXPECT_EQ(rowsOf({0, 5}), (std::vector<int>{5, 9, 1, 1, 0}));
}

/// An even row of dx is in the middle of a row of dy's taps, an odd one in two rows' taps.
TEST(PartTest, ABandOfDxHasTheRowsOfDyThatReachIt) {
  const Problem problem = padded(Operation::kBackwardData);
  const auto reaching = [&](Range x) {
    const Range y = rangeOfY(problem, 0, x);
    return std::pair(y.first, y.count);
  };
  EXPECT_EQ(reaching({0, 1}), std::pair(0, 1));
  EXPECT_EQ(reaching({1, 1}), std::pair(0, 2));
  EXPECT_EQ(reaching({2, 1}), std::pair(1, 1));
  EXPECT_EQ(reaching({2, 3}), std::pair(1, 2));
  EXPECT_EQ(reaching({8, 1}), std::pair(4, 1));
}

TEST(PartTest, OnlyPartsOfOneOutputAdd) {
  using Adding = std::pair<Operation, Direction>;
  const std::vector<Adding> adding{{Operation::kForward, Direction::kChannels},
                                   {Operation::kBackwardData, Direction::kFilters},
                                   {Operation::kBackwardFilter, Direction::kBatch}};
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter})
    for (const Direction direction :
         {Direction::kBatch, Direction::kGroups, Direction::kFilters, Direction::kChannels}) {
      Problem problem = test::sampleProblem(operation);
      if (direction == Direction::kGroups) {
        problem.groups = 4;
        problem.wSizes[1] = 1;
      }
      const auto parts = cutEqually(Part(problem), direction, 4);
      ASSERT_EQ(parts.size(), 4U);
      const bool adds =
          std::find(adding.begin(), adding.end(), Adding(operation, direction)) != adding.end();
      EXPECT_FALSE(parts[0].offsets.adds);
      for (std::size_t i = 1; i < 4; ++i)
        EXPECT_EQ(parts[i].offsets.adds, adds)
            << toText(operation) << " " << static_cast<int>(direction);
    }
}

TEST(PartTest, ASamplesOffsetsAreThoseOfThePartThatBeginsWithIt) {
  for (const Operation operation : {Operation::kForward, Operation::kBackwardFilter}) {
    const Problem problem = test::sampleProblem(operation, 8, 4, CUDNN_DATA_HALF);
    for (const int sample : {0, 5}) {
      const Offsets part = cut(Part(problem), Direction::kBatch, {sample, 2}).offsets;
      const Offsets offsets = offsetsOfSample(problem, sample);
      EXPECT_EQ(std::tie(offsets.x, offsets.w, offsets.y, offsets.adds),
                std::tie(part.x, part.w, part.y, part.adds));
    }
  }
}

/// 2 x 4 x 4096 x 2048 x 1024 elements of two bytes, in groups of two channels: 64 GiB a sample.
TEST(PartTest, OffsetsHave64Bits) {
  Problem problem = test::sampleProblem(Operation::kForward, 2, 4, CUDNN_DATA_HALF);
  constexpr std::int64_t kRow = 1024, kSlice = 2048 * kRow, kChannel = 4096 * kSlice;
  constexpr std::size_t kGibibyte = std::size_t{1} << 30;
  problem.dimensions = 5;
  problem.xSizes = problem.ySizes = {2, 4, 4096, 2048, 1024};
  problem.xStrides = problem.yStrides = {4 * kChannel, kChannel, kSlice, kRow, 1};
  problem.wSizes = {4, 2, 3, 3, 3};
  problem.groups = 2;
  problem.pads = problem.strides = problem.dilations = {1, 1, 1};
  const Part sample = cut(Part(problem), Direction::kBatch, {1, 1});
  EXPECT_EQ(sample.offsets.x, 64 * kGibibyte);
  EXPECT_EQ(sample.offsets.y, 64 * kGibibyte);
  const Part group = cut(sample, Direction::kGroups, {1, 1});
  EXPECT_EQ(group.offsets.x, 96 * kGibibyte);
  EXPECT_EQ(group.offsets.w, 2U * 2 * 27 * 2);
  const Part band = cutBand(group, 0, {2048, 512});
  EXPECT_EQ(band.offsets.x, 96 * kGibibyte + 2047U * kSlice * 2);
  EXPECT_EQ(band.offsets.y, 104 * kGibibyte);
  EXPECT_TRUE(band.problem.isLarge()) << "its channels are 2^33 elements apart";
  problem.operation = Operation::kBackwardData;
  const Part input = cutBand(Part(problem), 0, {4000, 96});
  EXPECT_EQ(input.offsets.x, 4000U * kSlice * 2);
  EXPECT_EQ(input.offsets.y, 3999U * kSlice * 2);
  EXPECT_EQ(offsetsOfSample(problem, 1).x, 64 * kGibibyte);
}

}  // namespace
}  // namespace ucudnn
