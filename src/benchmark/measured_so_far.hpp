// What is known of a benchmark's kernels: before it runs, and from what it has measured.
#pragma once

#include <vector>

#include "benchmark/benchmark.hpp"

namespace ucudnn {

/// The measurements that a question has before it and those that it adds. What was measured for
/// other questions alone decides about expected times, and about what needn't be timed again; what
/// makes a kernel pointless must have been measured for this one (`rivalsOf`).
class MeasuredSoFar {
 public:
  explicit MeasuredSoFar(const BenchmarkRequest& request) : request_(request) {}

  /// What was known of a size when the run began.
  void addBefore(int batch, std::vector<Measurement> kernels, bool isAnchor);
  /// What has been measured at an anchor, for this question.
  void add(int batch, std::vector<Measurement> measured);
  /// What decides about the next kernels.
  void addAsked(int batch, const std::vector<Measurement>& measured);

  bool isRefused(int batch, Kernel kernel) const;
  /// Whether the kernel is not to be timed at the size again: it was refused, or all that is asked
  /// of it was measured before.
  bool isKnown(int batch, Kernel kernel) const;
  /// Whether the kernel's error is yet to be measured at the size.
  bool lacksError(int batch, Kernel kernel) const;
  /// The offer with the kernel's error.
  KernelOffer withError(KernelOffer offer) const;
  /// What was measured before, with the kernel's error where errors are asked for.
  Measurement asAsked(Measurement measured) const;
  /// What may make a kernel pointless: that which plans are made of.
  const Measurements& rivalsOf(Kernel kernel) const noexcept;

  const Measurements& atAnchors() const noexcept { return atAnchors_; }    ///< asked for or not
  const Measurements& everywhere() const noexcept { return everywhere_; }  ///< also at other sizes
  const Measurements& asked() const noexcept { return asked_; }            ///< at anchors

 private:
  const BenchmarkRequest& request_;
  Measurements atAnchors_, everywhere_, asked_;
  Measurements askedEngines_;  ///< the engines among `asked_`
  KernelErrors errors_;
};

}  // namespace ucudnn
