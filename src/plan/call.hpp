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
  /// The call's, as long as the plan is there; null: it is not one that μ-cuDNN knows.
  const Problem* problem = nullptr;
  const Kernel* kernel = nullptr;  ///< the plan's; null: not known
  bool repeatsBits = false;        ///< all calls must compute what the first does, in each run
  Ticket* ticket = nullptr;        ///< the plan's; null: it keeps none

  /// Whether the client's plan can run as it is.
  bool fits(const ConvolutionPointers& pointers) const noexcept {
    return neededBytes == 0 || (workspace != nullptr && workspace == pointers.workspace &&
                                neededBytes <= pointers.workspaceBytes);
  }
};

/// A convolution call as the client makes it.
struct ConvolutionCall {
  ConvolutionDescriptors descriptors;
  ConvolutionPointers pointers;
  const BiasActivation* fused = nullptr;       ///< of bias_activation_forward
  int algorithm = 0;                           ///< the one that the client named, or would get
  const ClientExecution* execution = nullptr;  ///< null: by the legacy API
};

/// Reads what a fused call has besides. False: not planned (z is not laid out as y is, so that it
/// cannot be cut in step).
bool readFused(const ConvolutionCall& call, Problem& problem) noexcept;

inline Ticket* ticketOf(const ConvolutionCall& call) noexcept {
  return call.execution != nullptr ? call.execution->ticket : nullptr;
}

/// What a call's descriptors hold, which are read into `read`; of a client's execution it is known.
/// Null: not one that μ-cuDNN knows.
inline const Problem* problemOf(Operation operation,
                                const ConvolutionCall& call,
                                Problem& read) noexcept {
  if (call.execution != nullptr) return call.execution->problem;
  return readProblem(operation, call.descriptors, read) ? &read : nullptr;
}

/// Reads what a call has besides its descriptors. False: not planned.
inline bool readRest(const ConvolutionCall& call, Problem& read) noexcept {
  return call.fused == nullptr || call.execution != nullptr || readFused(call, read);
}

/// Whether one of the call's scaling factors is there and 0.
inline bool isZero(const void* factor, const Problem& problem) noexcept {
  return factor != nullptr && valueOf(factor, problem.xType) == 0;
}

/// Of a fused one beta is z's factor, which its problem has.
inline bool overwrites(const ConvolutionCall& call, const Problem& problem) noexcept {
  return call.fused != nullptr || isZero(call.pointers.beta, problem);
}

inline CallKind kindOf(const ConvolutionCall& call, const Problem& problem) noexcept {
  if (!suitsEngines(problem, call.pointers, call.fused)) return CallKind::kOther;
  return overwrites(call, problem) ? CallKind::kOverwriting : CallKind::kAdding;
}

/// Which of a plan's alternatives runs the call; null: none. The call's kind is looked for only
/// where it matters.
inline const Plan* choose(const Plan& plan,
                          const ConvolutionCall& call,
                          const Problem& problem) noexcept {
  return plan.runs == CallKind::kOther ? &plan : plan.of(kindOf(call, problem));
}

/// Whether calls like this have yet to be planned: the plan is for those that overwrite.
inline bool isOnlyForOthers(const Plan& plan,
                            const ConvolutionCall& call,
                            const Problem& problem) noexcept {
  return plan.runs == CallKind::kOverwriting && !overwrites(call, problem) &&
         suitsEngines(problem, call.pointers, call.fused);
}

/// What a plan is asked to run for a call of a kind: beside its engines it has what runs others.
constexpr CallKind plannedFor(CallKind kind) noexcept {
  return kind == CallKind::kOther ? CallKind::kOverwriting : kind;
}

}  // namespace ucudnn
