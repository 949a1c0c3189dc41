// Finds the shares of a mini-batch if each time has to be planned first.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "optimizer/shares.hpp"

namespace ucudnn {

/// A step's convolutions of so many samples, as planned. Infinite: they can't be planned.
struct StepPlan {
  double ms = 0;
  std::size_t workspaceBytes = 0;  ///< the largest convolution's
};

/// A device that may have a share.
struct Participant {
  std::size_t kind = 0;  ///< devices of one kind have the same plans
  int mostSamples = 0;   ///< that its memory holds
  StepRest rest;
};

struct StepQuestion {
  std::size_t kind;
  int samples;
};
/// Answers all questions. The kinds may be asked at the same time.
using PlanSteps = std::function<std::vector<StepPlan>(const std::vector<StepQuestion>&)>;

/// One way to deal out the mini-batch.
struct Dealt {
  std::vector<int> samples;
  std::vector<std::optional<StepPlan>> plans;  ///< by device; empty: it has no samples
  double stepMs = 0;
};

struct FoundShares {
  Dealt best;
  std::optional<Dealt> equal;                  ///< empty: a device can't run its part
  std::vector<std::optional<double>> aloneMs;  ///< of the whole mini-batch on each; empty: it can't
  double exchangeMs = 0;
  std::vector<std::map<int, double>> plannedMs;  ///< all that was planned, by device and samples
};

/// Plans a few numbers of samples for each kind, and interpolates between them. Then it plans what
/// would be a share, until that gains nothing. So the found shares have been planned themselves;
/// no others are faster, as far as times between planned ones are in proportion. Throws what
/// `planSteps` throws. REQUIRES: a participant.
class ShareSearch {
 public:
  ShareSearch(std::vector<Participant> participants, int samples, PlanSteps planSteps);

  /// May be called again, with other rests. Empty: the devices can't run the mini-batch.
  std::optional<FoundShares> find(double exchangeMs);
  /// REQUIRES: a number of samples for each participant, which it holds.
  Dealt deal(const std::vector<int>& samples, double exchangeMs);

  const std::vector<Participant>& participants() const noexcept { return participants_; }
  void setRest(std::size_t participant, StepRest rest) { participants_[participant].rest = rest; }

 private:
  void planFirst();
  /// Plans what is not known yet.
  void plan(std::vector<StepQuestion> questions);
  std::vector<StepQuestion> questionsOf(const std::vector<int>& samples) const;
  /// `onlyPlanned`: no other number of samples can be run.
  std::vector<ShareDevice> devices(bool onlyPlanned) const;
  bool holds(const std::vector<int>& samples) const;

  std::vector<Participant> participants_;
  int samples_;
  PlanSteps planSteps_;
  std::map<std::size_t, std::map<int, StepPlan>> known_;  ///< by kind, then samples
};

}  // namespace ucudnn
