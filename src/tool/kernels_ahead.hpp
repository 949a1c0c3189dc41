// Kernels that threads build while others run.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <deque>
#include <future>
#include <memory>
#include <vector>

// Not included: their headers can't follow the public one, which overloads cuDNN's functions.
namespace ucudnn {
class BuiltKernel;
struct KernelOffer;
struct Problem;
}  // namespace ucudnn

namespace ucudnn::tool {

struct KernelAhead {
  std::shared_ptr<const KernelOffer> offer;
  std::shared_ptr<const BuiltKernel> built;  ///< null: cuDNN can't build it
};

/// Builds all kernels of each problem (offered_kernels.hpp), a few problems ahead, one in each
/// thread: cuDNN compiles some engines for a second. Not thread-safe.
class KernelsAhead {
 public:
  /// Builds for the current device. Throws DeviceError.
  explicit KernelsAhead(std::vector<Problem> problems);
  ~KernelsAhead();
  KernelsAhead(const KernelsAhead&) = delete;
  KernelsAhead& operator=(const KernelsAhead&) = delete;

  /// Waits for those of the next problem. Throws Error if cuDNN offers nothing. REQUIRES: there is
  /// one.
  std::vector<KernelAhead> next();

 private:
  void begin();

  const std::vector<Problem> problems_;
  int device_ = 0;
  std::size_t begun_ = 0;
  std::vector<cudnnHandle_t> handles_;  ///< no two threads may use one at once
  std::deque<std::future<std::vector<KernelAhead>>> ahead_;
};

}  // namespace ucudnn::tool
