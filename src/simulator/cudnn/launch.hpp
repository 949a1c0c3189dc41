// Shared by all functions that compute: checked pointers, scaling factors, the way to the stream.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

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

/// A tensor that a kernel reads or writes.
struct TensorAccess {
  TensorShape shape;
  const void* data;
  const char* name;
  bool write = false;
};

/// The ranges of memory that the tensors cover. A tensor with gaps between its samples (groups by
/// pointer offset) covers each sample alone, so that two groups on two streams do not seem to race.
std::vector<Access> accessesOf(std::initializer_list<TensorAccess> tensors);

/// Hands a kernel to the handle's stream; throws EXECUTION_FAILED when the runtime refuses.
void submit(cudnnHandle_t handle, Work work);

/// As `submit`, for the kernels of one convolution (`work.launches`): spends the host time of their
/// launches, and of loading them when `kernel`, which names them, runs for the first time.
void submitKernels(cudnnHandle_t handle, std::uint64_t kernel, Work work);

/// As `submitKernels`, for one legacy algorithm's.
void submitConvolution(cudnnHandle_t handle,
                       const ConvolutionProblem& problem,
                       int algorithm,
                       Work work);

/// A kernel that does little but read and write the tensors once: its time is that of the memory.
/// Throws as `requireTensor` and `submit`.
void submitMemory(cudnnHandle_t handle,
                  const char* name,
                  std::initializer_list<TensorAccess> tensors,
                  std::function<void()> execute);

/// One convolution, ready to be put on a stream.
struct ConvolutionCall {
  ConvolutionProblem problem;
  ConvolutionData data;
  Epilogue epilogue;
  void* workspace = nullptr;
  std::size_t workspaceBytes = 0;  ///< what the algorithm needs and overwrites
  bool mayLie = false;             ///< as UCUDNN_SIMULATOR_LIES says
  bool deterministic = true;       ///< else its last bits differ from run to run, if bits tell
};

/// The kernels that compute a call.
struct CallKernels {
  std::uint64_t id;
  int launches;
  Cost cost;
  double error;  ///< of the sums, relative (rounding.hpp)
  bool deterministic;
  bool mayLie = false;  ///< as UCUDNN_SIMULATOR_LIES says
};

/// The kernels of a legacy algorithm, which this is.
CallKernels algorithmKernels(const ConvolutionProblem& problem, int algorithm, const Cost& cost);

/// The call as a work, with a workspace that has what `kernels.cost` says. `extraBytes`: moved
/// beside what the cost counts. Throws EXECUTION_FAILED when the memory is not all there.
Work convolutionWork(cudnnHandle_t handle,
                     const char* name,
                     ConvolutionCall call,
                     void* workspace,
                     const CallKernels& kernels,
                     double extraBytes);

/// The memory that the call reads and writes, its workspace included.
std::vector<Access> accessesOf(const ConvolutionCall& call);

/// The arithmetic that UCUDNN_SIMULATOR_ARITHMETIC asks for; the workspace is spoiled first.
void execute(const ConvolutionCall& call);

}  // namespace ucudnn::simulator
