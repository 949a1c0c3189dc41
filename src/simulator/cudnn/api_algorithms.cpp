// Which algorithms there are for a convolution, what they need, and how long they take.
#include "simulator/cudnn/candidates.hpp"

using namespace ucudnn::simulator;

namespace {

void getWorkspaceSize(cudnnHandle_t handle,
                      const ConvolutionProblem& problem,
                      int algorithm,
                      std::size_t* sizeInBytes) {
  require(handle != nullptr && sizeInBytes != nullptr, "null handle or size pointer");
  hostLoadsTables(problem.x.type);
  Cost cost;
  requireSupported(findCost(problem, algorithm, deviceModel(handle->device), &cost),
                   "the algorithm does not support this convolution");
  *sizeInBytes = cost.workspaceBytes;
}

}  // namespace

// SHORT, FIRST, SECOND, OUTPUT: how cuDNN's types of the operation are named.
#define UCUDNN_SIMULATED_QUERIES(NAME, SHORT, FIRST, SECOND, OUTPUT)                              \
  UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnGetConvolution##NAME##Algorithm_v7(                   \
      cudnnHandle_t handle,                                                                       \
      const cudnn##FIRST##Descriptor_t firstDesc,                                                 \
      const cudnn##SECOND##Descriptor_t secondDesc,                                               \
      const cudnnConvolutionDescriptor_t convDesc,                                                \
      const cudnn##OUTPUT##Descriptor_t outputDesc,                                               \
      const int requested,                                                                        \
      int* returned,                                                                              \
      cudnnConvolution##SHORT##AlgoPerf_t* results) {                                             \
    return guarded(__func__, [&] {                                                                \
      requireResults(handle, requested, returned, results);                                       \
      const auto problem = problemOf(firstDesc, secondDesc, convDesc, outputDesc);                \
      giveResults(                                                                                \
          problem, expectedCandidates(handle, problem), false, requested, returned, results);     \
    });                                                                                           \
  }                                                                                               \
  UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnFindConvolution##NAME##Algorithm(                     \
      cudnnHandle_t handle,                                                                       \
      const cudnn##FIRST##Descriptor_t firstDesc,                                                 \
      const cudnn##SECOND##Descriptor_t secondDesc,                                               \
      const cudnnConvolutionDescriptor_t convDesc,                                                \
      const cudnn##OUTPUT##Descriptor_t outputDesc,                                               \
      const int requested,                                                                        \
      int* returned,                                                                              \
      cudnnConvolution##SHORT##AlgoPerf_t* results) {                                             \
    return guarded(__func__, [&] {                                                                \
      requireResults(handle, requested, returned, results);                                       \
      const auto problem = problemOf(firstDesc, secondDesc, convDesc, outputDesc);                \
      giveResults(problem, timedCandidates(handle, problem), true, requested, returned, results); \
    });                                                                                           \
  }                                                                                               \
  UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnFindConvolution##NAME##AlgorithmEx(                   \
      cudnnHandle_t handle,                                                                       \
      const cudnn##FIRST##Descriptor_t firstDesc,                                                 \
      const void* first,                                                                          \
      const cudnn##SECOND##Descriptor_t secondDesc,                                               \
      const void* second,                                                                         \
      const cudnnConvolutionDescriptor_t convDesc,                                                \
      const cudnn##OUTPUT##Descriptor_t outputDesc,                                               \
      void* output,                                                                               \
      const int requested,                                                                        \
      int* returned,                                                                              \
      cudnnConvolution##SHORT##AlgoPerf_t* results,                                               \
      void* workspace,                                                                            \
      size_t workspaceBytes) {                                                                    \
    return guarded(__func__, [&] {                                                                \
      requireResults(handle, requested, returned, results);                                       \
      const auto problem = problemOf(firstDesc, secondDesc, convDesc, outputDesc);                \
      const ConvolutionData data = dataOf(problem, first, second, output);                        \
      auto candidates = timedCandidates(handle, problem, data, workspace, workspaceBytes);        \
      giveResults(problem, std::move(candidates), true, requested, returned, results);            \
    });                                                                                           \
  }                                                                                               \
  UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnGetConvolution##NAME##WorkspaceSize(                  \
      cudnnHandle_t handle,                                                                       \
      const cudnn##FIRST##Descriptor_t firstDesc,                                                 \
      const cudnn##SECOND##Descriptor_t secondDesc,                                               \
      const cudnnConvolutionDescriptor_t convDesc,                                                \
      const cudnn##OUTPUT##Descriptor_t outputDesc,                                               \
      cudnnConvolution##SHORT##Algo_t algorithm,                                                  \
      size_t* sizeInBytes) {                                                                      \
    return guarded(__func__, [&] {                                                                \
      const auto problem = problemOf(firstDesc, secondDesc, convDesc, outputDesc);                \
      getWorkspaceSize(handle, problem, algorithm, sizeInBytes);                                  \
    });                                                                                           \
  }
UCUDNN_SIMULATED_QUERIES(Forward, Fwd, Tensor, Filter, Tensor)
UCUDNN_SIMULATED_QUERIES(BackwardData, BwdData, Filter, Tensor, Tensor)
UCUDNN_SIMULATED_QUERIES(BackwardFilter, BwdFilter, Tensor, Tensor, Filter)
