// Objects of the program's that live as long as graphs that hold them, as the CUDA programming
// guide says ("CUDA User Objects").
#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

/// An object that says when it has ended.
class Counted {
 public:
  Counted() { EXPECT_CUDA(create(1)); }
  cudaError_t create(unsigned int references) {
    return cudaUserObjectCreate(&object_, &ended_, end, references, cudaUserObjectNoDestructorSync);
  }
  cudaError_t moveTo(cudaGraph_t graph) {
    return cudaGraphRetainUserObject(graph, object_, 1, cudaGraphUserObjectMove);
  }
  operator cudaUserObject_t() const { return object_; }  // NOLINT: as a handle is used
  /// A destructor runs some time after the last reference has gone.
  int ended() const {
    int device = 0;
    EXPECT_CUDA(cudaGetDevice(&device));
    return ended_;
  }

 private:
  static void end(void* count) {
    int device = 0;
    EXPECT_EQ(cudaErrorNotPermitted, cudaGetDevice(&device));
    cudaGetLastError();
    ++*static_cast<int*>(count);
  }

  cudaUserObject_t object_ = nullptr;
  int ended_ = 0;
};

cudaGraph_t emptyGraph() {
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaGraphCreate(&graph, 0));
  return graph;
}

cudaGraphExec_t instantiated(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  EXPECT_CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  return exec;
}

cudaGraph_t graphOf(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph));
  return graph;
}

TEST(SimulatedUserObjectTest, EndsWithItsLastReference) {
  const Counted object;
  EXPECT_CUDA(cudaUserObjectRetain(object, 2));
  EXPECT_CUDA(cudaUserObjectRelease(object, 2));
  EXPECT_EQ(0, object.ended());
  EXPECT_CUDA(cudaUserObjectRelease(object, 1));
  EXPECT_EQ(1, object.ended());
  EXPECT_EQ(cudaErrorInvalidValue, cudaUserObjectRelease(object, 1));
  EXPECT_EQ(0, liveHandles("userObject"));
  cudaGetLastError();
}

TEST(SimulatedUserObjectTest, BadArgumentsAreRefused) {
  Counted object;
  int data = 0;
  cudaUserObject_t other = nullptr;
  const auto nothing = [](void*) {};
  for (const unsigned int flags : {0u, 2u})
    EXPECT_EQ(cudaErrorInvalidValue, cudaUserObjectCreate(&other, &data, nothing, 1, flags));
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaUserObjectCreate(&other, &data, nothing, 0, cudaUserObjectNoDestructorSync));
  EXPECT_EQ(cudaErrorInvalidValue, object.moveTo(nullptr));
  cudaGraph_t const graph = emptyGraph();
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphRetainUserObject(graph, object, 1, 2));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphReleaseUserObject(graph, object, 1));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDA(cudaUserObjectRelease(object, 1));
  EXPECT_EQ(1, object.ended());
  cudaGetLastError();
}

TEST(SimulatedUserObjectTest, LivesAsLongAsTheGraphAndAllThatIsMadeOfIt) {
  Counted object;
  cudaGraph_t const graph = emptyGraph();
  EXPECT_CUDA(object.moveTo(graph));
  cudaGraphExec_t const first = instantiated(graph), second = instantiated(graph);
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDA(cudaGraphExecDestroy(first));
  EXPECT_EQ(0, object.ended());
  EXPECT_CUDA(cudaGraphExecDestroy(second));
  EXPECT_EQ(1, object.ended());
}

TEST(SimulatedUserObjectTest, AGraphMayGetItsOwnReferencesAndGiveThemBack) {
  const Counted object;
  cudaGraph_t const graph = emptyGraph();
  EXPECT_CUDA(cudaGraphRetainUserObject(graph, object, 2, 0));
  EXPECT_CUDA(cudaUserObjectRelease(object, 1));
  EXPECT_CUDA(cudaGraphReleaseUserObject(graph, object, 1));
  EXPECT_EQ(0, object.ended());
  EXPECT_CUDA(cudaGraphReleaseUserObject(graph, object, 1));
  EXPECT_EQ(1, object.ended());
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST(SimulatedUserObjectTest, IsHeldByTheGraphThatIsBeingCaptured) {
  const ScopedStream stream;
  EXPECT_EQ(nullptr, graphOf(stream));
  Counted object;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t const during = graphOf(stream);
  EXPECT_EQ(during, graphOf(stream));
  EXPECT_CUDA(object.moveTo(during));
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  EXPECT_EQ(during, graph);
  EXPECT_EQ(0, object.ended());
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(1, object.ended());
}

TEST(SimulatedUserObjectTest, AVoidCaptureHoldsNothing) {
  const ScopedStream stream;
  Counted object;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_CUDA(object.moveTo(graphOf(stream)));
  EXPECT_NE(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(0, object.ended());
  EXPECT_EQ(nullptr, graphOf(stream));
  cudaGraph_t graph = nullptr;
  EXPECT_NE(cudaSuccess, cudaStreamEndCapture(stream, &graph));
  EXPECT_EQ(1, object.ended());
  cudaGetLastError();
}

TEST(SimulatedUserObjectTest, AGraphThatRunsHoldsItUntilTheHostHasWaited) {
  constexpr std::size_t kBytes = 48'000'000;
  setArithmetic(Arithmetic::kOff);
  const DeviceBuffer buffer(kBytes);
  const ScopedStream stream;
  Counted object;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, kBytes, stream));
  EXPECT_CUDA(object.moveTo(graphOf(stream)));
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t const exec = instantiated(graph);
  EXPECT_CUDA(cudaGraphLaunch(exec, stream));
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(0, object.ended());
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(1, object.ended());
  setArithmetic(Arithmetic::kFull);
}

}  // namespace
}  // namespace ucudnn::test
