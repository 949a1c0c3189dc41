// A kernel that another thread builds, while calls go on.
#pragma once

#include <memory>
#include <optional>

#include "benchmark/background_task.hpp"
#include "cuda/error.hpp"
#include "kernels/source.hpp"

namespace ucudnn {

/// Builds a kernel in a BackgroundTask. It runs on any handle of the device. Not thread-safe.
class BackgroundBuild {
 public:
  /// Builds on the current device. Throws Error. REQUIRES: a kernel without legacy descriptors.
  BackgroundBuild(const Problem& problem, Kernel kernel, Calls calls);

  bool isOf(int batch, Kernel kernel, Calls calls) const noexcept {
    return batch == batch_ && kernel == kernel_ && calls == calls_;
  }
  bool isDone() const { return built_.isDone(); }
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
  BackgroundTask<Built> built_;
};

}  // namespace ucudnn
