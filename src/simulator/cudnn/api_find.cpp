// How long algorithms take for a convolution.
#include "simulator/cudnn/candidates.hpp"

using namespace ucudnn::simulator;

namespace {

template <typename Perf>
void findAlgorithms(cudnnHandle_t handle,
                    const ConvolutionProblem& problem,
                    int requestedAlgoCount,
                    int* returnedAlgoCount,
                    Perf* perfResults) {
  requireResults(handle, requestedAlgoCount, returnedAlgoCount, perfResults);
  giveResults(problem,
              timedCandidates(handle, problem),
              true,
              requestedAlgoCount,
              returnedAlgoCount,
              perfResults);
}

template <typename Perf>
void findAlgorithmsEx(cudnnHandle_t handle,
                      const ConvolutionProblem& problem,
                      const ConvolutionData& data,
                      int requestedAlgoCount,
                      int* returnedAlgoCount,
                      Perf* perfResults,
                      void* workspace,
                      std::size_t workspaceBytes) {
  requireResults(handle, requestedAlgoCount, returnedAlgoCount, perfResults);
  giveResults(problem,
              timedCandidates(handle, problem, data, workspace, workspaceBytes),
              true,
              requestedAlgoCount,
              returnedAlgoCount,
              perfResults);
}

void* unconst(const void* pointer) {
  return const_cast<void*>(pointer);
}

}  // namespace

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnFindConvolutionForwardAlgorithm(cudnnHandle_t handle,
                                     const cudnnTensorDescriptor_t xDesc,
                                     const cudnnFilterDescriptor_t wDesc,
                                     const cudnnConvolutionDescriptor_t convDesc,
                                     const cudnnTensorDescriptor_t yDesc,
                                     const int requestedAlgoCount,
                                     int* returnedAlgoCount,
                                     cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  return guarded(__func__, [&] {
    findAlgorithms(handle,
                   makeProblem(Operation::kForward, xDesc, wDesc, convDesc, yDesc),
                   requestedAlgoCount,
                   returnedAlgoCount,
                   perfResults);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnFindConvolutionBackwardDataAlgorithm(cudnnHandle_t handle,
                                          const cudnnFilterDescriptor_t wDesc,
                                          const cudnnTensorDescriptor_t dyDesc,
                                          const cudnnConvolutionDescriptor_t convDesc,
                                          const cudnnTensorDescriptor_t dxDesc,
                                          const int requestedAlgoCount,
                                          int* returnedAlgoCount,
                                          cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  return guarded(__func__, [&] {
    findAlgorithms(handle,
                   makeProblem(Operation::kBackwardData, dxDesc, wDesc, convDesc, dyDesc),
                   requestedAlgoCount,
                   returnedAlgoCount,
                   perfResults);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnFindConvolutionBackwardFilterAlgorithm(cudnnHandle_t handle,
                                            const cudnnTensorDescriptor_t xDesc,
                                            const cudnnTensorDescriptor_t dyDesc,
                                            const cudnnConvolutionDescriptor_t convDesc,
                                            const cudnnFilterDescriptor_t dwDesc,
                                            const int requestedAlgoCount,
                                            int* returnedAlgoCount,
                                            cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  return guarded(__func__, [&] {
    findAlgorithms(handle,
                   makeProblem(Operation::kBackwardFilter, xDesc, dwDesc, convDesc, dyDesc),
                   requestedAlgoCount,
                   returnedAlgoCount,
                   perfResults);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle,
                                       const cudnnTensorDescriptor_t xDesc,
                                       const void* x,
                                       const cudnnFilterDescriptor_t wDesc,
                                       const void* w,
                                       const cudnnConvolutionDescriptor_t convDesc,
                                       const cudnnTensorDescriptor_t yDesc,
                                       void* y,
                                       const int requestedAlgoCount,
                                       int* returnedAlgoCount,
                                       cudnnConvolutionFwdAlgoPerf_t* perfResults,
                                       void* workSpace,
                                       size_t workSpaceSizeInBytes) {
  return guarded(__func__, [&] {
    findAlgorithmsEx(handle,
                     makeProblem(Operation::kForward, xDesc, wDesc, convDesc, yDesc),
                     {unconst(x), unconst(w), y},
                     requestedAlgoCount,
                     returnedAlgoCount,
                     perfResults,
                     workSpace,
                     workSpaceSizeInBytes);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t handle,
                                            const cudnnFilterDescriptor_t wDesc,
                                            const void* w,
                                            const cudnnTensorDescriptor_t dyDesc,
                                            const void* dy,
                                            const cudnnConvolutionDescriptor_t convDesc,
                                            const cudnnTensorDescriptor_t dxDesc,
                                            void* dx,
                                            const int requestedAlgoCount,
                                            int* returnedAlgoCount,
                                            cudnnConvolutionBwdDataAlgoPerf_t* perfResults,
                                            void* workSpace,
                                            size_t workSpaceSizeInBytes) {
  return guarded(__func__, [&] {
    findAlgorithmsEx(handle,
                     makeProblem(Operation::kBackwardData, dxDesc, wDesc, convDesc, dyDesc),
                     {dx, unconst(w), unconst(dy)},
                     requestedAlgoCount,
                     returnedAlgoCount,
                     perfResults,
                     workSpace,
                     workSpaceSizeInBytes);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t handle,
                                              const cudnnTensorDescriptor_t xDesc,
                                              const void* x,
                                              const cudnnTensorDescriptor_t dyDesc,
                                              const void* y,
                                              const cudnnConvolutionDescriptor_t convDesc,
                                              const cudnnFilterDescriptor_t dwDesc,
                                              void* dw,
                                              const int requestedAlgoCount,
                                              int* returnedAlgoCount,
                                              cudnnConvolutionBwdFilterAlgoPerf_t* perfResults,
                                              void* workSpace,
                                              size_t workSpaceSizeInBytes) {
  return guarded(__func__, [&] {
    findAlgorithmsEx(handle,
                     makeProblem(Operation::kBackwardFilter, xDesc, dwDesc, convDesc, dyDesc),
                     {unconst(x), dw, unconst(y)},
                     requestedAlgoCount,
                     returnedAlgoCount,
                     perfResults,
                     workSpace,
                     workSpaceSizeInBytes);
  });
}
