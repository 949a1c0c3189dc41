// The calls of the convolution under test.
#include "convolution_fixture.hpp"

namespace ucudnn::simulator::test {

std::vector<int> Convolution::algorithms(Operation operation) const {
  std::vector<int> algorithms;
  std::size_t bytes = 0;
  for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++algorithm) {
    if (workspaceSize(operation, algorithm, &bytes) == CUDNN_STATUS_SUCCESS) {
      algorithms.push_back(algorithm);
    }
  }
  return algorithms;
}

cudnnStatus_t Convolution::workspaceSize(Operation operation,
                                         int algorithm,
                                         std::size_t* bytes) const {
  switch (operation) {
    case Operation::kForward:
      return cudnnGetConvolutionForwardWorkspaceSize(
          handle_,
          xDesc_,
          wDesc_,
          convDesc_,
          yDesc_,
          static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
          bytes);
    case Operation::kBackwardData:
      return cudnnGetConvolutionBackwardDataWorkspaceSize(
          handle_,
          wDesc_,
          yDesc_,
          convDesc_,
          xDesc_,
          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
          bytes);
    default:
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(
          handle_,
          xDesc_,
          yDesc_,
          convDesc_,
          wDesc_,
          static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
          bytes);
  }
}

cudnnStatus_t Convolution::run(
    Operation operation, int algorithm, int first, int count, double beta) {
  setTensor(xDesc_, xGeometry_, count);
  setTensor(yDesc_, yGeometry_, count);
  std::size_t workspaceBytes = 0;
  cudnnStatus_t status = workspaceSize(operation, algorithm, &workspaceBytes);
  const auto sample = [&](DeviceBuffer& buffer, const Geometry& geometry) {
    return static_cast<char*>(buffer.get()) + static_cast<std::size_t>(first) *
                                                  static_cast<std::size_t>(geometry.strides[0]) *
                                                  bytesOf(geometry.type);
  };
  if (status == CUDNN_STATUS_SUCCESS) {
    const DeviceBuffer workspace(workspaceBytes);
    const float alphaBeta[] = {static_cast<float>(case_.alpha), static_cast<float>(beta)};
    const double alphaBetaDouble[] = {case_.alpha, beta};
    const bool isDouble = case_.type == CUDNN_DATA_DOUBLE;
    const void* alphaPointer = isDouble ? static_cast<const void*>(alphaBetaDouble) : alphaBeta;
    const void* betaPointer =
        isDouble ? static_cast<const void*>(alphaBetaDouble + 1) : alphaBeta + 1;
    char* x = sample(this->x(), xGeometry_);
    char* y = sample(this->y(), yGeometry_);
    switch (operation) {
      case Operation::kForward:
        status = cudnnConvolutionForward(handle_,
                                         alphaPointer,
                                         xDesc_,
                                         x,
                                         wDesc_,
                                         w().get(),
                                         convDesc_,
                                         static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
                                         workspace.get(),
                                         workspaceBytes,
                                         betaPointer,
                                         yDesc_,
                                         y);
        break;
      case Operation::kBackwardData:
        status = cudnnConvolutionBackwardData(handle_,
                                              alphaPointer,
                                              wDesc_,
                                              w().get(),
                                              yDesc_,
                                              y,
                                              convDesc_,
                                              static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
                                              workspace.get(),
                                              workspaceBytes,
                                              betaPointer,
                                              xDesc_,
                                              x);
        break;
      case Operation::kBackwardFilter:
        status =
            cudnnConvolutionBackwardFilter(handle_,
                                           alphaPointer,
                                           xDesc_,
                                           x,
                                           yDesc_,
                                           y,
                                           convDesc_,
                                           static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
                                           workspace.get(),
                                           workspaceBytes,
                                           betaPointer,
                                           wDesc_,
                                           w().get());
        break;
    }
    cudaDeviceSynchronize();
  }
  setTensor(xDesc_, xGeometry_, case_.batch);
  setTensor(yDesc_, yGeometry_, case_.batch);
  return status;
}

cudnnStatus_t Convolution::run(Operation operation, int algorithm) {
  return run(operation, algorithm, 0, case_.batch, case_.beta);
}

cudnnStatus_t forward(Convolution& c,
                      const void* alpha,
                      const void* x,
                      int algorithm,
                      void* workspace,
                      std::size_t workspaceBytes,
                      cudnnTensorDescriptor_t yDesc) {
  const float beta = 0;
  return cudnnConvolutionForward(c.handle(),
                                 alpha,
                                 c.xDesc(),
                                 x,
                                 c.wDesc(),
                                 c.w().get(),
                                 c.convDesc(),
                                 static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
                                 workspace,
                                 workspaceBytes,
                                 &beta,
                                 yDesc,
                                 c.y().get());
}

}  // namespace ucudnn::simulator::test
