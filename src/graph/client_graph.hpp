// A client's graph of one convolution as a problem, and how its plan is run in cuDNN's place.
#pragma once

#include "graph/descriptions.hpp"

#if UCUDNN_HAS_ENGINES

#include <atomic>
#include <mutex>
#include <optional>

#include "kernels/descriptors.hpp"
#include "plan/call.hpp"

namespace ucudnn {

/// Immutable.
struct ClientGraph {
  Operation operation = Operation::kForward;
  bool isUnderstood = false;  ///< the rest has been read
  Problem problem;            ///< of default math: what is allowed, the client's engine tells
  std::int64_t x = 0, w = 0, y = 0, z = 0, bias = 0;
  double alpha = 1, beta = 0;  ///< of bias_activation_forward: the factor of z
  bool suitsEngines = false;   ///< its calls overwrite and do, if their pointers are as it says
  cudnnHandle_t handle = nullptr;
};

/// Null: it has no convolution. Understood is one that legacy descriptors can say: not with other
/// paddings behind than before, and no filter with gaps; followed by nothing, or by a bias, and
/// perhaps by a z before or behind it and RELU at the end. Throws std::bad_alloc.
std::shared_ptr<const ClientGraph> readGraph(const GraphValue& graph);

/// What the engine of a client's plan computes by.
struct ClientNumerics {
  bool tensorCores = false, deterministic = false;
  Transform transform = Transform::kNone;
};
/// Asks cuDNN. Throws Error.
ClientNumerics numericsOf(Operation operation, cudnnBackendDescriptor_t plan);

/// The engine of a client's plan, as a kernel of the problem. Empty: cuDNN does not say.
std::optional<Kernel> kernelOf(const Problem& problem, cudnnBackendDescriptor_t plan);

/// What is run for a client's plan. Immutable.
struct ClientConvolution {
  /// `needed`: the workspace of the client's own engine. Throws Error.
  ClientConvolution(const ClientGraph& graph, const ClientNumerics& numerics, std::size_t needed);

  Problem problem;
  ProblemDescriptors descriptors;
  bool isKnown;  ///< what the descriptors hold is a problem that μ-cuDNN knows
  std::int64_t x, w, y, z, bias;
  bool deterministic;
  bool suitsEngines;
  std::size_t neededBytes;
  // As the context has answered.
  int algorithm = 0;
  std::size_t grantedBytes = 0;
  bool isMeasured = false;  ///< the client was told of a measured plan's workspace

  /// The engine of the client's plan; empty: cuDNN does not say. Asked once, when it is first
  /// needed.
  const std::optional<Kernel>& kernel(cudnnBackendDescriptor_t plan) const {
    if (isAsked_.load(std::memory_order_acquire)) return kernel_;
    const std::lock_guard lock(asking_);
    if (!isAsked_.load(std::memory_order_relaxed)) kernel_ = kernelOf(problem, plan);
    isAsked_.store(true, std::memory_order_release);
    return kernel_;
  }
  /// Whether the client has been told of less than its own engine needs.
  bool needsMore() const noexcept { return neededBytes > grantedBytes; }
  /// Of the type that the legacy functions read.
  const void* alpha() const noexcept { return factor(0); }
  const void* beta() const noexcept { return factor(1); }

  bool isFused() const noexcept { return problem.operation == Operation::kBiasActivationForward; }
  /// What a fused call has besides. Where there is no z, y is named in its place.
  BiasActivation fused(const void* zData, const void* biasData) const noexcept {
    return {descriptors.get().y, zData, bias_.get(), biasData, activation_.get()};
  }

 private:
  const void* factor(std::size_t i) const noexcept {
    if (problem.xType == CUDNN_DATA_DOUBLE) return &doubles_[i];
    return &floats_[i];
  }
  mutable LongForkMutex asking_;  ///< guards `kernel_` until it is asked
  mutable std::atomic<bool> isAsked_{false};
  mutable std::optional<Kernel> kernel_;
  TensorDescriptor bias_;
  ActivationDescriptor activation_;
  double doubles_[2];
  float floats_[2];
};

}  // namespace ucudnn

#endif
