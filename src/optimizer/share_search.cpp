#include "optimizer/share_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ucudnn {
namespace {

/// The first sizes to plan: the mini-batch, its half and its quarter. They have mostly been
/// measured as micro-batches of the whole.
constexpr int kFirstParts[] = {1, 2, 4};
/// A round plans one more number of samples for each kind of device.
constexpr int kMostRounds = 12;
/// A gain below this may be noise of the timings.
constexpr double kNothingGained = 1.005;

/// Times by number of samples. Between two planned numbers they are interpolated, as below the
/// first; if `onlyPlanned`, they are infinite.
std::vector<double> tableOf(const std::map<int, StepPlan>& known, bool onlyPlanned) {
  std::vector<double> times = {0};
  for (const auto& [samples, plan] : known) {
    const auto from = static_cast<int>(times.size()) - 1;
    const double fromMs = times.back();
    for (int i = from + 1; i < samples; ++i)
      times.push_back(onlyPlanned ? std::numeric_limits<double>::infinity()
                                  : fromMs + (plan.ms - fromMs) * (i - from) / (samples - from));
    times.push_back(plan.ms);
  }
  return times;
}

}  // namespace

ShareSearch::ShareSearch(std::vector<Participant> participants, int samples, PlanSteps planSteps)
    : participants_(std::move(participants)), samples_(samples), planSteps_(std::move(planSteps)) {}

void ShareSearch::plan(std::vector<StepQuestion> questions) {
  const auto isKnown = [&](const StepQuestion& q) { return known_[q.kind].count(q.samples) > 0; };
  questions.erase(std::remove_if(questions.begin(), questions.end(), isKnown), questions.end());
  const auto isBefore = [](const StepQuestion& a, const StepQuestion& b) {
    // The largest first: its micro-batches are what smaller ones need.
    return std::make_pair(a.kind, -a.samples) < std::make_pair(b.kind, -b.samples);
  };
  const auto isSame = [](const StepQuestion& a, const StepQuestion& b) {
    return a.kind == b.kind && a.samples == b.samples;
  };
  std::sort(questions.begin(), questions.end(), isBefore);
  questions.erase(std::unique(questions.begin(), questions.end(), isSame), questions.end());
  if (questions.empty()) return;
  const std::vector<StepPlan> plans = planSteps_(questions);
  for (std::size_t i = 0; i < questions.size(); ++i)
    known_[questions[i].kind][questions[i].samples] = plans[i];
}

std::vector<StepQuestion> ShareSearch::questionsOf(const std::vector<int>& samples) const {
  std::vector<StepQuestion> questions;
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i] > 0) questions.push_back({participants_[i].kind, samples[i]});
  return questions;
}

std::vector<ShareDevice> ShareSearch::devices(bool onlyPlanned) const {
  std::map<std::size_t, std::vector<double>> times;
  for (const auto& [kind, known] : known_) times[kind] = tableOf(known, onlyPlanned);
  std::vector<ShareDevice> devices;
  for (const Participant& participant : participants_)
    devices.push_back({times.at(participant.kind), participant.rest, participant.mostSamples});
  return devices;
}

bool ShareSearch::holds(const std::vector<int>& samples) const {
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i] > participants_[i].mostSamples) return false;
  return true;
}

Dealt ShareSearch::deal(const std::vector<int>& samples, double exchangeMs) {
  plan(questionsOf(samples));
  Dealt dealt;
  dealt.samples = samples;
  dealt.stepMs = stepMsOf(devices(true), samples, exchangeMs);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto& known = known_[participants_[i].kind];
    dealt.plans.push_back(samples[i] > 0 ? std::optional(known.at(samples[i])) : std::nullopt);
  }
  return dealt;
}

void ShareSearch::planFirst() {
  std::vector<StepQuestion> first;
  for (const Participant& participant : participants_) {
    const int most = std::min(participant.mostSamples, samples_);
    for (const int parts : kFirstParts)
      if (const int samples = samples_ / parts; samples >= 1 && samples < most)
        first.push_back({participant.kind, samples});
    if (most >= 1) first.push_back({participant.kind, most});
    known_[participant.kind];
  }
  plan(std::move(first));
}

std::optional<FoundShares> ShareSearch::find(double exchangeMs) {
  planFirst();
  FoundShares found;
  found.exchangeMs = exchangeMs;
  const auto dealIfRun = [&](const std::vector<int>& samples) -> std::optional<Dealt> {
    if (!holds(samples)) return std::nullopt;
    Dealt dealt = deal(samples, exchangeMs);
    return std::isfinite(dealt.stepMs) ? std::optional(std::move(dealt)) : std::nullopt;
  };
  found.equal = dealIfRun(equalShares(samples_, static_cast<int>(participants_.size())));
  std::optional<Shares> planned;
  for (int round = 0; round < kMostRounds; ++round) {
    const auto hoped = fastestShares(devices(false), samples_, exchangeMs);
    if (!hoped) break;
    plan(questionsOf(hoped->samples));
    planned = fastestShares(devices(true), samples_, exchangeMs);
    if (planned && planned->stepMs <= hoped->stepMs * kNothingGained) break;
  }
  if (!planned) return std::nullopt;
  found.best = deal(planned->samples, exchangeMs);
  for (std::size_t i = 0; i < participants_.size(); ++i) {
    std::vector<int> alone(participants_.size(), 0);
    alone[i] = samples_;
    const auto dealt = dealIfRun(alone);
    found.aloneMs.push_back(dealt ? std::optional(dealt->stepMs) : std::nullopt);
  }
  for (const Participant& participant : participants_) {
    std::map<int, double>& times = found.plannedMs.emplace_back();
    for (const auto& [samples, plan] : known_[participant.kind])
      if (std::isfinite(plan.ms)) times[samples] = plan.ms;
  }
  return found;
}

}  // namespace ucudnn
