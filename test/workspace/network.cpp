#include "network.hpp"

#include <algorithm>
#include <cmath>

namespace ucudnn::test {

std::vector<ucudnnTotalWorkspacePolicy_t> policies() {
#ifdef UCUDNN_HAVE_DIVISION
  return {UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE,
          UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE,
          UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO};
#else
  return {UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE, UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO};
#endif
}

const char* toText(ucudnnTotalWorkspacePolicy_t policy) {
  static const char* const names[] = {"divide", "share", "auto"};
  return names[policy];
}

ConvolutionCase layerCase(int kind) {
  return fftCase(96 + 16 * kind);
}

Layer::Layer(const ConvolutionCase& parameters, ucudnnLayerId_t id)
    : convolution_(parameters), id_(id) {
  convolution_.fill();
  for (const ucudnnOperation_t operation : kOperations)
    outputs_[operation] = std::make_unique<DeviceBuffer>(convolution_.output(operation).bytes());
}

void Layer::prepare(double beta) {
  for (const ucudnnOperation_t operation : kOperations) {
    first_[operation] = beta == 0 ? std::vector<char>(outputs_[operation]->bytes(), '\xFF')
                                  : randomValues(convolution_.geometry(operation), 77);
    outputs_[operation]->write(first_[operation]);
  }
}

cudnnStatus_t Layer::run(UcudnnHandle_t handle,
                         ucudnnOperation_t operation,
                         double beta,
                         Workspace workspace) {
  const float one = 1;
  const auto factor = static_cast<float>(beta);
  void* const output = outputs_[operation]->get();
  Convolution& c = convolution_;
  if (operation == UCUDNN_FORWARD)
    return cudnnConvolutionForward(handle,
                                   &one,
                                   c.xDesc(),
                                   c.x().get(),
                                   c.wDesc(),
                                   c.w().get(),
                                   c.convDesc(),
                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                   workspace.memory,
                                   workspace.bytes,
                                   &factor,
                                   c.yDesc(),
                                   output,
                                   id_);
  if (operation == UCUDNN_BACKWARD_DATA)
    return cudnnConvolutionBackwardData(handle,
                                        &one,
                                        c.wDesc(),
                                        c.w().get(),
                                        c.yDesc(),
                                        c.y().get(),
                                        c.convDesc(),
                                        CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
                                        workspace.memory,
                                        workspace.bytes,
                                        &factor,
                                        c.xDesc(),
                                        output,
                                        id_);
  return cudnnConvolutionBackwardFilter(handle,
                                        &one,
                                        c.xDesc(),
                                        c.x().get(),
                                        c.yDesc(),
                                        c.y().get(),
                                        c.convDesc(),
                                        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                                        workspace.memory,
                                        workspace.bytes,
                                        &factor,
                                        c.wDesc(),
                                        output,
                                        id_);
}

void Layer::expectRight(cudnnHandle_t native, ucudnnOperation_t operation, double beta) {
  // Computed in the convolution's own buffer, which is an operand of the other operations.
  const std::vector<char> operand = convolution_.output(operation).read();
  convolution_.output(operation).write(first_[operation]);
  const auto expected = convolution_.undivided(native, operation, 0, 1, beta);
  convolution_.output(operation).write(operand);
  ASSERT_TRUE(expected);
  const double far =
      distance(convolution_.geometry(operation), outputs_[operation]->read(), *expected);
  EXPECT_FALSE(std::isnan(far)) << toText(operation);
  EXPECT_LE(far, toleranceBetweenAlgorithms()) << toText(operation);
}

Network::Network(const std::vector<int>& kinds, Ids ids) {
  for (const int kind : kinds) {
    const auto number = static_cast<ucudnnLayerId_t>(layers_.size());
    layers_.push_back(
        std::make_unique<Layer>(layerCase(kind), ids == Ids::kOwn ? number : UCUDNN_LAYER_ANY));
  }
}

void Network::prepare(double beta) {
  for (const auto& layer : layers_) layer->prepare(beta);
  ASSERT_CUDA(cudaDeviceSynchronize());
}

void Network::iterate(UcudnnHandle_t handle, double beta) {
  for (const auto& layer : layers_) ASSERT_CUDNN(layer->run(handle, UCUDNN_FORWARD, beta));
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    ASSERT_CUDNN((*layer)->run(handle, UCUDNN_BACKWARD_FILTER, beta));
    ASSERT_CUDNN((*layer)->run(handle, UCUDNN_BACKWARD_DATA, beta));
  }
}

void Network::expectRight(cudnnHandle_t native, double beta) {
  ASSERT_CUDA(cudaDeviceSynchronize());
  for (std::size_t i = 0; i < layers_.size(); ++i)
    for (const ucudnnOperation_t operation : kOperations) {
      SCOPED_TRACE("layer " + std::to_string(i));
      layers_[i]->expectRight(native, operation, beta);
    }
}

std::unique_ptr<ForcedSplits> TotalWorkspaceTest::forced_;

void TotalWorkspaceTest::SetUp() {
  LibraryTest::SetUp();
  if (IsSkipped()) return;
  if (!forced_) {
    std::vector<ConvolutionCase> cases;
    for (int kind = 0; kind < kKinds; ++kind) cases.push_back(layerCase(kind));
    forced_ = std::make_unique<ForcedSplits>(cases);
  }
  { const Handles handles; }  // the first handle sets the log as the environment has it
  ASSERT_CUDNN(ucudnnSetLogFile(directory_.file("log").c_str()));
  ASSERT_CUDNN(ucudnnSetLogLevel("info"));
}

void TotalWorkspaceTest::TearDown() {
  environment_.reset();
  EXPECT_CUDNN(ucudnnSetLogFile(""));  // the file goes with the test
  LibraryTest::TearDown();
}

std::size_t TotalWorkspaceTest::wantedBytes(int kind) {
  std::size_t most = 0;
  const Handles handles;
  Convolution convolution(layerCase(kind));
  for (const ucudnnOperation_t operation : kOperations) {
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    EXPECT_CUDNN(convolution.plan(handles.ours, operation, std::size_t{64} << 20, &plan, &entries));
    most = std::max(most, plan.workspaceBytes);
  }
  EXPECT_LT(0U, most);
  return most;
}

void TotalWorkspaceTest::setTotal(std::size_t bytes, ucudnnTotalWorkspacePolicy_t policy) {
  environment_.reset();  // puts back what was before, so that the next one can
  environment_ = std::make_unique<EnvironmentGuard>(
      std::map<std::string, std::string>{{"UCUDNN_TOTAL_WORKSPACE_SIZE", std::to_string(bytes)},
                                         {"UCUDNN_TOTAL_WORKSPACE_POLICY", toText(policy)}});
}

std::vector<std::string> TotalWorkspaceTest::logged(const std::vector<std::string>& words) const {
  return linesWith(directory_.file("log"), words);
}

std::size_t TotalWorkspaceTest::layouts(const std::string& how) const {
  return logged({" of workspace: ", how}).size();
}

StreamHandle::StreamHandle() {
  EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  EXPECT_CUDNN(cudnnCreate(&handle_));
  EXPECT_CUDNN(cudnnSetStream(handle_, stream_));
}

StreamHandle::~StreamHandle() {
  EXPECT_CUDA(cudaStreamSynchronize(stream_));
  EXPECT_CUDA(cudaStreamDestroy(stream_));
  EXPECT_CUDNN(cudnnDestroy(handle_));
}

}  // namespace ucudnn::test
