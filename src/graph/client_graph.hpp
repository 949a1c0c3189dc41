// A client's graph of one convolution as a problem, and how its plan is run in cuDNN's place.
#pragma once

#include "graph/descriptions.hpp"

#if UCUDNN_HAS_ENGINES

#include "kernels/descriptors.hpp"
#include "plan/call.hpp"

namespace ucudnn {

/// Immutable.
struct ClientGraph {
  Operation operation = Operation::kForward;
  bool isUnderstood = false;  ///< the rest has been read
  Problem problem;            ///< of default math: what is allowed, the client's engine tells
  std::int64_t x = 0, w = 0, y = 0;
  double alpha = 1, beta = 0;
  cudnnHandle_t handle = nullptr;
};

/// Null: it has no convolution. Understood is one that legacy descriptors can say: not with other
/// paddings behind than before, and no filter with gaps. Throws std::bad_alloc.
std::shared_ptr<const ClientGraph> readGraph(const GraphValue& graph);

/// What the engine of a client's plan computes by.
struct ClientNumerics {
  bool tensorCores = false, deterministic = false;
};
/// Asks cuDNN. Throws Error.
ClientNumerics numericsOf(cudnnBackendDescriptor_t plan);

/// What is run for a client's plan. Immutable.
struct ClientConvolution {
  /// `needed`: the workspace of the client's own engine. Throws Error.
  ClientConvolution(const ClientGraph& graph, const ClientNumerics& numerics, std::size_t needed);

  Problem problem;
  ProblemDescriptors descriptors;
  std::int64_t x, w, y;
  bool deterministic;
  std::size_t neededBytes;
  // As the context has answered.
  int algorithm = 0;
  std::size_t grantedBytes = 0;

  /// Of the type that the legacy functions read.
  const void* alpha() const noexcept { return factor(0); }
  const void* beta() const noexcept { return factor(1); }

 private:
  const void* factor(std::size_t i) const noexcept {
    if (problem.xType == CUDNN_DATA_DOUBLE) return &doubles_[i];
    return &floats_[i];
  }
  double doubles_[2];
  float floats_[2];
};

}  // namespace ucudnn

#endif
