// A program that takes deterministic kernels alone, as after torch.use_deterministic_algorithms. It
// knows nothing of μ-cuDNN.
//
//   deterministic_client graph OPERATION TYPE CALLS    the first deterministic plan that heuristics
//                                                      name, by the engines' notes, in PyTorch's
//                                                      way
//   deterministic_client skips OPERATION TYPE CALLS    the same of the fallback list, where what is
//                                                      not deterministic comes first
//   deterministic_client any OPERATION TYPE CALLS      the same, where any plan may be taken
//   deterministic_client legacy OPERATION CALLS        cuDNN's deterministic ALGO_1, which it names
//                                                      without a query, with the workspace that it
//                                                      is said to need
//
// OPERATION: 0 forward, 1 backward data, 2 backward filter, 3 (graph) fused. TYPE: float, fma (no
// TF32), half. Prints a number for
// the bits of each call's result, a line each.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "graph_client.hpp"

using namespace ucudnn::test;

namespace {

/// FNV-1a of the bits.
void print(const std::vector<double>& values) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const double value : values) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int shift = 0; shift < 64; shift += 8)
      hash = (hash ^ (bits >> shift & 255U)) * 0x100000001b3U;
  }
  std::printf("%016llx\n", static_cast<unsigned long long>(hash));
}

GraphProblem problemOf(int operation, const std::string& type) {
  GraphProblem problem;
  problem.operation = static_cast<GraphOperation>(operation);
  problem.type = type == "half" ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  problem.batch = 6;
  problem.channels = problem.filters = 8;
  problem.image = {7, 7};
  problem.filter = {3, 3};
  problem.pad = problem.stride = problem.dilation = {1, 1};
  problem.activates = true;
  return problem;
}

void runGraph(const std::string& mode, int operation, const std::string& type, int calls) {
  const GraphProblem problem = problemOf(operation, type);
  Habits habits;
  habits.modes = {CUDNN_HEUR_MODE_FALLBACK};
  if (mode != "skips") habits.modes.insert(habits.modes.begin(), CUDNN_HEUR_MODE_A);
  habits.barsNondeterministic = mode != "any";
  habits.barsTensorCores = type == "fma";
  habits.keepsOutputs = true;
  habits.executions = calls;
  cudnnHandle_t handle = nullptr;
  check(cudnnCreate(&handle), "cudnnCreate");
  {
    GraphTensors tensors(problem, true);
    GraphClient client(Api::preloaded(), handle, nullptr, problem, habits, tensors);
    const ClientResult result = client.act();
    if (!result.failure.empty() || result.chosen < 0)
      throw std::runtime_error("no plan: " + result.failure);
    for (const std::vector<double>& output : result.outputs) print(output);
  }
  check(cudnnDestroy(handle), "cudnnDestroy");
}

/// Descriptors of a convolution that cuDNN's deterministic algorithms compute.
struct Descriptors {
  Descriptors() {
    const auto type = CUDNN_DATA_FLOAT;
    const auto format = CUDNN_TENSOR_NCHW;
    check(cudnnCreateTensorDescriptor(&x), "cudnnCreateTensorDescriptor");
    check(cudnnCreateFilterDescriptor(&w), "cudnnCreateFilterDescriptor");
    check(cudnnCreateConvolutionDescriptor(&convolution), "cudnnCreateConvolutionDescriptor");
    check(cudnnSetTensor4dDescriptor(x, format, type, 6, 8, 7, 7), "x");
    check(cudnnSetFilter4dDescriptor(w, type, format, 8, 8, 3, 3), "w");
    check(cudnnSetConvolution2dDescriptor(
              convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "convolution");
  }
  ~Descriptors() {
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyConvolutionDescriptor(convolution);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  cudnnTensorDescriptor_t x = nullptr;  ///< and y's
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
};

std::size_t legacyBytes(cudnnHandle_t handle, const Descriptors& d, int operation) {
  std::size_t bytes = 0;
  const auto& c = d.convolution;
  if (operation == 0)
    check(cudnnGetConvolutionForwardWorkspaceSize(
              handle, d.x, d.w, c, d.x, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &bytes),
          "cudnnGetConvolutionForwardWorkspaceSize");
  else if (operation == 1)
    check(cudnnGetConvolutionBackwardDataWorkspaceSize(
              handle, d.w, d.x, c, d.x, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, &bytes),
          "cudnnGetConvolutionBackwardDataWorkspaceSize");
  else
    check(cudnnGetConvolutionBackwardFilterWorkspaceSize(
              handle, d.x, d.x, c, d.w, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, &bytes),
          "cudnnGetConvolutionBackwardFilterWorkspaceSize");
  return bytes;
}

void callLegacy(cudnnHandle_t handle,
                const Descriptors& d,
                int operation,
                const std::vector<void*>& data,
                const DeviceMemory& space) {
  const float one = 1, zero = 0;
  const auto& c = d.convolution;
  void *const x = data.at(0), *const w = data.at(1), *const y = data.at(2);
  if (operation == 0)
    check(cudnnConvolutionForward(handle,
                                  &one,
                                  d.x,
                                  x,
                                  d.w,
                                  w,
                                  c,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                  space.get(),
                                  space.bytes(),
                                  &zero,
                                  d.x,
                                  y),
          "cudnnConvolutionForward");
  else if (operation == 1)
    check(cudnnConvolutionBackwardData(handle,
                                       &one,
                                       d.w,
                                       w,
                                       d.x,
                                       y,
                                       c,
                                       CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                       space.get(),
                                       space.bytes(),
                                       &zero,
                                       d.x,
                                       x),
          "cudnnConvolutionBackwardData");
  else
    check(cudnnConvolutionBackwardFilter(handle,
                                         &one,
                                         d.x,
                                         x,
                                         d.x,
                                         y,
                                         c,
                                         CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                         space.get(),
                                         space.bytes(),
                                         &zero,
                                         d.w,
                                         w),
          "cudnnConvolutionBackwardFilter");
}

void runLegacy(int operation, int calls) {
  GraphTensors tensors(problemOf(operation, "float"), true);
  cudnnHandle_t handle = nullptr;
  check(cudnnCreate(&handle), "cudnnCreate");
  {
    const Descriptors descriptors;
    const DeviceMemory space(legacyBytes(handle, descriptors, operation));
    for (int i = 0; i < calls; ++i) {
      tensors.restore();
      callLegacy(handle, descriptors, operation, tensors.pointers(), space);
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      print(tensors.output());
    }
  }
  check(cudnnDestroy(handle), "cudnnDestroy");
}

}  // namespace

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  try {
    if ((mode == "graph" || mode == "skips" || mode == "any") && count == 5)
      runGraph(mode, std::atoi(words[2]), words[3], std::atoi(words[4]));
    else if (mode == "legacy" && count == 4)
      runLegacy(std::atoi(words[2]), std::atoi(words[3]));
    else
      return 2;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
  return 0;
}
