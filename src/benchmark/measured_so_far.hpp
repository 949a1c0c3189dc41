// The known measurements of a benchmark's kernels: those from before the run, and its own.
#pragma once

#include <vector>

#include "benchmark/benchmark.hpp"

namespace ucudnn {

/// The measurements that a question finds and those that it adds. Measurements for other questions
/// decide only about expected times, and about which kernels needn't be timed again. Only
/// measurements for this question make a kernel pointless (`rivalsOf`).
class MeasuredSoFar {
 public:
  explicit MeasuredSoFar(const BenchmarkRequest& request) : request_(request) {}

  /// Adds the measurements of a size that were known when the run began.
  void addBefore(int batch, std::vector<Measurement> kernels, bool isAnchor);
  /// Adds the measurements at an anchor, for this question.
  void add(int batch, std::vector<Measurement> measured);
  /// Adds measurements that decide about the next kernels.
  void addAsked(int batch, const std::vector<Measurement>& measured);

  bool isRefused(int batch, Kernel kernel) const;
  /// Whether the kernel is not to be timed at the size again: it was refused, or was measured
  /// before with all that is asked.
  bool isKnown(int batch, Kernel kernel) const;
  /// Whether the kernel's error is yet to be measured at the size.
  bool lacksError(int batch, Kernel kernel) const;
  /// The offer with the kernel's error.
  KernelOffer withError(KernelOffer offer) const;
  /// An earlier measurement, with the kernel's error if errors are asked for.
  Measurement asAsked(Measurement measured) const;
  /// The measurements that may make a kernel pointless: those of kernels that plans are made of.
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
