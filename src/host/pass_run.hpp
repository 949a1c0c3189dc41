// Runs a pass: copies parts of its tensors to the device and back, beside the kernels.
#pragma once

#include <functional>

#include "host/pass.hpp"
#include "host/staging.hpp"

namespace ucudnn {

/// A tensor, or a part of one, as a function of cuDNN takes it.
struct Operand {
  cudnnTensorDescriptor_t descriptor = nullptr;  ///< null: a filter
  void* pointer = nullptr;
};

/// One step of a pass, on the device.
struct PassPart {
  const Operand* tensors;  ///< in the order of the pass's
  bool adds;               ///< to what earlier steps have written
  void* workspace;
  std::size_t workspaceBytes;
};
using RunPart = std::function<cudnnStatus_t(const PassPart&)>;

/// Enqueues a pass by its plan: it is complete in the order of `stream`. Waits for nothing, unless
/// a tensor is pageable. `pointers` are the tensors', null where the pass alone has them. Returns
/// the first status of `run` that is an error. Throws Error. REQUIRES: the staging's lock is held,
/// and it is prepared; the lane has the plan's bytes.
cudnnStatus_t runPass(const PassPlan& plan,
                      const std::vector<void*>& pointers,
                      cudaStream_t stream,
                      Staging& staging,
                      Lane& lane,
                      const RunPart& run);

}  // namespace ucudnn
