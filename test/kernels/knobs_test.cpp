// Variants of an engine: other knobs.
#include "kernels/knobs.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "engines_fixture.hpp"

namespace ucudnn {
namespace {

using namespace test;

constexpr int kTile = 2, kSplits = 0, kTexture = 3;

std::set<std::int64_t> choices(const std::vector<EngineConfiguration>& values, std::size_t knob) {
  std::set<std::int64_t> all;
  for (const EngineConfiguration& value : values) all.insert(value.knobs.at(knob).second);
  return all;
}

TEST(KnobsTest, WhatNamesSomethingHasAllItsOtherNames) {
  const EngineConfiguration value{28, {{kTile, 2}, {kTexture, 0}}};
  const auto variants = withOtherKnobs(value, {{kTexture, 0, 1, 1}, {kTile, 0, 6, 2}});
  ASSERT_EQ(variants.size(), 2U);
  EXPECT_EQ(choices(variants[0], 0), (std::set<std::int64_t>{0, 4, 6}));
  EXPECT_EQ(choices(variants[0], 1), (std::set<std::int64_t>{0}));
  EXPECT_EQ(choices(variants[1], 1), (std::set<std::int64_t>{1}));
  EXPECT_EQ(choices(variants[1], 0), (std::set<std::int64_t>{2}));
}

TEST(KnobsTest, WhatCountsHasAFewNumbersWithinItsRange) {
  const EngineConfiguration value{34, {{kSplits, 120}}, 1, 1, 4};
  const auto variants = withOtherKnobs(value, {{kSplits, 1, 200, 1}});
  ASSERT_EQ(variants.size(), 1U);
  EXPECT_EQ(choices(variants[0], 0),
            (std::set<std::int64_t>{1, 2, 4, 8, 60, 64, 90, 108, 128, 132, 160}));
  for (const EngineConfiguration& variant : variants[0]) EXPECT_EQ(variant.sums, 4);
}

TEST(KnobsTest, AKnobOfAnyNumberHasAFew) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const EngineConfiguration value{34, {{kSplits, 3}}};
  const auto variants = withOtherKnobs(value, {{kSplits, 0, kMost, 1}});
  ASSERT_EQ(variants.size(), 1U);
  EXPECT_EQ(choices(variants[0], 0), (std::set<std::int64_t>{1, 2, 4, 6, 8}));
}

TEST(KnobsTest, WithoutRangesThereAreNone) {
  const auto variants = withOtherKnobs({34, {{kSplits, 120}}}, {{kTile, 0, 6, 1}});
  ASSERT_EQ(variants.size(), 1U);
  EXPECT_TRUE(variants[0].empty());
  EXPECT_TRUE(withOtherKnobs({50, {}}, {{kTile, 0, 6, 1}}).empty());
}

using EngineVariantsTest = EnginesTest;

/// For each operation some variants can be configured that no heuristic proposes.
TEST_F(EngineVariantsTest, SomeExistAndAreOfTheSameKind) {
  const auto source = makeEngineSource();
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
    SCOPED_TRACE(toText(operation));
    const Problem problem = convolution(operation, 64, 64, 192, 27, 5);
    const OperationGraph graph(device_, problem, 0, kEngineAlignment);
    int existing = 0;
    for (const KernelOffer& offer : offers(problem))
      for (const auto& knob : engineVariants(device_, problem, offer.kernel))
        for (const Kernel variant : knob) {
          EXPECT_FALSE(variant == offer.kernel);
          EXPECT_EQ(source->kind(variant), source->kind(offer.kernel));
          try {
            graph.configuration(device_, engineConfigurationOf(variant.id));
            ++existing;
          } catch (const Error& error) {
            EXPECT_TRUE(isRefusal(error.status())) << error.what();
          }
        }
    EXPECT_LT(20, existing);
  }
}

}  // namespace
}  // namespace ucudnn
