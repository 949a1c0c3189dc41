#include "benchmark/background_build.hpp"

#include <chrono>

#include "benchmark/helper_devices.hpp"

namespace ucudnn {

BackgroundBuild::BackgroundBuild(const Problem& problem, Kernel kernel, Calls calls)
    : batch_(problem.batch()), kernel_(kernel), calls_(calls) {
  int device = 0;
  UCUDNN_CHECK_CUDA(cudaGetDevice(&device));
  // Shared, because a std::function copies what it holds. If every copy is dropped without running,
  // `built_` is a broken promise.
  const auto task = std::make_shared<std::packaged_task<Built(cudnnHandle_t)>>(
      [problem, kernel, calls](cudnnHandle_t handle) -> Built {
        try {
          return {buildKernel(handle, problem, nullptr, kernel, calls), std::nullopt};
        } catch (const Error& error) {
          return {nullptr, error};
        } catch (const std::exception& error) {
          return {nullptr, Error(CUDNN_STATUS_INTERNAL_ERROR, error.what())};
        }
      });
  built_ = task->get_future();
  HelperDevices::instance().invite(
      device,
      std::make_shared<Invitation>(
          [task, wanted = std::weak_ptr<const bool>(isWanted_)](cudnnHandle_t handle) {
            if (!wanted.expired()) (*task)(handle);
          },
          false));
}

bool BackgroundBuild::isDone() const {
  return built_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::shared_ptr<const BuiltKernel> BackgroundBuild::kernel() {
  try {
    Built built = built_.get();
    if (built.error) throw *built.error;
    return std::move(built.kernel);
  } catch (const std::future_error&) {
    throw Error(CUDNN_STATUS_INTERNAL_ERROR, "there was no thread to build it");
  }
}

}  // namespace ucudnn
