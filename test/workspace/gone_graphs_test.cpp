// The workspace of captured graphs, once these are destroyed.
#include <algorithm>

#include "graph_fixture.hpp"

namespace ucudnn::test {
namespace {

class GoneGraphsTest : public GraphTest {
 protected:
  /// A network that has run, with a total of its own.
  void start(std::size_t number) {
    total_ = 3 * wantedBytes(0) + 8192 + 512 * number;
    setTotal(total_, kFirst);
    handles_ = std::make_unique<Handles>();
    stream_ = std::make_unique<StreamHandle>();
    network_ = std::make_unique<Network>(std::vector<int>{0});
    network_->prepare();
    for (int iteration = 0; iteration < 3; ++iteration) iterate();
    ASSERT_CUDA(cudaStreamSynchronize(stream()));
    before_ = liveBytes();
  }
  void iterate() { network_->iterate(stream_->handle()); }
  void capture() { GraphTest::capture(*stream_, *network_); }
  UcudnnHandle_t handle() const { return stream_->handle(); }
  cudaStream_t stream() const { return stream_->stream(); }
  Network& network() { return *network_; }

  /// Launches the graph that was captured last, and looks at what it computes. Returns its time.
  double launchMs() {
    network_->prepare();
    launch(stream());
    EXPECT_CUDA(cudaStreamSynchronize(stream()));
    const double begin = clockMs(stream());
    launch(stream());
    EXPECT_CUDA(cudaStreamSynchronize(stream()));
    const double ms = clockMs(stream()) - begin;
    network_->expectRight(handles_->native);
    return ms;
  }
  /// The next call frees what is not used any more.
  void expectAllGivenBack() {
    iterate();
    EXPECT_EQ(before_, liveBytes());
  }
  std::size_t before() const { return before_; }
  std::size_t total() const { return total_; }
  std::size_t warnings() const { return logged({"[warn"}).size(); }

  void TearDown() override {
    network_.reset();
    GraphTest::TearDown();
    stream_.reset();
    handles_.reset();
  }

 private:
  std::size_t total_ = 0, before_ = 0;
  std::unique_ptr<Handles> handles_;
  std::unique_ptr<StreamHandle> stream_;
  std::unique_ptr<Network> network_;
};

TEST_F(GoneGraphsTest, FortyCapturesOneAfterAnotherAreAsFastAndGiveTheirMemoryBack) {
  if (!onSimulator()) GTEST_SKIP() << "a GPU does not say how much memory is in use";
  ASSERT_NO_FATAL_FAILURE(start(0));
  double firstMs = 0;
  for (int i = 0; i < 40; ++i) {
    ASSERT_NO_FATAL_FAILURE(capture());
    EXPECT_LT(before(), liveBytes()) << "captured without workspace: this shows nothing";
    EXPECT_GE(before() + total(), liveBytes()) << "more than one graph's";
    const double ms = launchMs();
    if (i == 0) firstMs = ms;
    EXPECT_NEAR(firstMs, ms, 1e-6);
    destroyGraph();
  }
  expectAllGivenBack();
  EXPECT_EQ(0U, warnings());
}

TEST_F(GoneGraphsTest, FortyKeptGraphsRunAndDoNotTakeAllMemory) {
  ASSERT_NO_FATAL_FAILURE(start(1));
  double firstMs = 0;
  std::vector<cudaGraphExec_t> kept;
  for (int i = 0; i < 40; ++i) {
    ASSERT_NO_FATAL_FAILURE(capture());
    const double ms = launchMs();
    if (i == 0) firstMs = ms;
    kept.push_back(keepGraph());
  }
  EXPECT_EQ(1U, logged({"[warn", "graphs have workspace of their own"}).size());
  if (onSimulator()) {
    EXPECT_LT(before(), liveBytes());
    EXPECT_GE(before() + 16 * total(), liveBytes());
    // Where one goes another may come.
    EXPECT_CUDA(cudaGraphExecDestroy(kept.back()));
    EXPECT_CUDA(cudaGraphExecDestroy(kept.front()));
    kept.front() = kept.back() = nullptr;
    ASSERT_NO_FATAL_FAILURE(capture());
    EXPECT_NEAR(firstMs, launchMs(), 1e-6);
    destroyGraph();
  }
  for (cudaGraphExec_t const exec : kept)
    if (exec != nullptr) {
      EXPECT_CUDA(cudaGraphExecDestroy(exec));
    }
  if (onSimulator()) expectAllGivenBack();
}

TEST_F(GoneGraphsTest, AGraphThatIsDestroyedWhileItRunsKeepsItsMemoryUntilItHasRun) {
  if (!onSimulator()) GTEST_SKIP() << "a GPU does not say how much memory is in use";
  ASSERT_NO_FATAL_FAILURE(start(2));
  ASSERT_NO_FATAL_FAILURE(capture());
  launch(stream());
  destroyGraph();
  iterate();  // waits for nothing
  EXPECT_LT(before(), liveBytes());
  ASSERT_CUDA(cudaStreamSynchronize(stream()));
  expectAllGivenBack();
}

TEST_F(GoneGraphsTest, ACaptureThatIsVoidGivesItsMemoryBack) {
  if (!onSimulator()) GTEST_SKIP() << "a GPU does not say how much memory is in use";
  ASSERT_NO_FATAL_FAILURE(start(3));
  ASSERT_CUDA(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed));
  iterate();
  EXPECT_LT(before(), liveBytes());
  EXPECT_NE(cudaSuccess, cudaDeviceSynchronize());
  cudaGraph_t graph = nullptr;
  EXPECT_NE(cudaSuccess, cudaStreamEndCapture(stream(), &graph));
  cudaGetLastError();
  expectAllGivenBack();
}

TEST_F(GoneGraphsTest, WhicheverCallOfACaptureFailsNoMemoryIsLost) {
  if (!onSimulator()) GTEST_SKIP() << "fails calls";
  ASSERT_NO_FATAL_FAILURE(start(6));
  std::int64_t calls = 1;
  for (std::int64_t n = 1; n <= calls; ++n) {
    SCOPED_TRACE("call " + std::to_string(n));
    ASSERT_CUDA(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed));
    const std::int64_t first = callCount();
    failCall(n);
    static_cast<void>(network().layer(0).run(handle(), UCUDNN_FORWARD));
    failCall(0);
    calls = std::max(calls, callCount() - first);
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream(), &graph) == cudaSuccess) {
      EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    cudaGetLastError();
    expectAllGivenBack();
  }
  EXPECT_LT(10, calls);
}

// Its handles and its total may end before the graph does.
TEST_F(GoneGraphsTest, AGraphThatOutlivesAllHandlesMayEndLater) {
  ASSERT_NO_FATAL_FAILURE(start(4));
  ASSERT_NO_FATAL_FAILURE(capture());
  cudaGraphExec_t const exec = keepGraph();
  TearDown();
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaDeviceSynchronize());
  SetUp();
  ASSERT_NO_FATAL_FAILURE(start(5));
  if (onSimulator()) expectAllGivenBack();
}

}  // namespace
}  // namespace ucudnn::test
