// Calls on tensors in host memory.
#pragma once

#include <optional>
#include <unordered_map>

#include "context/context.hpp"

namespace ucudnn {

/// One call, if UCUDNN_DEVICE_MEMORY is set. Its tiles are calls on the device, which run as any
/// (CallPath::runOnDevice).
class HostCall {
 public:
  /// Empty: all tensors are on the device.
  static std::optional<cudnnStatus_t> run(Context& context,
                                          Operation operation,
                                          const ConvolutionCall& call,
                                          LayerId layer) noexcept;

  /// Whether a query that runs kernels must be refused, because a tensor is in host memory.
  static bool refuses(const Context& context, const ConvolutionPointers& pointers) noexcept;

  /// A convolution without descriptors, by any tensors. Throws Error.
  static cudnnStatus_t convolve(Context& context,
                                const Problem& problem,
                                const ConvolutionPointers& pointers,
                                const void* bias);

 private:
  HostCall(Context& context, const Problem& problem, const ConvolutionCall& call, LayerId layer)
      : context_(context), problem_(problem), call_(call), layer_(layer) {}

  cudnnStatus_t run(const HostOperands& operands);
  std::shared_ptr<const HostPlan> planForCapture(const CallStream& stream,
                                                 const HostOperands& operands) const;
  std::shared_ptr<const HostPlan> findPlan(const HostOperands& operands);
  std::shared_ptr<const HostPlan> makePlan(const HostOperands& operands);
  std::shared_ptr<const Plan> measure(const HostPlan& plan, PlanRequest request);
  bool askForTime(const HostPlan& plan);

  Staging& staging() const noexcept { return *context_.now_->staging; }

  Context& context_;
  const Problem problem_;  ///< a copy: the tiles' calls read problems of their own
  const ConvolutionCall& call_;
  const LayerId layer_;
  std::unordered_map<Problem, double, ProblemHash> knownMs_;
  double ratio_ = 1;  ///< the least of a known time to its estimate
};

}  // namespace ucudnn
