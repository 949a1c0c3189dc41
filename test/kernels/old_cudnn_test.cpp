// Engines of a cuDNN 9.1, which tells no configuration's workspace: only plans tell theirs. The
// program's environment says that the simulator is so old.
#include <gtest/gtest.h>

#include "cuda/owners.hpp"
#include "engines_fixture.hpp"
#include "kernels/built_engine.hpp"
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
  EXPECT_THROW(workspaceOf(configuration), Error);
  const auto graphs = makeGraphs(device, EnginePart(problem, proposals.front()));
  ConfiguredEngine engine(device, graphs, proposals.front());
  EXPECT_EQ(workspaceOfPlan(makeExecutionPlan(device, configuration)), engine.workspaceBytes(0));
}

// The plan that tells an engine's workspace is the one that runs: to make another would take cuDNN
// as long again, in the first call of a program.
TEST_F(OldCudnnTest, NoPlanIsMadeTwice) {
  const auto finalized = [] { return callCount("cudnnBackendFinalize"); };
  const EngineDevice device{handle_.get()};
  for (const Operation operation : kOperations) {
    const Problem problem = convolution(operation, 16, 64, 96, 27, 5);
    for (const KernelOffer& offer : engineOffers(device, problem, nullptr)) {
      PreparedKernels prepared(handle_.get(), problem);
      const auto asked = prepared.offer(problem.batch(), offer.kernel, Calls::kAll, nullptr);
      ASSERT_TRUE(asked);
      const auto before = finalized();
      const auto again = prepared.offer(problem.batch(), offer.kernel, Calls::kAll, nullptr);
      ASSERT_TRUE(again);
      EXPECT_EQ(asked->workspaceBytes, again->workspaceBytes);
      EXPECT_TRUE(prepared.build(problem.batch(), offer.kernel, Calls::kAll));
      EXPECT_EQ(before, finalized()) << toText(operation, offer.kernel);
    }
  }
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
