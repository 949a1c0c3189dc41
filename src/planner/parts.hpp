// How a batch is divided while nothing is measured: in few parts, by one kernel.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "optimizer/configuration.hpp"
#include "planner/kernel_checks.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// The parts that so much workspace takes within the request's limit.
int partsWithin(const PlanRequest& request, double bytes);

/// Puts together the parts of one kernel.
class Parts {
 public:
  /// REQUIRES: the arguments outlive it.
  Parts(const PlanRequest& request, Kernel kernel, PreparedKernels& prepared, KernelChecks& checks)
      : request_(request),
        kernel_(kernel),
        prepared_(prepared),
        checks_(checks),
        left_(request.problem.batch()) {}

  /// Makes few parts that run within the limit, at least `count`, equal or about equal: a small
  /// rest would take nearly as long as a large part. But if they are fewer then, all but the last
  /// have the copy of their output in the samples behind them, in the output. No part is a large
  /// problem, because the kernel is slow for these. Returns false if cuDNN can't run the kernel so,
  /// or the parts would be too short. Throws Error.
  bool divide(int count);
  /// Adds as many parts of the size as the batch has, and one of the rest. Returns false if such a
  /// part does not run within the limit. Throws Error.
  bool addAll(int batch) { return add(batch, left_ / batch) && (left_ == 0 || add(left_, 1)); }

  /// Whether the kernel runs the whole batch within the limit. Throws Error.
  bool fitsWhole() { return offer(request_.problem.batch()).has_value(); }
  /// Samples of the largest part.
  int largest() const noexcept;
  /// Whether cuDNN failed to say what runs. It may say so another time.
  bool failed() const noexcept { return failures_ > 0; }

  /// The step has no time, because none is known. Null: the kernel is wrong. Throws Error.
  std::shared_ptr<const Plan> plan() const;

 private:
  /// How the kernel runs a part of so many samples. `elsewhere`: bytes of its workspace that lie in
  /// the output. Empty: the others are not within the limit. cuDNN isn't asked where our copies
  /// alone are not. Throws Error.
  std::optional<KernelOffer> offer(int batch, std::size_t elsewhere = 0);
  /// Bytes of such a part's workspace for the copy of its output; 0: there is none. Throws Error.
  std::size_t outputCopyBytes(int batch) const;
  /// Adds `count` parts of the size. Returns false if such a part does not run within the limit.
  /// Throws Error.
  bool add(int batch, int count, std::size_t elsewhere = 0);
  /// Takes all parts back.
  void clear();

  std::vector<int> sizesWithCopiesBehind(int fitting, std::size_t bytes, int count, int unit);
  bool haveRoomBehind(const std::vector<int>& sizes) const;
  bool addWithCopiesBehind(int fitting, std::size_t bytes, int count);
  bool addWithCopiesBehind(const std::vector<int>& sizes);
  bool addAboutEqual(int count, int unit);

  const PlanRequest& request_;
  const Kernel kernel_;
  PreparedKernels& prepared_;
  KernelChecks& checks_;
  int left_;
  int failures_ = 0;
  int asked_ = 0;  ///< how often cuDNN was
  /// The workspace of the last `offer`, or what our copies take of it; 0: cuDNN can't run it.
  std::size_t leastBytes_ = 0;
  Configuration configuration_;
  std::vector<std::size_t> elsewhere_;  ///< of each group of parts
  Measurements measurements_;
};

}  // namespace ucudnn
