// Whether a kernel computes what it should, and writes nothing else.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <string>

#include "benchmark/buffers.hpp"
#include "kernels/kernel.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

struct KernelToCheck {
  Problem problem;  ///< at the kernel's batch size
  std::shared_ptr<const BuiltKernel> kernel;
  std::size_t workspaceBytes = 0;
  bool accurate = true;     ///< as KernelTraits has it
  bool adds = false;        ///< calls of it add to their output, too
  bool mustRepeat = false;  ///< two runs are to give the same bits
};

struct KernelVerdict {
  enum class Kind {
    kRight,
    kWrong,         ///< never to be used for the problem
    kUnrepeatable,  ///< right, but its bits differ from run to run
    kUnchecked      ///< nothing can be said: for want of memory, or the kernel refuses to run
  };
  Kind kind = Kind::kUnchecked;
  std::string why;  ///< it is not right
};

/// Runs the kernel in scratch memory, on the handle's stream, and waits for it. Before, workspace
/// and output are NaNs, and so is what lies between the tensors. Then some outputs
/// (exact_outputs.hpp) must be near what double gives, nothing may have been written beside the
/// output and the workspace, and the ends of the inputs must be what they were. Some ms. Throws
/// Error for a failed CUDA call. REQUIRES: the stream is not being captured; the handle's device is
/// current.
KernelVerdict checkKernel(cudnnHandle_t handle,
                          const KernelToCheck& checked,
                          const ScratchBound& memory);

/// How far an output may be off: so much of itself, and so much of all outputs' root mean square.
/// Four times what kernels of the type, the math and the accuracy were seen to be off by on an
/// H200; kernels that are wrong are further off.
struct Tolerance {
  double ofItself = 0;
  double ofAll = 0;
};
Tolerance toleranceOf(const Problem& problem, bool accurate) noexcept;

}  // namespace ucudnn
