// Engines in calls that a client captures: on the simulator, and on a GPU.
#include "device_kernels.hpp"
#include "support/simulator.hpp"

namespace ucudnn {
namespace {

using namespace test;

class CaptureTest : public DeviceKernelsTest {
 protected:
  void SetUp() override {
    DeviceKernelsTest::SetUp();
    if (IsSkipped()) return;
    UCUDNN_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    UCUDNN_CHECK_CUDNN(cudnnSetStream(handle_.get(), stream_));
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  /// As most programs and torch.cuda.graph capture, behind a call that warms up.
  bool isCaptured(const Problem& problem, const KernelOffer& offer) {
    const auto kernel = build(problem, offer.kernel);
    const DeviceBuffer x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes());
    const DeviceBuffer workspace(offer.workspaceBytes);
    const auto enqueue = [&] {
      return kernel->enqueue(handle_.get(),
                             {Factor::one(problem).get(),
                              Factor::zero(problem).get(),
                              x.get(),
                              w.get(),
                              y.get(),
                              workspace.get(),
                              workspace.bytes()},
                             nullptr);
    };
    EXPECT_EQ(enqueue(), CUDNN_STATUS_SUCCESS);
    UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));
    UCUDNN_CHECK_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    const cudnnStatus_t status = enqueue();
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    static_cast<void>(cudaGetLastError());
    return status == CUDNN_STATUS_SUCCESS && error == cudaSuccess;
  }

  cudaStream_t stream_ = nullptr;
};

/// As AlexNet's first, and ResNet's.
std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const int mathType : {CUDNN_DEFAULT_MATH, CUDNN_FMA_MATH})
    for (const Problem& problem : {ofLines({15, 11, 2, 4}, {15, 11, 2, 4}, 3, 16, mathType),
                                   ofLines({6, 3, 1, 1}, {6, 3, 1, 1}, 32, 32, mathType),
                                   ofLines({7, 1, 0, 2}, {7, 1, 0, 2}, 32, 64, mathType)})
      for (const Operation operation :
           {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
        all.push_back(problem);
        all.back().operation = operation;
      }
  return all;
}

TEST_F(CaptureTest, WhateverEngineIsOfferedIsCaptured) {
  int captured = 0;
  for (const Problem& problem : problems())
    for (const KernelOffer& offer :
         offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true)) {
      if (offer.kernel.source != kEngines) continue;
      std::vector<Kernel> kernels{offer.kernel};
      for (const auto& knob : variantsOf(handle_.get(), problem, offer.kernel))
        kernels.insert(kernels.end(), knob.begin(), knob.end());
      for (const Kernel& kernel : kernels) {
        const auto found = offerOf(problem, engineConfigurationOf(kernel.id));
        if (!found) continue;
        EXPECT_TRUE(isCaptured(problem, *found))
            << problem.text() << ' ' << toText(problem.operation, found->kernel);
        ++captured;
      }
    }
  EXPECT_GT(captured, 0);
}

/// As cuDNN 9.19 answers on an H200.
TEST_F(CaptureTest, EnginesThatMakeTexturesAreNotAndNotOffered) {
  constexpr int kUseTexture = 3;
  int tried = 0;
  for (const Problem& problem : problems())
    for (EngineConfiguration value : engines(problem)) {
      const auto offer = offerOf(problem, value);
      for (auto& [type, choice] : value.knobs)
        if (offer && type == kUseTexture && choice == 0) {
          choice = 1;
          EXPECT_FALSE(offerOf(problem, value)) << toText(value);
          KernelOffer texture = *offer;
          texture.kernel.id = idOf(value);
          EXPECT_FALSE(isCaptured(problem, texture)) << problem.text() << ' ' << toText(value);
          ++tried;
        }
    }
  EXPECT_GT(tried, 0);
}

}  // namespace
}  // namespace ucudnn
