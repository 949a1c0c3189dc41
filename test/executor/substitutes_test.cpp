#include "executor/substitutes.hpp"

#include <gtest/gtest.h>

#include "kernels/descriptors.hpp"
#include "support/device.hpp"
#include "support/problems.hpp"

namespace ucudnn {
namespace {

class SubstitutesTest : public ::testing::TestWithParam<Operation> {
 protected:
  void SetUp() override {
    if (!test::hasDevice()) GTEST_SKIP() << "no GPU";
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  }

  std::optional<int> firstWithin(std::size_t workspaceBytes) {
    ConvolutionCall call{descriptors_.get(), {}, nullptr, kAnyAlgorithm};
    call.pointers.workspace = &handle_;  // it is not used
    call.pointers.workspaceBytes = workspaceBytes;
    return substitutes_.first(handle_.get(), problem_, call, false);
  }

  const Problem problem_ = test::sampleProblem(GetParam(), 32, 64);
  const ProblemDescriptors descriptors_{problem_};
  CudnnHandle handle_;
  Substitutes substitutes_;
};

TEST_P(SubstitutesTest, ACallOfAnyAlgorithmGetsTheFirstByHeuristics) {
  const auto ranked = rankedAlgorithms(handle_.get(), problem_, descriptors_.get());
  ASSERT_FALSE(ranked.empty());
  EXPECT_EQ(firstWithin(std::size_t{4} << 30), ranked.front().kernel.id);
  for (const KernelOffer& offer : ranked) {
    if (offer.workspaceBytes > 0) continue;
    EXPECT_EQ(firstWithin(0), offer.kernel.id);
    break;
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         SubstitutesTest,
                         ::testing::Values(Operation::kForward,
                                           Operation::kBackwardData,
                                           Operation::kBackwardFilter),
                         [](const auto& info) { return std::string(toText(info.param)); });

}  // namespace
}  // namespace ucudnn
