// The kernels that fast tuning times: plain rules over numbers.
#include <gtest/gtest.h>

#include "benchmark/offers.hpp"
#include "benchmark/selection.hpp"
#include "kernels/engines.hpp"
#include "support/measured.hpp"

namespace ucudnn {
namespace {

using test::kA, test::kB, test::kC, test::measured, test::offered, test::size;

TEST(MayJoinFrontTest, JudgesBySamplesAtTheNearestSize) {
  // At 16: A takes 1 for each sample, B 1.2, C 2; A needs the most workspace, C none.
  const Measurements measured16 = {
      {16, size({measured(kA, 16, 160), measured(kB, 19.2, 80), measured(kC, 32, 0)})}};
  const auto mayJoin = [&](Kernel kernel, std::size_t bytes, int batch) {
    return mayJoinFront(measured16, offered(kernel, bytes, true), batch, 16, false);
  };
  // Fewer samples, for less workspace than who is as fast.
  EXPECT_TRUE(mayJoin(kA, 70, 8));
  EXPECT_FALSE(mayJoin(kC, 0, 8)) << "needs no less";
  EXPECT_FALSE(mayJoin(kC, 100, 8)) << "slower than B in more";
  // As a rest: whatever they need.
  const auto mayBeRest = [&](Kernel kernel, std::size_t bytes) {
    return mayJoinFront(measured16, offered(kernel, bytes, true), 8, 16, true);
  };
  EXPECT_TRUE(mayBeRest(kA, 160));
  EXPECT_TRUE(mayBeRest(kB, 160)) << "a fifth slower than A";
  EXPECT_TRUE(mayBeRest(kC, 0));
  EXPECT_FALSE(mayBeRest(kC, 160));
  // More samples: one that is a quarter slower may catch up.
  EXPECT_TRUE(mayJoin(kA, 320, 32));
  EXPECT_TRUE(mayJoin(kB, 160, 32));
  EXPECT_TRUE(mayJoin(kC, 0, 32)) << "in no workspace at all";
  EXPECT_FALSE(mayJoin(kC, 160, 32));
  EXPECT_TRUE(mayJoin({3, 0}, 1000, 32)) << "measured nowhere";
  Measurements larger = measured16;
  larger[32] = size({measured(kA, 24, 320)});
  EXPECT_TRUE(mayJoinFront(larger, offered(kB, 319, true), 64, 16, false))
      << "in less than A at 32";
  EXPECT_FALSE(mayJoinFront(larger, offered(kB, 320, true), 64, 16, false)) << "A takes 0.75 at 32";
  larger[8] = size({measured({3, 0}, 80, 0)});
  EXPECT_TRUE(mayJoinFront(larger, offered({3, 0}, 320, true), 64, 16, false))
      << "measured below 16";
  EXPECT_FALSE(mayJoinFront(larger, offered({3, 0}, 320, true), 64, 8, false));
}

TEST(MayJoinFrontTest, OfAShortCallMuchMayStayTheSame) {
  const Measurements measured16 = {
      {16, size({measured(kA, 0.016, 0), measured(kB, 0.085, 0), measured(kC, 0.1, 0)})}};
  const auto mayJoin = [&](Kernel kernel, int batch) {
    return mayJoinFront(measured16, offered(kernel, 0, true), batch, 16, batch < 16);
  };
  EXPECT_TRUE(mayJoin(kB, 128)) << "0.08 + 8 * 0.005 ms may be, A took 8 * 0.016";
  EXPECT_FALSE(mayJoin(kC, 128)) << "0.08 + 8 * 0.02 ms at least";
  EXPECT_FALSE(mayJoin(kB, 8)) << "fewer samples gain nothing by it";
}

TEST(IsFarBehindTest, OfWhatNeedsHalfTheLimitAndTakesHalfAsLong) {
  // At 16: A takes 1 for each sample in 80 bytes, B 2.2 in none, C 1.8 in none.
  const Measurements measured16 = {
      {16, size({measured(kA, 16, 80), measured(kB, 35.2, 0), measured(kC, 28.8, 0)})}};
  const auto isFar = [&](Kernel kernel, int batch, std::size_t limitBytes) {
    return isFarBehind(measured16, offered(kernel, 0, true), batch, 16, limitBytes, 2);
  };
  for (const int batch : {8, 32}) {
    EXPECT_TRUE(isFar(kB, batch, 160)) << batch;
    EXPECT_FALSE(isFar(kB, batch, 159)) << batch << ": half of it is too little for A";
    EXPECT_FALSE(isFar(kC, batch, 160)) << batch;
    EXPECT_FALSE(isFar({3, 0}, batch, 160)) << batch << ": measured nowhere";
  }
}

TEST(IsFarBehindTest, WithMoreSamplesOthersShowNothingOfFewer) {
  const Measurements both = {{16, size({measured(kB, 32, 0)})},
                             {32, size({measured(kA, 16, 80), measured(kB, 64, 0)})}};
  EXPECT_FALSE(isFarBehind(both, offered(kB, 0, true), 8, 16, 160, 2)) << "judged by 16";
  EXPECT_TRUE(isFarBehind(both, offered(kB, 0, true), 64, 16, 160, 2));
}

TEST(IsFarBehindTest, OnlyOfWhatCanTakeItsPlace) {
  const Measurements one = {{16, size({measured(kA, 16, 0, false), measured(kB, 64, 0)})}};
  EXPECT_FALSE(isFarBehind(one, offered(kB, 0, true), 32, 16, 160, 2));
  EXPECT_TRUE(isFarBehind(one, offered(kB, 0, false), 32, 16, 160, 2));
}

TEST(IsHopelessTest, ALongKernelThatTheLineThroughItsTimesLeavesFarBehind) {
  // A takes 1/16 ms for each sample: 8 ms for 128, in the most workspace.
  const auto sizes = [](double at16, double at32, double other = 2) {
    return Measurements{{16, size({measured(kC, at16, 0)})},
                        {32, size({measured(kA, other, 160), measured(kC, at32, 0)})}};
  };
  EXPECT_TRUE(isHopeless(sizes(16, 32), kC, 128)) << "128 ms for 128";
  EXPECT_FALSE(isHopeless(sizes(15.9, 31.8), kC, 128));
  EXPECT_FALSE(isHopeless(sizes(28, 32), kC, 128)) << "56 ms: much of it is for any batch";
  EXPECT_FALSE(isHopeless(sizes(1.4, 2.8, 0.1), kC, 128)) << "not so long";
  EXPECT_FALSE(isHopeless(sizes(16, 32), kC, 32)) << "of one size there is no line";
  EXPECT_FALSE(isHopeless(sizes(16, 32), kB, 128)) << "measured nowhere";
  EXPECT_FALSE(mayJoinFront(sizes(16, 32), offered(kC, 0, true), 128, 16, false));
  EXPECT_TRUE(mayJoinFront(sizes(28, 32), offered(kC, 0, true), 128, 16, false));
}

Measurement engine(std::int32_t id, double timeMs, double deviceMs, bool deterministic = true) {
  Measurement made = measured({id, 0, kEngines}, timeMs, 100, deterministic);
  made.deviceMs = deviceMs;
  return made;
}

std::vector<std::int32_t> idsOf(const std::vector<Measurement>& kernels) {
  std::vector<std::int32_t> ids;
  for (const Measurement& kernel : kernels) ids.push_back(kernel.kernel.id);
  return ids;
}

TEST(KeepMostHopefulTest, ThreeThatCouldTakeOneAnothersPlace) {
  std::vector<Measurement> hopes = {engine(1, 5, 4),
                                    engine(2, 4, 3),
                                    engine(3, 3, 2),
                                    engine(4, 2, 1),
                                    engine(5, 1, 5),
                                    engine(6, 6, 6, false)};
  keepMostHopeful(hopes, false);
  EXPECT_EQ(idsOf(hopes), (std::vector<std::int32_t>{4, 3, 2, 5}))
      << "5 is the first when enqueued";
  hopes = {engine(1, 4, 4), engine(2, 1, 1, false), engine(3, 2, 2, false), engine(4, 3, 3, false)};
  keepMostHopeful(hopes, false);
  EXPECT_EQ(hopes.size(), 4u) << "who is deterministic is needed by who must be";
}

TEST(KeepMostHopefulTest, AnAlgorithmTakesNoEnginesPlaceWhereEnginesAreAlone) {
  const std::vector<Measurement> all = {
      measured(kA, 1, 0), measured(kB, 2, 0), measured(kC, 3, 0), engine(4, 4, 4)};
  std::vector<Measurement> hopes = all;
  keepMostHopeful(hopes, true);
  EXPECT_EQ(hopes.size(), 4u);
  hopes = all;
  keepMostHopeful(hopes, false);
  EXPECT_EQ(idsOf(hopes), (std::vector<std::int32_t>{kA.id, kB.id, kC.id}));
}

}  // namespace
}  // namespace ucudnn
