// Which kernels a benchmark has to time, given what is known and what it has measured so far.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "benchmark/measured_so_far.hpp"
#include "benchmark/task_queue.hpp"

namespace ucudnn {

/// Judges the kernels of a request. Powers of two and the mini-batch are anchors, and all sizes of
/// a look. They are measured first, from the smallest up (fast tuning: from a middle one down, then
/// up), and their results decide about the sizes between. A kernel is left out for this question
/// only, so only sizes of this question rule it out.
///
/// Judging sizes between is thread-safe once every anchor has been added.
class Question {
 public:
  explicit Question(const BenchmarkRequest& request);

  /// Asks cuDNN for its kernels at one more anchor. False: all have been asked about. Throws Error.
  bool askNext(cudnnHandle_t handle);

  struct Anchor {
    int batch = 0;
    std::shared_ptr<const ProblemDescriptors> descriptors;
    std::vector<KernelOffer> offers;  ///< within the limit, not known when the run began
  };
  /// The anchors in the order in which they are measured. REQUIRES: all have been asked about; the
  /// methods below require it too.
  const std::vector<Anchor>& anchors() const noexcept { return anchors_; }
  /// The sizes that are no anchors. Throws Error. REQUIRES: every anchor has been added.
  std::vector<int> between(cudnnHandle_t handle) const;

  /// The kernels of a size to be timed, and what judging them has shown.
  struct Judgement {
    std::vector<TimingTask> tasks;
    bool everyOfferFits = true;
    int failures = 0;  ///< offers that cuDNN failed to name
  };

  /// REQUIRES: the anchors before it have been added.
  Judgement judge(const Anchor& anchor) const;
  /// Lets known measurements of an anchor decide about the next ones, but only those that this
  /// question would have taken: the answer must not depend on earlier questions. REQUIRES: the
  /// anchors before it have been added.
  void addKnown(const Anchor& anchor);
  /// Adds the measurements at an anchor.
  void add(int batch, std::vector<Measurement> measured);
  /// REQUIRES: every anchor has been added.
  Judgement judgeBetween(cudnnHandle_t handle, int batch) const;
  /// Whether a kernel timed once at an anchor has to be timed until the stop rule is content: it is
  /// near the front, or doubtful. Before every anchor has been added, a yes may become a no.
  bool isWorthRefining(int batch, const Measurement& measured) const;
  /// Whether a single timing at an anchor is longer than those at other anchors let expect: another
  /// thread's work may have run between its events. Before every anchor has been added, a no may
  /// become a yes.
  bool isDoubtful(int batch, const Measurement& measured) const;
  TimingTask refinement(const Anchor& anchor, const Measurement& measured, int device) const;

  /// Whether kernels at the size may be part of the answer.
  bool mayBeAsked(int batch) const;
  /// Whether cuDNN offers the kernel at an anchor. Other kernels are variants that another question
  /// has found: they must not decide what is measured for this one.
  bool isOffered(Kernel kernel) const { return offered_.count(kernel) != 0; }
  const MeasuredSoFar& measured() const noexcept { return measured_; }

  /// About how many kernels will be timed.
  int expectedTimings() const;
  /// The largest workspace that a kernel to be timed may have.
  std::size_t largestWorkspace() const;
  /// Results of asking about the anchors.
  bool everyOfferFits() const noexcept { return everyOfferFits_; }
  int failures() const noexcept { return failures_; }

 private:
  bool isAnchor(int batch) const noexcept;
  bool isAsked(int batch) const;
  bool isToBeTried(int batch, const KernelOffer& offer) const;
  bool isRest(int batch) const noexcept;
  void addAnchor(cudnnHandle_t handle, int batch);
  void addOwn(cudnnHandle_t handle, const Anchor& anchor, std::vector<KernelOffer>& offers);
  void beginInTheMiddle();
  void takeOver(const Measurements& known);

  const BenchmarkRequest& request_;
  std::size_t sizesSeen_ = 0;  ///< of the request's
  std::vector<Anchor> anchors_;
  int middle_ = 0;  ///< fast tuning: the anchor that is first
  std::vector<int> between_;
  std::set<Kernel> offered_;
  std::vector<KernelOffer> undivided_;  ///< everything offered at the mini-batch
  MeasuredSoFar measured_;
  bool everyOfferFits_ = true;
  int failures_ = 0;
};

}  // namespace ucudnn
