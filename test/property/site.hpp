// One operation of one problem on a device, with buffers of its own, and what plain cuDNN answers
// and computes there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../library/fused.hpp"
#include "scenario.hpp"

namespace ucudnn::test {

class Site {
 public:
  /// Plain cuDNN's answer about an algorithm: the status of a call with exactly the workspace that
  /// it names.
  struct Algorithm {
    cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
    std::size_t bytes = 0;
    bool deterministic = true;
  };

  /// Asks and runs plain cuDNN on the current device. Throws where cuDNN refuses a descriptor.
  Site(const ProblemChoice& choice, ucudnnOperation_t operation, int device);

  int device() const { return device_; }
  ucudnnOperation_t operation() const { return operation_; }
  Convolution& convolution() { return convolution_; }
  const std::vector<Algorithm>& algorithms() const { return algorithms_; }
  /// Those of the operation that is asked about: bias+activation has no queries of its own.
  const std::vector<Algorithm>& queried() const { return queried_; }
  /// One line that names it.
  std::string text() const;

  /// A batch of one has nothing to split: cuDNN gets its calls as they are.
  bool mayBePlanned() const { return choice_.convolution.batch > 1; }

  /// Whether plain cuDNN can run it undivided within so much workspace. `deterministic`: by a
  /// deterministic algorithm.
  bool runsWithin(std::size_t bytes, bool deterministic) const;
  bool runsAtAll() const { return runsWithin(static_cast<std::size_t>(-1), false); }
  /// A workspace size at which something changes, or beside it.
  std::size_t interestingBytes(Random& random) const;

  template <typename Handle>
  cudnnStatus_t run(Handle handle, int algorithm, Workspace workspace);

  /// Puts every buffer back as it was before any call. Waits for the device.
  void restore();

  /// Empty, or how the buffers differ from what one call of plain cuDNN leaves. Waits for the
  /// device.
  std::string difference();

 private:
  void askPlainCudnn(cudnnHandle_t native);
  cudnnStatus_t tryPlainCudnn(cudnnHandle_t native, int algorithm, std::size_t bytes, bool fused);
  std::string resultDifference(const std::vector<char>& result);
  std::string sumDifference(const std::vector<char>& result);

  ProblemChoice choice_;
  ucudnnOperation_t operation_;
  int device_;
  Convolution convolution_;
  std::unique_ptr<Fused> fused_;
  std::vector<Algorithm> algorithms_, queried_;
  std::vector<char> initial_[4];  ///< x, w, y and z
  std::vector<char> expected_;    ///< of the output
};

}  // namespace ucudnn::test
