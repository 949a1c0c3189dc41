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
  const char* why = "";       ///< why it is not; never freed
  Problem problem;            ///< of default math: the client's engine tells which math is allowed
  std::int64_t x = 0, w = 0, y = 0, z = 0, bias = 0;
  double alpha = 1, beta = 0;  ///< of bias_activation_forward: the factor of z
  bool suitsEngines = false;   ///< its calls overwrite, and suit engines if aligned as it says
  cudnnHandle_t handle = nullptr;
};

/// Null if the graph has no convolution. A graph is understood if legacy descriptors can express
/// it: equal paddings before and behind, and a filter without gaps. The convolution, perhaps
/// scaled, may be followed by a bias, perhaps by a z before or behind the bias, and perhaps by an
/// activation at the end: a RELU, perhaps leaky or with an upper clip, or ELU. Throws
/// std::bad_alloc.
std::shared_ptr<const ClientGraph> readGraph(const GraphValue& graph);

/// The arithmetic of the engine of a client's plan.
struct ClientNumerics {
  bool tensorCores = false, deterministic = false;
  Transform transform = Transform::kNone;
  bool reducedSums = false;
};
/// Asks cuDNN. Throws Error.
ClientNumerics numericsOf(Operation operation, cudnnBackendDescriptor_t plan);

/// The engine of a client's plan, as a kernel of the problem. Empty: cuDNN does not say.
std::optional<Kernel> kernelOf(const Problem& problem, cudnnBackendDescriptor_t plan);

/// The convolution that is run for a client's plan. Immutable.
struct ClientConvolution {
  /// `needed`: the workspace of the client's own engine. Throws Error.
  ClientConvolution(const ClientGraph& graph, const ClientNumerics& numerics, std::size_t needed);

  Problem problem;
  ProblemDescriptors descriptors;
  bool isKnown;  ///< μ-cuDNN knows the problem that the descriptors hold
  std::int64_t x, w, y, z, bias;
  bool deterministic;
  bool suitsEngines;
  std::size_t neededBytes;
  // The context's answer.
  int algorithm = -1;  ///< that runs in its place; -1: it is chosen if no plan runs
  std::size_t grantedBytes = 0;
  bool isMeasured = false;  ///< the client was told of a measured plan's workspace

  /// The engine of the client's plan; empty: cuDNN does not say. cuDNN is asked once, on first use.
  const std::optional<Kernel>& kernel(cudnnBackendDescriptor_t plan) const {
    if (isAsked_.load(std::memory_order_acquire)) return kernel_;
    const std::lock_guard lock(asking_);
    if (!isAsked_.load(std::memory_order_relaxed)) kernel_ = kernelOf(problem, plan);
    isAsked_.store(true, std::memory_order_release);
    return kernel_;
  }
  /// Whether the client was told of less workspace than its own engine needs.
  bool needsMore() const noexcept { return neededBytes > grantedBytes; }
  /// Has the type that the legacy functions read.
  const void* alpha() const noexcept { return factor(0); }
  const void* beta() const noexcept { return factor(1); }

  bool isFused() const noexcept { return problem.operation == Operation::kBiasActivationForward; }
  /// The further arguments of a fused call. If there is no z, y is named in its place.
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
