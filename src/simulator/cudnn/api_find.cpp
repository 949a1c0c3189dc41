// Which algorithms there are for a convolution, what they need, how long they take.
#include <algorithm>
#include <vector>

#include "simulator/cudnn/launch.hpp"

using namespace ucudnn::simulator;

namespace {

// What cuDNN's three types of perfResults have in common.
struct Candidate {
  int algorithm = 0;
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  double timeMs = -1;
  std::size_t memory = 0;
};

// In cuDNN's order: what works by time, then what does not.
void sortCandidates(std::vector<Candidate>* candidates) {
  std::stable_sort(
      candidates->begin(), candidates->end(), [](const Candidate& a, const Candidate& b) {
        const bool works = a.status == CUDNN_STATUS_SUCCESS;
        if (works != (b.status == CUDNN_STATUS_SUCCESS)) return works;
        return works && a.timeMs < b.timeMs;
      });
}

using CostFunction = decltype(&findCost);

std::vector<Candidate> allCandidates(cudnnHandle_t handle,
                                     const ConvolutionProblem& problem,
                                     CostFunction costOf = findCost) {
  std::vector<Candidate> candidates;
  for (int algorithm = 0; algorithm < algorithmCount(problem.operation); ++algorithm) {
    Candidate candidate;
    candidate.algorithm = algorithm;
    Cost cost;
    if (costOf(problem, algorithm, deviceModel(handle->device), &cost)) {
      candidate = {algorithm, CUDNN_STATUS_SUCCESS, cost.timeMs, cost.workspaceBytes};
    }
    candidates.push_back(candidate);
  }
  return candidates;
}

template <typename Perf>
void giveResults(const ConvolutionProblem& problem,
                 std::vector<Candidate> candidates,
                 bool timesKnown,
                 int requestedAlgoCount,
                 int* returnedAlgoCount,
                 Perf* perfResults) {
  sortCandidates(&candidates);
  const int count = std::min(requestedAlgoCount, static_cast<int>(candidates.size()));
  for (int i = 0; i < count; ++i) {
    const Candidate& candidate = candidates[static_cast<std::size_t>(i)];
    Perf& perf = perfResults[i];
    perf = Perf{};
    perf.algo = static_cast<decltype(perf.algo)>(candidate.algorithm);
    perf.status = candidate.status;
    perf.time = timesKnown ? static_cast<float>(candidate.timeMs) : -1.0F;
    perf.memory = candidate.memory;
    perf.determinism = isDeterministic(problem.operation, candidate.algorithm)
                           ? CUDNN_DETERMINISTIC
                           : CUDNN_NON_DETERMINISTIC;
    perf.mathType = problem.convolution.mathType;
  }
  *returnedAlgoCount = count;
}

void requireResults(cudnnHandle_t handle, int requested, const int* returned, const void* results) {
  require(handle != nullptr, "null handle");
  require(requested > 0, "the requested number of algorithms is not positive");
  require(returned != nullptr && results != nullptr, "null result pointer");
}

template <typename Perf>
void getAlgorithms(cudnnHandle_t handle,
                   const ConvolutionProblem& problem,
                   int requestedAlgoCount,
                   int* returnedAlgoCount,
                   Perf* perfResults) {
  requireResults(handle, requestedAlgoCount, returnedAlgoCount, perfResults);
  giveResults(problem,
              allCandidates(handle, problem, expectedCost),
              false,
              requestedAlgoCount,
              returnedAlgoCount,
              perfResults);
}

// Timing reads the clock on the host, which a stream being captured cannot wait for.
void requireNoCapture(cudnnHandle_t handle) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(handle->stream, &status) != cudaSuccess ||
      status != cudaStreamCaptureStatusNone) {
    refuse(CUDNN_STATUS_EXECUTION_FAILED_CUDART, "the stream is being captured");
  }
}

void waitFor(cudnnHandle_t handle) {
  if (cudaStreamSynchronize(handle->stream) != cudaSuccess) {
    refuse(CUDNN_STATUS_EXECUTION_FAILED_CUDART, "cannot wait for the stream");
  }
}

// Device memory of one call of Find.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (pointer_ != nullptr) cudaFree(pointer_);
  }
  bool allocate(std::size_t bytes) {
    if (bytes == 0 || cudaMalloc(&pointer_, bytes) == cudaSuccess) return true;
    cudaGetLastError();  // Find reports it; the client's own error stays as it was
    pointer_ = nullptr;
    return false;
  }

 private:
  void* pointer_ = nullptr;
};

template <typename Perf>
void findAlgorithms(cudnnHandle_t handle,
                    const ConvolutionProblem& problem,
                    int requestedAlgoCount,
                    int* returnedAlgoCount,
                    Perf* perfResults) {
  requireResults(handle, requestedAlgoCount, returnedAlgoCount, perfResults);
  requireNoCapture(handle);
  Scratch x;
  Scratch w;
  Scratch y;
  if (!x.allocate(extentBytes(problem.x)) || !w.allocate(extentBytes(problem.w)) ||
      !y.allocate(extentBytes(problem.y))) {
    refuse(CUDNN_STATUS_ALLOC_FAILED, "no device memory for the tensors");
  }
  std::vector<Candidate> candidates = allCandidates(handle, problem);
  for (Candidate& candidate : candidates) {
    if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
    Scratch workspace;
    if (!workspace.allocate(candidate.memory)) {
      candidate.status = CUDNN_STATUS_ALLOC_FAILED;
      candidate.timeMs = -1;
      continue;
    }
    // Nobody looks at the numbers in these buffers.
    submitConvolution(
        handle, problem, candidate.algorithm, {"findConvolution", candidate.timeMs, [] {}});
  }
  waitFor(handle);
  giveResults(problem, candidates, true, requestedAlgoCount, returnedAlgoCount, perfResults);
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
  requireTensor(problem.x, data.x, "x");
  requireTensor(problem.w, data.w, "w");
  requireTensor(problem.y, data.y, "y");
  if (workspace == nullptr) workspaceBytes = 0;
  if (!checkRange(workspace, workspaceBytes, "workspace")) {
    refuse(CUDNN_STATUS_EXECUTION_FAILED, "the workspace is not within device memory");
  }
  requireNoCapture(handle);
  std::vector<Candidate> candidates = allCandidates(handle, problem);
  ConvolutionCall call;
  call.problem = problem;
  call.data = data;
  call.workspace = workspace;
  call.workspaceBytes = workspaceBytes;
  const std::vector<Access> accesses = accessesOf(call);
  bool computed = false;
  for (Candidate& candidate : candidates) {
    if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
    if (candidate.memory > workspaceBytes) {
      candidate.status = CUDNN_STATUS_ALLOC_FAILED;
      candidate.timeMs = -1;
      continue;
    }
    // All algorithms compute the same numbers: once is enough.
    std::function<void()> work = [] {};
    if (!computed) {
      work = [call] { execute(call); };
      computed = true;
    }
    submitConvolution(handle,
                      problem,
                      candidate.algorithm,
                      {"findConvolution", candidate.timeMs, std::move(work), accesses});
  }
  waitFor(handle);
  giveResults(problem, candidates, true, requestedAlgoCount, returnedAlgoCount, perfResults);
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

cudnnStatus_t getMaxCount(const char* function,
                          cudnnHandle_t handle,
                          Operation operation,
                          int* count) {
  return guarded(function, [&] {
    require(handle != nullptr && count != nullptr, "null handle or count pointer");
    *count = algorithmCount(operation);
  });
}

void* unconst(const void* pointer) {
  return const_cast<void*>(pointer);
}

}  // namespace

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return getMaxCount(__func__, handle, Operation::kForward, count);
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return getMaxCount(__func__, handle, Operation::kBackwardData, count);
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return getMaxCount(__func__, handle, Operation::kBackwardFilter, count);
}

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
