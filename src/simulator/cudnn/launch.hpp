// What every function that computes shares: checked pointers, scaling factors, the way to the
// stream.
#pragma once

#include <functional>

#include "simulator/cudnn/algorithms.hpp"
#include "simulator/cudnn/convolution.hpp"
#include "simulator/cudnn/descriptors.hpp"

namespace ucudnn::simulator {

/// alpha and beta are double for tensors that compute in double, else float. Throws BAD_PARAM for
/// null.
double readFactor(const void* factor, cudnnDataType_t type);

/// Throws: BAD_PARAM for null, EXECUTION_FAILED when the memory is not all there (a GPU would
/// fault).
void requireTensor(const TensorShape& shape, const void* data, const char* what);

/// Hands a kernel to the handle's stream; throws EXECUTION_FAILED when the runtime refuses.
void submit(cudnnHandle_t handle,
            const char* name,
            double durationMs,
            std::function<void()> execute);

/// A kernel that only moves memory.
void submitMemory(cudnnHandle_t handle,
                  const char* name,
                  double bytes,
                  std::function<void()> execute);

/// One convolution, ready to be put on a stream.
struct ConvolutionCall {
  ConvolutionProblem problem;
  ConvolutionData data;
  Epilogue epilogue;
  void* workspace = nullptr;
  std::size_t workspaceBytes = 0;  ///< what the algorithm needs and overwrites
};

/// The arithmetic that UCUDNN_SIMULATOR_ARITHMETIC asks for; the workspace is spoiled first.
void execute(const ConvolutionCall& call);

}  // namespace ucudnn::simulator
