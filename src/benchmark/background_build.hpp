// A kernel that another thread builds, while calls go on.
#pragma once

#include <memory>

#include "benchmark/background_task.hpp"
#include "kernels/source.hpp"

namespace ucudnn {

/// The built kernel runs on any handle of the device. Not thread-safe.
class BackgroundBuild {
 public:
  /// Builds on the current device. Throws Error. REQUIRES: a kernel without legacy descriptors.
  BackgroundBuild(const Problem& problem, Kernel kernel, Calls calls)
      : batch_(problem.batch()), kernel_(kernel), calls_(calls), built_([=](cudnnHandle_t handle) {
          return buildKernel(handle, problem, nullptr, kernel, calls);
        }) {}

  bool isOf(int batch, Kernel kernel, Calls calls) const noexcept {
    return batch == batch_ && kernel == kernel_ && calls == calls_;
  }
  bool isDone() const { return built_.isDone(); }
  /// Call it once. Throws Error if building does, or if there was no thread for it. REQUIRES:
  /// isDone.
  std::shared_ptr<const BuiltKernel> kernel() {
    if (auto built = built_.result()) return *std::move(built);
    throw Error(CUDNN_STATUS_INTERNAL_ERROR, "there was no thread to build it");
  }

 private:
  const int batch_;
  const Kernel kernel_;
  const Calls calls_;
  BackgroundTask<std::shared_ptr<const BuiltKernel>> built_;
};

}  // namespace ucudnn
