// A kernel that another thread builds, while calls go on.
#pragma once

#include <future>
#include <memory>
#include <optional>

#include "cuda/error.hpp"
#include "kernels/source.hpp"

namespace ucudnn {

/// A kernel built by the device's thread of HelperDevices, on that thread's handle: no handle may
/// be used by two threads at once (cuDNN's developer guide, "Thread Safety"). The built kernel runs
/// on any handle of the device. The build doesn't begin if nobody wants it any more. Not
/// thread-safe.
class BackgroundBuild {
 public:
  /// Builds on the current device. Throws Error. REQUIRES: a kernel without legacy descriptors.
  BackgroundBuild(const Problem& problem, Kernel kernel, Calls calls);

  bool isOf(int batch, Kernel kernel, Calls calls) const noexcept {
    return batch == batch_ && kernel == kernel_ && calls == calls_;
  }
  bool isDone() const;
  /// Call it once. Throws Error if building does, or if there was no thread for it. REQUIRES:
  /// isDone.
  std::shared_ptr<const BuiltKernel> kernel();

 private:
  struct Built {
    std::shared_ptr<const BuiltKernel> kernel;
    std::optional<Error> error;
  };

  const int batch_;
  const Kernel kernel_;
  const Calls calls_;
  const std::shared_ptr<const bool> isWanted_ = std::make_shared<const bool>(true);
  std::future<Built> built_;  ///< waits for nothing when it is destroyed
};

}  // namespace ucudnn
