#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/engine_calls.hpp"
#include "kernels/factor.hpp"
#include "kernels/kernel.hpp"
#include "kernels/native.hpp"
#include "plan/plan.hpp"

namespace ucudnn {

/// Where a client's plan keeps what its last call has found (HotPlans). 0: nothing.
using Ticket = std::atomic<std::uint64_t>;

/// A call that the client makes by an execution plan of its own (cuDNN's graph API).
struct ClientExecution {
  cudnnBackendDescriptor_t plan, pack;
  void* workspace;          ///< the pack's
  std::size_t neededBytes;  ///< the plan's workspace
  bool deterministic;
  /// The call's problem, as long as the plan exists; null: μ-cuDNN does not know it.
  const Problem* problem = nullptr;
  const Kernel* kernel = nullptr;  ///< the plan's; null: not known
  bool repeatsBits = false;        ///< all calls must compute the first one's bits, in each run
  Ticket* ticket = nullptr;        ///< the plan's; null: it keeps none

  /// Whether the client's plan can run as it is.
  bool fits(const ConvolutionPointers& pointers) const noexcept {
    return neededBytes == 0 || (workspace != nullptr && workspace == pointers.workspace &&
                                neededBytes <= pointers.workspaceBytes);
  }
};

/// The algorithm of calls that μ-cuDNN makes and nobody has named one for.
inline constexpr int kAnyAlgorithm = -1;
/// The one that cuDNN surely has for fused calls.
inline constexpr int kFusedAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;

/// A convolution call as the client makes it.
struct ConvolutionCall {
  ConvolutionDescriptors descriptors;
  ConvolutionPointers pointers;
  const BiasActivation* fused = nullptr;       ///< of bias_activation_forward
  int algorithm = 0;                           ///< the one that the client named, or would get
  const ClientExecution* execution = nullptr;  ///< null: a call of the legacy API

  bool isOfAnyAlgorithm() const noexcept {
    return algorithm == kAnyAlgorithm && execution == nullptr;
  }
};

/// Adds to the problem what only a fused call has: z and the activation. Returns false if the call
/// is not planned: z does not have y's layout, so the two can't be cut in step.
bool readFused(const ConvolutionCall& call, Problem& problem) noexcept;

inline Ticket* ticketOf(const ConvolutionCall& call) noexcept {
  return call.execution != nullptr ? call.execution->ticket : nullptr;
}

/// The call's problem. Reads the descriptors into `read`, unless the client's execution has brought
/// the problem. Null if μ-cuDNN does not know it.
inline const Problem* problemOf(Operation operation,
                                const ConvolutionCall& call,
                                Problem& read) noexcept {
  if (call.execution != nullptr) return call.execution->problem;
  return readProblem(operation, call.descriptors, read) ? &read : nullptr;
}

/// Adds to the problem what the call's descriptors don't say. Returns false if it is not planned.
inline bool readRest(const ConvolutionCall& call, Problem& read) noexcept {
  return call.fused == nullptr || call.execution != nullptr || readFused(call, read);
}

/// Whether the scaling factor is there and 0.
inline bool isZero(const void* factor, const Problem& problem) noexcept {
  return factor != nullptr && valueOf(factor, problem.xType) == 0;
}

/// A fused call always overwrites: its beta is z's factor, which belongs to its problem.
inline bool overwrites(const ConvolutionCall& call, const Problem& problem) noexcept {
  return call.fused != nullptr || isZero(call.pointers.beta, problem);
}

inline CallKind kindOf(const ConvolutionCall& call, const Problem& problem) noexcept {
  if (!suitsEngines(problem, call.pointers, call.fused)) return CallKind::kOther;
  return overwrites(call, problem) ? CallKind::kOverwriting : CallKind::kAdding;
}

/// The plan's alternative that runs the call; null: none. The call's kind is looked up only if it
/// matters.
inline const Plan* choose(const Plan& plan,
                          const ConvolutionCall& call,
                          const Problem& problem) noexcept {
  return plan.runs == CallKind::kOther ? &plan : plan.of(kindOf(call, problem));
}

/// Whether calls like this have yet to be planned, because the plan is for those that overwrite.
inline bool isOnlyForOthers(const Plan& plan,
                            const ConvolutionCall& call,
                            const Problem& problem) noexcept {
  return plan.runs == CallKind::kOverwriting && !overwrites(call, problem) &&
         suitsEngines(problem, call.pointers, call.fused);
}

/// The kind that a call's plan is requested for. A plan with engines also has one for other calls.
constexpr CallKind plannedFor(CallKind kind) noexcept {
  return kind == CallKind::kOther ? CallKind::kOverwriting : kind;
}

}  // namespace ucudnn
