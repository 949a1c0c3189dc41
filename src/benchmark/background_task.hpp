// Work that another thread does, while calls go on.
#pragma once

#include <cudnn.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "benchmark/helper_devices.hpp"
#include "cuda/error.hpp"

namespace ucudnn {

/// Work of the current device's thread of HelperDevices, on that thread's handle: no handle may be
/// used by two threads at once (cuDNN's developer guide, "Thread Safety"). It doesn't begin if
/// nobody wants it any more. Not thread-safe.
template <typename Result>
class BackgroundTask {
 public:
  /// Throws Error.
  explicit BackgroundTask(std::function<Result(cudnnHandle_t)> work) {
    int device = 0;
    UCUDNN_CHECK_CUDA(cudaGetDevice(&device));
    // Shared, because a std::function copies what it holds. If every copy is dropped without
    // running, `done_` is a broken promise.
    const auto task = std::make_shared<std::packaged_task<Result(cudnnHandle_t)>>(std::move(work));
    done_ = task->get_future();
    HelperDevices::instance().invite(
        device,
        std::make_shared<Invitation>(
            [task, wanted = std::weak_ptr<const bool>(isWanted_)](cudnnHandle_t handle) {
              if (!wanted.expired()) (*task)(handle);
            },
            false));
  }

  /// In a child that is forked meanwhile it never is.
  bool isDone() const {
    return done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  /// Empty: there was no thread for it. Call it once. Throws what the work throws. REQUIRES:
  /// isDone.
  std::optional<Result> result() {
    try {
      return done_.get();
    } catch (const std::future_error&) {
      return std::nullopt;
    }
  }

 private:
  std::shared_ptr<const bool> isWanted_ = std::make_shared<const bool>(true);
  std::future<Result> done_;  ///< waits for nothing when it is destroyed
};

}  // namespace ucudnn
