// Sums of convolutions that were computed before: a benchmark runs many kernels on the same
// numbers.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "simulator/cudnn/convolution.hpp"

namespace ucudnn::simulator {

/// The sums of a convolution's outputs, in the order (n, c, d, h, w).
using Sums = std::vector<double>;

/// The latest convolutions of few bytes, with their inputs. Thread-safe.
class KnownSums {
 public:
  static KnownSums& instance();

  /// Null: no convolution of the same inputs is kept.
  std::shared_ptr<const Sums> find(const ConvolutionProblem& problem, const ConvolutionData& data);
  void keep(const ConvolutionProblem& problem,
            const ConvolutionData& data,
            std::shared_ptr<const Sums> sums);

 private:
  struct Entry {
    ConvolutionProblem problem;
    std::vector<char> first, second;  ///< the inputs' bytes
    std::shared_ptr<const Sums> sums;
  };
  static constexpr std::size_t kMostEntries = 64;
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;  ///< of an entry

  std::mutex mutex_;
  std::vector<std::shared_ptr<const Entry>> entries_;  ///< the latest last
};

}  // namespace ucudnn::simulator
