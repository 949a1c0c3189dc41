// The legacy algorithms as candidates for one convolution: what Get and Find have in common.
#pragma once

#include <algorithm>
#include <vector>

#include "simulator/cudnn/launch.hpp"

namespace ucudnn::simulator {

/// The members that cuDNN's three types of perfResults share.
struct Candidate {
  int algorithm = 0;
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  double timeMs = -1;
  std::size_t memory = 0;
};

/// In cuDNN's order: what works by time, then what does not.
void sortCandidates(std::vector<Candidate>* candidates);

/// All algorithms with what heuristics expect of them.
std::vector<Candidate> expectedCandidates(cudnnHandle_t handle, const ConvolutionProblem& problem);

/// All algorithms, timed on memory of its own. Throws where the stream is being captured, or
/// without memory for the tensors.
std::vector<Candidate> timedCandidates(cudnnHandle_t handle, const ConvolutionProblem& problem);

/// As above, on the caller's memory; the output is overwritten once.
std::vector<Candidate> timedCandidates(cudnnHandle_t handle,
                                       const ConvolutionProblem& problem,
                                       const ConvolutionData& data,
                                       void* workspace,
                                       std::size_t workspaceBytes);

void requireResults(cudnnHandle_t handle, int requested, const int* returned, const void* results);

/// Writes as many as were asked for, in that order.
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

}  // namespace ucudnn::simulator
