#include "executor/substitutes.hpp"

#include "support/log.hpp"

namespace ucudnn {

std::optional<int> Substitutes::choose(cudnnHandle_t handle,
                                       const Key& key,
                                       const ConvolutionCall& call) {
  const Operation operation = key.problem.operation;
  if (!call.isOfAnyAlgorithm() &&
      fitsWorkspace(handle, operation, call.descriptors, key.algorithm, key.workspaceBytes))
    return std::nullopt;
  const auto offer =
      algorithmThatFits(handle, key.problem, call.descriptors, key.workspaceBytes, key.determinism);
  if (!offer) return std::nullopt;
  if (key.determinism == Determinism::kPreferred && !offer->deterministic)
    logInfo(
        "no deterministic kernel for {} at batch {} fits {} bytes of workspace: {} runs, so it is "
        "not deterministic",
        key.problem.text(),
        key.problem.batch(),
        key.workspaceBytes,
        toText(operation, offer->kernel));
  return offer->kernel.id;
}

std::optional<cudnnStatus_t> Substitutes::run(cudnnHandle_t handle,
                                              const Problem& problem,
                                              const ConvolutionCall& call,
                                              bool deterministicOnly) noexcept {
  try {
    const ConvolutionPointers& pointers = call.pointers;
    const bool named = call.execution != nullptr
                           ? call.execution->deterministic
                           : isDeterministic(problem.operation, call.algorithm);
    const Determinism determinism = deterministicOnly ? Determinism::kRequired
                                    : named           ? Determinism::kPreferred
                                                      : Determinism::kAny;
    const Key key{problem, pointers.grantedBytes(), call.algorithm, determinism};
    const std::optional<int>& known = find(handle, key, call);
    if (!known) return std::nullopt;
    ConvolutionCall other = call;
    other.algorithm = *known;
    const cudnnStatus_t status = runNative(handle, problem.operation, other);
    if (status == CUDNN_STATUS_SUCCESS) return status;
  } catch (const std::exception&) {  // out of host memory
  }
  return std::nullopt;
}

std::optional<int> Substitutes::first(cudnnHandle_t handle,
                                      const Problem& problem,
                                      const ConvolutionCall& call,
                                      bool deterministicOnly) noexcept {
  try {
    return find(handle,
                {problem,
                 call.pointers.grantedBytes(),
                 kAnyAlgorithm,
                 deterministicOnly ? Determinism::kRequired : Determinism::kAny},
                call);
  } catch (const std::exception&) {  // out of host memory, or cuDNN fails
    return std::nullopt;
  }
}

const std::optional<int>& Substitutes::find(cudnnHandle_t handle,
                                            const Key& key,
                                            const ConvolutionCall& call) {
  const std::optional<int>* known = known_.find(key);
  return known != nullptr ? *known : (known_[key] = choose(handle, key, call));
}

}  // namespace ucudnn
