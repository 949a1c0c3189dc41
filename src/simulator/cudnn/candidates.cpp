#include "simulator/cudnn/candidates.hpp"

#include <utility>

namespace ucudnn::simulator {
namespace {

using CostFunction = decltype(&findCost);

std::vector<Candidate> allCandidates(cudnnHandle_t handle,
                                     const ConvolutionProblem& problem,
                                     CostFunction costOf) {
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

}  // namespace

void sortCandidates(std::vector<Candidate>* candidates) {
  std::stable_sort(
      candidates->begin(), candidates->end(), [](const Candidate& a, const Candidate& b) {
        const bool works = a.status == CUDNN_STATUS_SUCCESS;
        if (works != (b.status == CUDNN_STATUS_SUCCESS)) return works;
        return works && a.timeMs < b.timeMs;
      });
}

std::vector<Candidate> expectedCandidates(cudnnHandle_t handle, const ConvolutionProblem& problem) {
  return allCandidates(handle, problem, expectedCost);
}

std::vector<Candidate> timedCandidates(cudnnHandle_t handle, const ConvolutionProblem& problem) {
  requireNoCapture(handle);
  Scratch x;
  Scratch w;
  Scratch y;
  if (!x.allocate(extentBytes(problem.x)) || !w.allocate(extentBytes(problem.w)) ||
      !y.allocate(extentBytes(problem.y))) {
    refuse(CUDNN_STATUS_ALLOC_FAILED, "no device memory for the tensors");
  }
  std::vector<Candidate> candidates = allCandidates(handle, problem, findCost);
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
  return candidates;
}

std::vector<Candidate> timedCandidates(cudnnHandle_t handle,
                                       const ConvolutionProblem& problem,
                                       const ConvolutionData& data,
                                       void* workspace,
                                       std::size_t workspaceBytes) {
  requireTensor(problem.x, data.x, "x");
  requireTensor(problem.w, data.w, "w");
  requireTensor(problem.y, data.y, "y");
  if (workspace == nullptr) workspaceBytes = 0;
  if (!checkRange(workspace, workspaceBytes, "workspace")) {
    refuse(CUDNN_STATUS_EXECUTION_FAILED, "the workspace is not within device memory");
  }
  requireNoCapture(handle);
  std::vector<Candidate> candidates = allCandidates(handle, problem, findCost);
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
  return candidates;
}

void requireResults(cudnnHandle_t handle, int requested, const int* returned, const void* results) {
  require(handle != nullptr, "null handle");
  require(requested > 0, "the requested number of algorithms is not positive");
  require(returned != nullptr && results != nullptr, "null result pointer");
}

}  // namespace ucudnn::simulator
