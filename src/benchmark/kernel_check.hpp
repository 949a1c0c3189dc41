// Whether a kernel computes what it should, and writes nothing else.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "benchmark/buffers.hpp"
#include "benchmark/check_memory.hpp"
#include "benchmark/exact_outputs.hpp"
#include "benchmark/kernel_timer.hpp"
#include "cuda/owners.hpp"
#include "kernels/kernel.hpp"
#include "problem/problem.hpp"
#include "support/fork.hpp"

namespace ucudnn {

struct KernelToCheck {
  int batch = 0;
  std::shared_ptr<const BuiltKernel> kernel;  ///< at the batch size
  std::size_t workspaceBytes = 0;
  bool accurate = true;     ///< as KernelTraits has it
  bool adds = false;        ///< calls of it add to their output, too
  bool mustRepeat = false;  ///< two runs, one beside other work, are to give the same bits
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

/// Expected outputs of the latest checks. The host takes about as long to compute them as the
/// device takes for a kernel. Thread-safe.
class KnownOutputs {
 public:
  /// Throws std::bad_alloc. REQUIRES: hasExactOutputs.
  std::shared_ptr<const OutputsToCheck> of(const Problem& problem);

 private:
  static constexpr std::size_t kMostKnown = 32;  ///< of 5 KB each

  ForkMutex mutex_;
  std::deque<std::pair<Problem, std::shared_ptr<const OutputsToCheck>>> latest_;
};

/// Runs kernels of one problem, at any batch size, in the same scratch memory, on the handle's
/// stream, and waits for each. Before, workspace and output are NaNs, and so is what lies between
/// the tensors. Then some outputs (exact_outputs.hpp) must be near what double gives, nothing may
/// have been written beside the output and the workspace, and the ends of the inputs must be what
/// they were. Throws Error for a failed CUDA call. REQUIRES: the stream is not being captured; the
/// handle's device is current; it is used in one thread, and in one scope.
class KernelChecker {
 public:
  KernelChecker(cudnnHandle_t handle,
                const Problem& problem,
                const ScratchBound& bound,
                KnownOutputs& known);

  /// The next check allocates memory that is enough for this kernel, too. Inputs are written once
  /// for kernels of one batch size that are checked one after another.
  void reserve(const KernelToCheck& checked);
  KernelVerdict check(const KernelToCheck& checked);

 private:
  bool run(const KernelToCheck& checked);

  const RelaxedCapture relaxed_;
  const Problem problem_;
  KnownOutputs& known_;
  const bool canCheck_;
  CheckMemory memory_;
  KernelTimer timer_;
};

/// An output may be off by a part of itself, and by a part of all outputs' root mean square. Both
/// are four times what right kernels of the type, the math and the accuracy were off by on an H200,
/// but that TF32's part of itself is what cutting off can take. Wrong kernels are farther off.
struct Tolerance {
  double ofItself = 0;
  double ofAll = 0;
};
Tolerance toleranceOf(const Problem& problem, bool accurate) noexcept;

}  // namespace ucudnn
