// Calls of operations beside the convolutions on tensors in host memory.
#pragma once

#include <functional>
#include <optional>

#include "context/context.hpp"
#include "host/pass_run.hpp"

namespace ucudnn {

/// A call of one operation that is no convolution, and how its tensors may be cut.
struct SmallCall {
  struct Tensor {
    Operand operand;
    bool mayRepeat = false;  ///< its size may be 1 along an axis that has others
  };

  const char* name;  ///< cuDNN's function
  unsigned axes;     ///< bits of dimensions along which parts are independent, or add up
  const Tensor* tensors;
  std::size_t count;  ///< the last one is the output
  std::size_t whole;  ///< which of them has the sizes of the axes
  const void* beta;   ///< the output's factor

  const Tensor* begin() const noexcept { return tensors; }
  const Tensor* end() const noexcept { return tensors + count; }
};
constexpr unsigned kAllAxes = ~0U;

/// Runs an operation on inputs and output, in this order, by the output's factor.
using RunOperands = std::function<cudnnStatus_t(const Operand* tensors, const void* beta)>;

/// Passes of a handle on which UCUDNN_DEVICE_MEMORY is set.
class HostPass {
 public:
  /// Empty: all tensors are on the device, or cuDNN will refuse the arguments.
  static std::optional<cudnnStatus_t> run(Context& context,
                                          const SmallCall& call,
                                          const RunOperands& run) noexcept;

  /// Plans a pass, unless the handle has its plan, and enqueues it. `pointers` are the tensors',
  /// null where the pass alone has them. Throws Error. REQUIRES: the handle's device is current.
  static cudnnStatus_t run(Context& context,
                           const char* name,
                           const Pass& pass,
                           const std::vector<void*>& pointers,
                           const RunPart& run);

  /// Reads a tensor, without its place. Throws Error if it can't be cut into parts.
  static PassTensor read(cudnnTensorDescriptor_t descriptor);

 private:
  static std::shared_ptr<const PassPlan> findPlan(Context& context,
                                                  const char* name,
                                                  const Pass& pass,
                                                  const CallStream& stream);
};

}  // namespace ucudnn
