#include "benchmark/background_build.hpp"

#include <exception>

namespace ucudnn {

BackgroundBuild::BackgroundBuild(const Problem& problem, Kernel kernel, Calls calls)
    : batch_(problem.batch()),
      kernel_(kernel),
      calls_(calls),
      built_([problem, kernel, calls](cudnnHandle_t handle) -> Built {
        try {
          return {buildKernel(handle, problem, nullptr, kernel, calls), std::nullopt};
        } catch (const Error& error) {
          return {nullptr, error};
        } catch (const std::exception& error) {
          return {nullptr, Error(CUDNN_STATUS_INTERNAL_ERROR, error.what())};
        }
      }) {}

std::shared_ptr<const BuiltKernel> BackgroundBuild::kernel() {
  std::optional<Built> built = built_.result();
  if (!built) throw Error(CUDNN_STATUS_INTERNAL_ERROR, "there was no thread to build it");
  if (built->error) throw *built->error;
  return std::move(built->kernel);
}

}  // namespace ucudnn
