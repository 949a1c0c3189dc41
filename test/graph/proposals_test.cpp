// Whether a program passes over engines because they are not deterministic.
#include "graph/proposals.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ucudnn {
namespace {

class ClientSkips : public ::testing::Test {
 protected:
  static constexpr auto kNondeterministic = Proposals::bitOf(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  static constexpr auto kTensorCores = Proposals::bitOf(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);

  /// A program that takes what is not deterministic, if it is the best.
  void SetUp() override {
    Proposals others;
    take(others, {kNondeterministic}, 0);
    ASSERT_FALSE(clientSkipsNondeterministic());
  }
  static void take(Proposals& proposals, const std::vector<Proposals::Notes>& shown, int place) {
    for (std::size_t i = 0; i < shown.size(); ++i) proposals.show(static_cast<int>(i), shown[i]);
    proposals.tryOut(place);
    proposals.take(place);
  }
};

TEST_F(ClientSkips, ABetterEngineThatIsNotDeterministic) {
  Proposals proposals;
  take(proposals, {kNondeterministic | kTensorCores, kTensorCores}, 1);
  EXPECT_TRUE(clientSkipsNondeterministic());
}

TEST_F(ClientSkips, NothingWhereItTakesTheBest) {
  Proposals proposals;
  take(proposals, {0, kNondeterministic, 0}, 0);
  EXPECT_FALSE(clientSkipsNondeterministic());
}

TEST_F(ClientSkips, NothingForDeterminismWhereTheEngineHasOtherNotes) {
  Proposals proposals;
  take(proposals, {kNondeterministic | kTensorCores, 0}, 1);
  EXPECT_FALSE(clientSkipsNondeterministic()) << "it may bar tensor cores";
}

TEST_F(ClientSkips, NothingWhereThePlanOfTheBetterOneHasFailed) {
  Proposals proposals;
  proposals.tryOut(0);
  take(proposals, {kNondeterministic, 0}, 1);
  EXPECT_FALSE(clientSkipsNondeterministic());
}

TEST_F(ClientSkips, NothingThatItKnowsWhereItReadsNoNotes) {
  Proposals proposals;
  take(proposals, {}, 1);
  EXPECT_FALSE(clientSkipsNondeterministic());
  take(proposals, {kNondeterministic}, 70);
  EXPECT_FALSE(clientSkipsNondeterministic()) << "cuDNN proposes no more than are kept";
}

}  // namespace
}  // namespace ucudnn
