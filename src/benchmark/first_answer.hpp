// cuDNN's first answer about a kind of convolution, which takes it far longer than others.
#pragma once

#include <optional>

#include "benchmark/background_task.hpp"
#include "benchmark/benchmark.hpp"

namespace ucudnn {

/// Has another thread ask cuDNN for all kernels at the least of a request's sizes, once in the
/// process for each kind of problem. For algorithms cuBLASLt makes tables of its kernels for a type
/// then, also for types that the client's own kernels don't need. No call is to wait for them. Not
/// thread-safe.
class FirstAnswer {
 public:
  explicit FirstAnswer(const BenchmarkRequest& request);

  /// Whether to ask now: cuDNN has answered before, or no other thread can ask. Always so for a
  /// look at engines. Throws Error. REQUIRES: the device is current.
  bool isThere();

 private:
  const Problem problem_;
  const bool withEngines_, asksAlgorithms_;
  const Calls calls_;
  std::optional<BackgroundTask<bool>> asked_;
};

}  // namespace ucudnn
