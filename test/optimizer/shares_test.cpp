// Shares of a mini-batch against an enumeration of all of them.
#include "optimizer/shares.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <tuple>

namespace ucudnn {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();

ShareDevice linear(int samples, double msPerSample, double ms = 0) {
  ShareDevice device;
  for (int share = 0; share <= samples; ++share) device.timesMs.push_back(ms + msPerSample * share);
  return device;
}

/// Calls `visit` with all shares that sum to the mini-batch.
void forAllShares(std::size_t devices,
                  int samples,
                  std::vector<int>& shares,
                  const std::function<void(const std::vector<int>&)>& visit) {
  if (shares.size() + 1 == devices) {
    shares.push_back(samples);
    visit(shares);
    shares.pop_back();
    return;
  }
  for (int share = 0; share <= samples; ++share) {
    shares.push_back(share);
    forAllShares(devices, samples - share, shares, visit);
    shares.pop_back();
  }
}

/// As the optimizer promises: the step's time, the slowest device's, inequality.
using Rank = std::tuple<double, double, long>;

Rank rankOf(const std::vector<ShareDevice>& devices,
            const std::vector<int>& shares,
            double exchangeMs) {
  // On purpose not by stepMsOf.
  double slowestMs = 0;
  int taking = 0;
  long inequality = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (devices[i] == devices[j])
        inequality += static_cast<long>(shares[i] - shares[j]) * (shares[i] - shares[j]);
    if (shares[i] == 0) continue;
    ++taking;
    const ShareDevice& device = devices[i];
    const auto share = static_cast<std::size_t>(shares[i]);
    const bool runs = share < device.timesMs.size() && shares[i] <= device.mostSamples;
    const double ms = runs ? device.timesMs[share] + device.rest.of(shares[i]) : kNoTime;
    slowestMs = std::max(slowestMs, ms);
  }
  // One that is alone because of the exchange may be any.
  if (taking <= 1) return {slowestMs, slowestMs, exchangeMs > 0 ? 0 : inequality};
  return {slowestMs + exchangeMs, slowestMs, inequality};
}

/// Times are whole numbers, so that sums are exact and ties are frequent.
struct RandomShares {
  std::vector<ShareDevice> devices;
  int samples;
  double exchangeMs;
};

RandomShares randomShares(std::mt19937& random) {
  const auto upTo = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  RandomShares made;
  made.samples = 1 + upTo(8);
  made.exchangeMs = upTo(3);
  std::vector<ShareDevice> kinds(1 + static_cast<std::size_t>(upTo(2)));
  for (ShareDevice& kind : kinds) {
    kind.timesMs.push_back(kNoTime);  // of none: not read
    const int known = upTo(5) == 0 ? upTo(made.samples) : made.samples;
    double ms = upTo(4);
    for (int share = 1; share <= known; ++share) {
      // Rises, falls and cliffs.
      ms = std::max(0.0, ms + upTo(4) - 1 + (upTo(6) == 0 ? 10 : 0));
      kind.timesMs.push_back(upTo(12) == 0 ? kNoTime : ms);
    }
    kind.rest.ms = upTo(2);
    kind.rest.msPerSample = upTo(1);
    if (upTo(4) == 0) kind.mostSamples = upTo(made.samples);
  }
  const std::size_t devices = 1 + static_cast<std::size_t>(upTo(3));
  for (std::size_t i = 0; i < devices; ++i)
    made.devices.push_back(kinds[static_cast<std::size_t>(upTo(100)) % kinds.size()]);
  return made;
}

TEST(SharesTest, AreTheBestOfAllOnRandomTables) {
  std::mt19937 random(46);
  int possible = 0, alone = 0, unequal = 0;
  for (int i = 0; i < 10000; ++i) {
    const RandomShares c = randomShares(random);
    Rank best{kNoTime, kNoTime, 0};
    std::vector<int> shares;
    forAllShares(c.devices.size(), c.samples, shares, [&](const std::vector<int>& tried) {
      best = std::min(best, rankOf(c.devices, tried, c.exchangeMs));
    });
    const auto found = fastestShares(c.devices, c.samples, c.exchangeMs);
    ASSERT_EQ(found.has_value(), !std::isinf(std::get<0>(best))) << "case " << i;
    if (!found) continue;
    ++possible;
    alone += c.exchangeMs > 0 && std::get<0>(best) == std::get<1>(best) ? 1 : 0;
    unequal += std::get<2>(best) > 0 ? 1 : 0;
    ASSERT_EQ(std::accumulate(found->samples.begin(), found->samples.end(), 0), c.samples);
    ASSERT_EQ(rankOf(c.devices, found->samples, c.exchangeMs), best) << "case " << i;
    ASSERT_EQ(found->stepMs, std::get<0>(best)) << "case " << i;
  }
  // The cases are of all sorts.
  EXPECT_GT(possible, 7000);
  EXPECT_GT(alone, 1000);
  EXPECT_GT(unequal, 500);
}

TEST(SharesTest, GoBySpeed) {
  const auto shares = fastestShares({linear(256, 1), linear(256, 0.5)}, 255, 0);
  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->samples, (std::vector<int>{85, 170}));
  EXPECT_DOUBLE_EQ(shares->stepMs, 85);
}

TEST(SharesTest, OfEqualDevicesAreEqualWhereThatCostsNothing) {
  // A plateau, as cuDNN's kernels have: any shares up to 128 take as long.
  ShareDevice plateau;
  for (int share = 0; share <= 256; ++share) plateau.timesMs.push_back(share <= 128 ? 5 : 9);
  const std::vector<ShareDevice> devices(3, plateau);
  EXPECT_EQ(fastestShares(devices, 256, 0)->samples, (std::vector<int>{86, 85, 85}));
  EXPECT_EQ(fastestShares(devices, 384, 0)->samples, (std::vector<int>{128, 128, 128}));
}

TEST(SharesTest, OfEqualDevicesDifferWhereThatIsFaster) {
  // 96 samples fall off a cliff, 128 and 64 do not.
  ShareDevice device = linear(256, 1);
  device.timesMs[96] = 500;
  EXPECT_EQ(fastestShares({device, device}, 192, 0)->samples, (std::vector<int>{97, 95}));
}

TEST(SharesTest, LeaveOutADeviceThatIsTooSlow) {
  const auto shares = fastestShares({linear(64, 1), linear(64, 1, 100)}, 64, 0);
  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->samples, (std::vector<int>{64, 0}));
}

TEST(SharesTest, LeaveOutOthersWhereTheExchangeCostsMore) {
  const std::vector<ShareDevice> devices = {linear(64, 1), linear(64, 1)};
  EXPECT_EQ(fastestShares(devices, 64, 31)->samples, (std::vector<int>{32, 32}));
  const auto alone = fastestShares(devices, 64, 33);
  EXPECT_EQ(alone->samples, (std::vector<int>{64, 0}));
  EXPECT_DOUBLE_EQ(alone->stepMs, 64);
}

TEST(SharesTest, KeepWithinMemory) {
  std::vector<ShareDevice> devices = {linear(256, 1), linear(256, 1)};
  devices[1].mostSamples = 80;
  EXPECT_EQ(fastestShares(devices, 256, 0)->samples, (std::vector<int>{176, 80}));
  devices[0].mostSamples = 100;
  EXPECT_FALSE(fastestShares(devices, 256, 0));
}

TEST(SharesTest, CountTheRestOfAStep) {
  std::vector<ShareDevice> devices = {linear(100, 1), linear(100, 1)};
  devices[1].rest.ms = 10;
  devices[1].rest.msPerSample = 1;
  // b + 0 = 2 (100 - b) + 10
  EXPECT_EQ(fastestShares(devices, 100, 0)->samples, (std::vector<int>{70, 30}));
}

TEST(SharesTest, NoDeviceRunsNothing) {
  EXPECT_FALSE(fastestShares({}, 4, 0));
}

TEST(SharesTest, EqualOnesAreAsEqualAsSamplesAre) {
  EXPECT_EQ(equalShares(256, 3), (std::vector<int>{86, 85, 85}));
  EXPECT_EQ(equalShares(2, 3), (std::vector<int>{1, 1, 0}));
}

}  // namespace
}  // namespace ucudnn
