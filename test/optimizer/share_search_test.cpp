// Shares that are found with few plans against those of a whole table.
#include "optimizer/share_search.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <utility>

namespace ucudnn {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Plans by a function of kind and samples, and counts.
class Planned {
 public:
  explicit Planned(std::function<double(std::size_t kind, int samples)> ms) : ms_(std::move(ms)) {}

  ShareSearch search(std::vector<Participant> participants, int samples) {
    return {std::move(participants), samples, [this](const std::vector<StepQuestion>& questions) {
              std::vector<StepPlan> plans;
              for (const StepQuestion& q : questions) {
                EXPECT_TRUE(asked_.insert({q.kind, q.samples}).second) << "asked twice";
                plans.push_back({ms_(q.kind, q.samples), static_cast<std::size_t>(q.samples)});
              }
              return plans;
            }};
  }
  /// From a table of all numbers of samples.
  std::optional<Shares> best(const std::vector<Participant>& participants, int samples) const {
    std::vector<ShareDevice> devices;
    for (const Participant& one : participants) {
      devices.push_back({{0}, one.rest, one.mostSamples});
      for (int i = 1; i <= samples; ++i) devices.back().timesMs.push_back(ms_(one.kind, i));
    }
    return fastestShares(devices, samples, 0);
  }
  std::size_t asked() const { return asked_.size(); }

 private:
  std::function<double(std::size_t, int)> ms_;
  std::set<std::pair<std::size_t, int>> asked_;
};

const std::vector<Participant> kTwoKinds = {{0, 256, {}}, {1, 256, {}}};

TEST(ShareSearchTest, PlansFewAndFindsTheBest) {
  Planned planned(
      [](std::size_t kind, int samples) { return (kind == 0 ? 3 : 1) * (5. + samples); });
  const auto found = planned.search(kTwoKinds, 256).find(0);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->best.stepMs, planned.best(kTwoKinds, 256)->stepMs, 0.01 * found->best.stepMs);
  EXPECT_LT(planned.asked(), 20U);
  EXPECT_EQ(found->best.plans[0]->workspaceBytes, static_cast<std::size_t>(found->best.samples[0]));
  ASSERT_TRUE(found->equal);
  EXPECT_DOUBLE_EQ(found->equal->stepMs, 3 * 133);
  EXPECT_DOUBLE_EQ(*found->aloneMs[1], 261);
  EXPECT_DOUBLE_EQ(found->plannedMs[0].at(64), 3 * 69);
  EXPECT_DOUBLE_EQ(found->plannedMs[1].at(found->best.samples[1]), 5 + found->best.samples[1]);
}

TEST(ShareSearchTest, GoesRoundACliff) {
  // Kernels change at 160 samples: interpolation expects 192 to be the faster one's share.
  Planned planned([](std::size_t kind, int samples) {
    return (kind == 0 ? 3 : 1) * samples + (kind == 1 && samples > 160 ? 300. : 0.);
  });
  const auto found = planned.search(kTwoKinds, 256).find(0);
  ASSERT_TRUE(found);
  EXPECT_LE(found->best.samples[1], 160);
  EXPECT_NEAR(found->best.stepMs, planned.best(kTwoKinds, 256)->stepMs, 0.1 * found->best.stepMs);
}

TEST(ShareSearchTest, ARestIsCountedFromThenOn) {
  Planned planned([](std::size_t, int samples) { return 1. * samples; });
  ShareSearch search = planned.search({{0, 100, {}}, {0, 100, {}}}, 100);
  EXPECT_EQ(search.find(0)->best.samples, (std::vector<int>{50, 50}));
  search.setRest(1, {10, 1});
  const auto found = search.find(0);
  EXPECT_EQ(found->best.samples, (std::vector<int>{70, 30}));
  EXPECT_DOUBLE_EQ(found->best.stepMs, 70);
  EXPECT_DOUBLE_EQ(*found->aloneMs[1], 210);
}

TEST(ShareSearchTest, WhatADeviceCannotRunIsNotItsShare) {
  Planned planned(
      [](std::size_t kind, int samples) { return kind == 0 && samples > 64 ? kNever : samples; });
  const auto found = planned.search(kTwoKinds, 256).find(0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->best.samples, (std::vector<int>{64, 192}));
  EXPECT_FALSE(found->equal);
  EXPECT_FALSE(found->aloneMs[0]);
  EXPECT_TRUE(found->aloneMs[1]);
  Planned none([](std::size_t, int samples) { return samples > 64 ? kNever : samples; });
  EXPECT_FALSE(none.search(kTwoKinds, 256).find(0));
}

TEST(ShareSearchTest, MoreDevicesThanSamples) {
  Planned planned([](std::size_t, int samples) { return 1. * samples; });
  const auto found = planned.search(std::vector<Participant>(4, {0, 3, {}}), 3).find(0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->best.samples, (std::vector<int>{1, 1, 1, 0}));
}

TEST(StepRestTest, IsALineThroughTimedSteps) {
  EXPECT_EQ(restOf({}), (StepRest{0, 0}));
  EXPECT_EQ(restOf({{64, 3.0}}), (StepRest{3, 0}));
  const StepRest two = restOf({{64, 3.0}, {128, 5.0}});
  EXPECT_DOUBLE_EQ(two.of(96), 4);
  const StepRest three = restOf({{0, 1.0}, {10, 2.0}, {20, 6.0}});  // least squares, by hand
  EXPECT_DOUBLE_EQ(three.msPerSample, 0.25);
  EXPECT_DOUBLE_EQ(three.ms, 0.5);
}

}  // namespace
}  // namespace ucudnn
