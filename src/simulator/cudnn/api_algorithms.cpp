// Which algorithms there are for a convolution, and what they need, without timing.
#include "simulator/cudnn/candidates.hpp"

using namespace ucudnn::simulator;

namespace {

template <typename Perf>
void getAlgorithms(cudnnHandle_t handle,
                   const ConvolutionProblem& problem,
                   int requestedAlgoCount,
                   int* returnedAlgoCount,
                   Perf* perfResults) {
  requireResults(handle, requestedAlgoCount, returnedAlgoCount, perfResults);
  giveResults(problem,
              expectedCandidates(handle, problem),
              false,
              requestedAlgoCount,
              returnedAlgoCount,
              perfResults);
}

void getWorkspaceSize(cudnnHandle_t handle,
                      const ConvolutionProblem& problem,
                      int algorithm,
                      std::size_t* sizeInBytes) {
  require(handle != nullptr && sizeInBytes != nullptr, "null handle or size pointer");
  Cost cost;
  requireSupported(findCost(problem, algorithm, deviceModel(handle->device), &cost),
                   "the algorithm does not support this convolution");
  *sizeInBytes = cost.workspaceBytes;
}

}  // namespace

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle,
                                       const cudnnTensorDescriptor_t srcDesc,
                                       const cudnnFilterDescriptor_t filterDesc,
                                       const cudnnConvolutionDescriptor_t convDesc,
                                       const cudnnTensorDescriptor_t destDesc,
                                       const int requestedAlgoCount,
                                       int* returnedAlgoCount,
                                       cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  return guarded(__func__, [&] {
    getAlgorithms(handle,
                  makeProblem(Operation::kForward, srcDesc, filterDesc, convDesc, destDesc),
                  requestedAlgoCount,
                  returnedAlgoCount,
                  perfResults);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle,
                                            const cudnnFilterDescriptor_t filterDesc,
                                            const cudnnTensorDescriptor_t diffDesc,
                                            const cudnnConvolutionDescriptor_t convDesc,
                                            const cudnnTensorDescriptor_t gradDesc,
                                            const int requestedAlgoCount,
                                            int* returnedAlgoCount,
                                            cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  return guarded(__func__, [&] {
    getAlgorithms(handle,
                  makeProblem(Operation::kBackwardData, gradDesc, filterDesc, convDesc, diffDesc),
                  requestedAlgoCount,
                  returnedAlgoCount,
                  perfResults);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle,
                                              const cudnnTensorDescriptor_t srcDesc,
                                              const cudnnTensorDescriptor_t diffDesc,
                                              const cudnnConvolutionDescriptor_t convDesc,
                                              const cudnnFilterDescriptor_t gradDesc,
                                              const int requestedAlgoCount,
                                              int* returnedAlgoCount,
                                              cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  return guarded(__func__, [&] {
    getAlgorithms(handle,
                  makeProblem(Operation::kBackwardFilter, srcDesc, gradDesc, convDesc, diffDesc),
                  requestedAlgoCount,
                  returnedAlgoCount,
                  perfResults);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle,
                                        const cudnnTensorDescriptor_t xDesc,
                                        const cudnnFilterDescriptor_t wDesc,
                                        const cudnnConvolutionDescriptor_t convDesc,
                                        const cudnnTensorDescriptor_t yDesc,
                                        cudnnConvolutionFwdAlgo_t algo,
                                        size_t* sizeInBytes) {
  return guarded(__func__, [&] {
    getWorkspaceSize(
        handle, makeProblem(Operation::kForward, xDesc, wDesc, convDesc, yDesc), algo, sizeInBytes);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle,
                                             const cudnnFilterDescriptor_t wDesc,
                                             const cudnnTensorDescriptor_t dyDesc,
                                             const cudnnConvolutionDescriptor_t convDesc,
                                             const cudnnTensorDescriptor_t dxDesc,
                                             cudnnConvolutionBwdDataAlgo_t algo,
                                             size_t* sizeInBytes) {
  return guarded(__func__, [&] {
    getWorkspaceSize(handle,
                     makeProblem(Operation::kBackwardData, dxDesc, wDesc, convDesc, dyDesc),
                     algo,
                     sizeInBytes);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle,
                                               const cudnnTensorDescriptor_t xDesc,
                                               const cudnnTensorDescriptor_t dyDesc,
                                               const cudnnConvolutionDescriptor_t convDesc,
                                               const cudnnFilterDescriptor_t gradDesc,
                                               cudnnConvolutionBwdFilterAlgo_t algo,
                                               size_t* sizeInBytes) {
  return guarded(__func__, [&] {
    getWorkspaceSize(handle,
                     makeProblem(Operation::kBackwardFilter, xDesc, gradDesc, convDesc, dyDesc),
                     algo,
                     sizeInBytes);
  });
}
