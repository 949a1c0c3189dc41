// Answers queries.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "context/context.hpp"

namespace ucudnn {

/// One entry of a query's answer, as cudnnConvolution*AlgoPerf_t, for all three operations.
struct AlgorithmPerformance {
  int algorithm = 0;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  float timeMs = 0;
  std::size_t memory = 0;
  cudnnDeterminism_t determinism = CUDNN_DETERMINISTIC;
  cudnnMathType_t mathType = CUDNN_DEFAULT_MATH;
};

/// A client's query by Get*Algorithm_v7, Find* or Find*Ex.
struct AlgorithmQuery {
  std::optional<std::size_t> limitBytes;   ///< empty: the client named none
  bool find = false;                       ///< the client expects to wait for measurements
  const TensorBuffers* buffers = nullptr;  ///< FindEx's
  int most = 1;                            ///< entries that the client reads
};

/// Answers questions about one problem on one handle. An empty answer means: ask cuDNN. All throw
/// Error. REQUIRES: Context::useDevice.
class Queries {
 public:
  Queries(Context& context,
          Operation operation,
          const ConvolutionDescriptors& descriptors,
          LayerId layer = -1) noexcept
      : context_(context),
        descriptors_(descriptors),
        layer_(layer),
        isRead_(readProblem(operation, descriptors, problem_)) {}

  bool isRead() const noexcept { return isRead_; }
  const Problem& problem() const noexcept { return problem_; }

  /// Our plan first, then cuDNN's own by time. Remembers the limit for later calls on this handle.
  std::vector<AlgorithmPerformance> algorithms(const AlgorithmQuery& query);
  /// The answer of GetWorkspaceSize for an algorithm.
  std::optional<std::size_t> workspaceBytes(int algorithm);

  // For the functions of diagnosis.h.
  std::shared_ptr<const Plan> plan(std::size_t limitBytes) const;
  Measurements candidates() const;
  std::vector<Configuration> front() const;

 private:
  const Snapshot& now() const noexcept { return *context_.now_; }
  Snapshot::Route route();
  Measuring measuringFor(bool mayMeasure) const;
  std::size_t unstatedLimit(bool find);
  std::vector<AlgorithmPerformance> answerFrom(const Plan& plan,
                                               const PlanRequest& query,
                                               int most) const;
  std::vector<AlgorithmPerformance> answerUnmeasured(std::size_t limitBytes) const;
  std::vector<AlgorithmPerformance> answerOwned(std::size_t limitBytes) const;
  std::shared_ptr<const Plan> planFor(const StatedLimit& limit, bool deterministic) const;
  std::optional<std::size_t> unplannedBytes(int algorithm, std::size_t limitBytes) const;
  std::optional<std::size_t> nativeBytes(int algorithm) const;
  std::size_t toName(const ConvolutionDescriptors& descriptors,
                     int algorithm,
                     std::size_t bytes) const;
  std::size_t keepWithin(std::size_t limitBytes, int algorithm, std::size_t bytes) const;
  std::size_t withinCap(int algorithm, std::size_t bytes) const;

  Context& context_;
  const ConvolutionDescriptors& descriptors_;
  const LayerId layer_;
  Problem problem_;
  const bool isRead_;
};

}  // namespace ucudnn
