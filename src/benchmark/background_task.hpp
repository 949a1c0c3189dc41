// Work that another thread does, while calls go on.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "benchmark/helper_devices.hpp"
#include "cuda/error.hpp"

namespace ucudnn {

/// Work of the device's thread of HelperDevices, on that thread's handle: no handle may be used by
/// two threads at once (cuDNN's developer guide, "Thread Safety"). It doesn't begin if nobody wants
/// it any more. Not thread-safe.
template <typename Result>
class BackgroundTask {
 public:
  /// Throws nothing but Error. Needs nothing that may be gone by then.
  using Work = std::function<Result(cudnnHandle_t)>;

  /// For the current device. Throws Error.
  explicit BackgroundTask(Work work);

  bool isDone() const {
    return done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  /// Empty if there was no thread for it. Call it once. Throws Error if the work does. REQUIRES:
  /// isDone.
  std::optional<Result> result();

 private:
  struct Done {
    std::optional<Result> result;
    std::optional<Error> error;
  };

  const std::shared_ptr<const bool> isWanted_ = std::make_shared<const bool>(true);
  std::future<Done> done_;  ///< waits for nothing when it is destroyed
};

template <typename Result>
BackgroundTask<Result>::BackgroundTask(Work work) {
  int device = 0;
  UCUDNN_CHECK_CUDA(cudaGetDevice(&device));
  // Shared, because a std::function copies what it holds. If every copy is dropped without running,
  // `done_` is a broken promise.
  const auto task = std::make_shared<std::packaged_task<Done(cudnnHandle_t)>>(
      [work = std::move(work)](cudnnHandle_t handle) -> Done {
        try {
          return {work(handle), std::nullopt};
        } catch (const Error& error) {
          return {std::nullopt, error};
        } catch (const std::exception& error) {
          return {std::nullopt, Error(CUDNN_STATUS_INTERNAL_ERROR, error.what())};
        }
      });
  done_ = task->get_future();
  HelperDevices::instance().invite(
      device,
      std::make_shared<Invitation>(
          [task, wanted = std::weak_ptr<const bool>(isWanted_)](cudnnHandle_t handle) {
            if (!wanted.expired()) (*task)(handle);
          },
          false));
}

template <typename Result>
std::optional<Result> BackgroundTask<Result>::result() {
  try {
    Done done = done_.get();
    if (done.error) throw *done.error;
    return std::move(done.result);
  } catch (const std::future_error&) {
    return std::nullopt;
  }
}

}  // namespace ucudnn
