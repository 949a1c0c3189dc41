// Engines of a cuDNN 9.1, which tells no configuration's workspace: only plans tell theirs. The
// program's environment says that the simulator is so old.
#include <gtest/gtest.h>

#include "cuda/owners.hpp"
#include "engines_fixture.hpp"
#include "kernels/engine_offers.hpp"
#include "kernels/source.hpp"
#include "support/operations.hpp"
#include "support/simulator.hpp"

namespace ucudnn {
namespace {

using namespace test;

class OldCudnnTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onSimulator()) GTEST_SKIP() << "needs a cuDNN 9.1";
    ASSERT_EQ(90100U, cudnnGetVersion());
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  }

  CudnnHandle handle_;
};

TEST_F(OldCudnnTest, ConfigurationsDoNotTellTheirWorkspace) {
  EXPECT_FALSE(tellsWorkspaceBeforePlans());
  const EngineDevice device{handle_.get()};
  const Problem problem = convolution(Operation::kForward, 16, 64, 96, 27, 5);
  const OperationGraph graph(device, problem, 0, kEngineAlignment);
  const auto proposals = graph.proposals(device, CUDNN_HEUR_MODE_A);
  ASSERT_FALSE(proposals.empty());
  const auto configuration = graph.configuration(device, proposals.front());
  EXPECT_THROW(get<std::int64_t>(configuration, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE), Error);
  EXPECT_EQ(workspaceOfPlan(makeExecutionPlan(device, configuration)),
            workspaceOf(device, configuration));
}

TEST_F(OldCudnnTest, EnginesAreOfferedWithTheirWorkspace) {
  const EngineDevice device{handle_.get()};
  for (const Operation operation : kOperations) {
    Problem problem = convolution(operation, 16, 64, 96, 27, 5);
    if (operation == Operation::kBiasActivationForward) problem.activation = CUDNN_ACTIVATION_RELU;
    SCOPED_TRACE(problem.text());
    int failures = 0;
    const auto offers = engineOffers(device, problem, &failures);
    EXPECT_EQ(0, failures);
    EXPECT_LE(3U, offers.size());
    for (const KernelOffer& offer : offers) {
      EXPECT_FALSE(offer.compiled);
      PreparedKernels prepared(handle_.get(), problem);
      std::size_t bytes = 0;
      const auto built = prepared.build(problem.batch(), offer.kernel, Calls::kAll);
      ASSERT_EQ(CUDNN_STATUS_SUCCESS, built->workspaceSize(handle_.get(), &bytes));
      EXPECT_EQ(offer.workspaceBytes, bytes);
    }
  }
}

// To ask for its workspace would be to compile it.
TEST_F(OldCudnnTest, ACompiledEngineIsNotOffered) {
  const Problem problem = convolution(Operation::kForward, 16, 64, 96, 27, 5);
  const EngineConfiguration compiled{71, {}};
  const OperationGraph graph({handle_.get()}, problem, 0, kEngineAlignment);
  ASSERT_TRUE(notesOf(graph.configuration({handle_.get()}, compiled)).isCompiled);
  PreparedKernels prepared(handle_.get(), problem);
  const Kernel kernel{idOf(compiled), problem.mathType, kEngines};
  EXPECT_FALSE(prepared.offer(problem.batch(), kernel, Calls::kOverwriting, nullptr));
}

}  // namespace
}  // namespace ucudnn
