// `ucudnn bench --data-parallel`
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <numeric>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/output_file.hpp"
#include "tool/rank.hpp"
#include "tool/share_report.hpp"
#include "tool/simulator_control.hpp"
#include "tool/step_planner.hpp"
#include "tool/timing.hpp"

namespace ucudnn::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kExchanges = 20;  // that are timed by themselves
/// A round of steps takes about so long: changes of the clocks are small in it.
constexpr double kRoundMs = 300;
constexpr int kFewestSteps = 3, kMostSteps = 30;
constexpr int kCorrections = 2;

/// A way to run steps that is timed: its shares, and the exchange if several devices have one.
struct Timed {
  std::vector<int> samples;
  double predictedMs = 0;
  double plannedMs = 0;  ///< without the rest of a step
  std::vector<double> roundsMs;

  double ms() const { return median(roundsMs); }
};

/// A kind of device by itself, with as many samples as its memory holds.
struct Alone {
  std::size_t participant;
  Timed timed;
  int samples() const { return timed.samples[participant]; }
  /// Samples a millisecond.
  double speed() const { return samples() / timed.ms(); }
};

struct Measured {
  std::string exchange;  ///< by what
  double exchangeMs = 0;
  std::size_t exchangeBytes = 0;
  Timed best;
  std::optional<Timed> equal;
  std::map<std::size_t, Alone> alone;  ///< by kind
};

class DataParallel {
 public:
  DataParallel(const std::vector<Layer>& layers,
               const BenchOptions& options,
               const ShareOptions& asked)
      : samples_(commonBatch(layers)), options_(options), ranks_(layers, options, describe(asked)) {
    std::map<std::string, std::size_t> kinds;
    const auto answers =
        ranks_.ask(std::vector<std::optional<RankQuestion>>(ranks_.size(), RankQuestion{}));
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const std::string text = answers[i]->text;
      const std::size_t end = text.find('\n');
      const int multiprocessors = answers[i]->multiprocessors;
      measured_.exchange = text.substr(end + 1);
      std::string model = text.substr(0, end);
      if (multiprocessors > 0) model += fmt::format(" ({} SMs, emulated)", multiprocessors);
      devices_.push_back({fmt::format("{}: {}", asked.devices[i], model), limitOf(i, asked)});
      const std::string kind = fmt::format("{} {}", devices_[i].limitBytes, model);
      participants_.push_back({kinds.try_emplace(kind, kinds.size()).first->second,
                               mostSamplesOf(asked, i, samples_),
                               {}});
    }
  }

  void run() {
    measured_.exchangeBytes = ranks_.gradientBytes();
    if (ranks_.size() > 1) measured_.exchangeMs = exchangeMs();
    ShareSearch search(
        participants_, samples_, [&](const auto& questions) { return planSteps(questions); });
    find(search);
    // The first shares come from the plans' times alone. Now whole steps are timed, and the shares
    // corrected by what steps take besides. The corrected shares are timed and corrected again.
    std::vector<std::map<int, double>> rests(participants_.size());
    for (int correction = 0; correction < kCorrections; ++correction) {
      timeRests(search, rests);
      find(search);
    }
    prepare(search);
    // In turns, so that a clock that drifts hits all alike.
    for (int round = 0; round < options_.repeats; ++round) {
      time(measured_.best);
      if (measured_.equal) time(*measured_.equal);
      for (auto& [kind, alone] : measured_.alone) time(alone.timed);
    }
  }

  const std::vector<NamedDevice>& devices() const noexcept { return devices_; }
  const std::vector<Participant>& participants() const noexcept { return participants_; }
  const FoundShares& found() const noexcept { return found_; }
  const Measured& measured() const noexcept { return measured_; }

  /// The sum of the speeds that the devices have alone.
  double sumOfSpeeds() const {
    double sum = 0;
    for (const Participant& one : participants_) sum += measured_.alone.at(one.kind).speed();
    return sum;
  }
  /// The shortest step of the whole mini-batch on one device. Empty: none holds it.
  std::optional<double> fastestAloneMs() const {
    std::optional<double> fastest;
    for (const auto& [kind, alone] : measured_.alone)
      if (alone.samples() == samples_ && (!fastest || alone.timed.ms() < *fastest))
        fastest = alone.timed.ms();
    return fastest;
  }
  int samples() const noexcept { return samples_; }
  bool isShared() const { return isShared(measured_.best.samples); }

 private:
  std::size_t limitOf(std::size_t i, const ShareOptions& asked) const {
    return valueFor("--limit", options_.limitsBytes, i, asked.size());
  }

  std::vector<RankOptions> describe(const ShareOptions& asked) const {
    std::vector<RankOptions> ranks;
    for (std::size_t i = 0; i < asked.devices.size(); ++i) {
      const auto same = std::count(asked.devices.begin(), asked.devices.end(), asked.devices[i]);
      if (same > 1) throw BadInput(fmt::format("--devices: {} comes twice", asked.devices[i]));
      const int multiprocessors =
          asked.multiprocessors.empty()
              ? 0
              : valueFor("--multiprocessors", asked.multiprocessors, i, asked.size());
      ranks.push_back({asked.devices[i], multiprocessors, limitOf(i, asked)});
    }
    return ranks;
  }

  /// Each kind's first device plans for it; kinds at the same time.
  std::vector<StepPlan> planSteps(const std::vector<StepQuestion>& questions) {
    std::vector<StepPlan> plans(questions.size());
    std::vector<bool> isAnswered(questions.size(), false);
    for (;;) {
      std::vector<std::optional<RankQuestion>> wave(ranks_.size());
      std::vector<std::size_t> askedBy(ranks_.size(), 0);
      for (std::size_t q = 0; q < questions.size(); ++q) {
        const std::size_t rank = firstOf(questions[q].kind);
        if (isAnswered[q] || wave[rank]) continue;
        wave[rank] = RankQuestion{RankQuestion::What::kPlan, questions[q].samples, 0, false};
        askedBy[rank] = q;
      }
      const auto answers = ranks_.ask(wave);
      bool isAsked = false;
      for (std::size_t rank = 0; rank < answers.size(); ++rank) {
        if (!answers[rank]) continue;
        plans[askedBy[rank]] = {answers[rank]->ms, answers[rank]->workspaceBytes};
        isAnswered[askedBy[rank]] = isAsked = true;
      }
      if (!isAsked) return plans;
    }
  }

  std::size_t firstOf(std::size_t kind) const {
    for (std::size_t i = 0; i < participants_.size(); ++i)
      if (participants_[i].kind == kind) return i;
    throw DeviceError("no device of the kind");
  }

  double exchangeMs() {
    std::vector<double> times(static_cast<std::size_t>(options_.repeats));
    for (double& ms : times) ms = steps(std::vector<int>(ranks_.size(), 0), kExchanges, true);
    return median(times);
  }

  std::vector<std::optional<RankQuestion>> runOf(const std::vector<int>& samples,
                                                 int count,
                                                 bool exchanges) const {
    std::vector<std::optional<RankQuestion>> questions(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (exchanges || samples[i] > 0)
        questions[i] = RankQuestion{RankQuestion::What::kRun, samples[i], count, exchanges};
    return questions;
  }

  /// Runs steps, and returns the time of the slowest device.
  double steps(const std::vector<int>& samples, int count, bool exchanges) {
    double slowestMs = 0;
    for (const auto& answer : ranks_.ask(runOf(samples, count, exchanges)))
      if (answer) slowestMs = std::max(slowestMs, answer->ms);
    return slowestMs;
  }

  /// Has each process plan its share, because a process doesn't know the plans of others. Then runs
  /// steps until calls are like all later ones.
  void settle(const std::vector<int>& samples, bool exchanges) {
    std::vector<std::optional<RankQuestion>> questions(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (samples[i] > 0)
        questions[i] = RankQuestion{RankQuestion::What::kPlan, samples[i], 0, false};
    ranks_.ask(questions);
    steps(samples, kFewestSteps, exchanges);
  }

  static bool isShared(const std::vector<int>& samples) {
    return std::count_if(samples.begin(), samples.end(), [](int share) { return share > 0; }) > 1;
  }

  static int stepsOf(double predictedMs) {
    const double wanted = std::ceil(kRoundMs / std::max(predictedMs, 1e-3));
    return onSimulator() ? kFewestSteps
                         : static_cast<int>(std::clamp<double>(wanted, kFewestSteps, kMostSteps));
  }

  void time(Timed& timed) {
    const int count = stepsOf(timed.predictedMs);
    timed.roundsMs.push_back(steps(timed.samples, count, isShared(timed.samples)));
  }

  void find(ShareSearch& search) {
    auto found = search.find(measured_.exchangeMs);
    if (!found) throw DeviceError(kNotHeld);
    found_ = std::move(*found);
  }

  /// Times the shares that were found, and at first the most samples that each device holds. All
  /// devices work at the same time, and exchange nothing. `rests`: each device's rest of a step, by
  /// samples.
  void timeRests(ShareSearch& search, std::vector<std::map<int, double>>& rests) {
    std::vector<std::vector<int>> toTime = {found_.best.samples};
    if (rests.front().empty()) {
      std::vector<int> most;
      for (const Participant& one : participants_) most.push_back(one.mostSamples);
      toTime.push_back(std::move(most));
    }
    for (const std::vector<int>& samples : toTime) {
      const Dealt dealt = search.deal(samples, 0);
      settle(samples, false);
      const auto answers = ranks_.ask(runOf(samples, stepsOf(dealt.stepMs), false));
      for (std::size_t i = 0; i < answers.size(); ++i)
        if (answers[i]) rests[i][samples[i]] = answers[i]->ms - dealt.plans[i]->ms;
    }
    for (std::size_t i = 0; i < rests.size(); ++i) {
      participants_[i].rest = restOf(rests[i]);
      search.setRest(i, participants_[i].rest);
    }
  }

  Timed timedOf(const Dealt& dealt) const {
    double plannedMs = 0;
    for (const auto& plan : dealt.plans)
      if (plan) plannedMs = std::max(plannedMs, plan->ms);
    if (isShared(dealt.samples)) plannedMs += measured_.exchangeMs;
    return {dealt.samples, dealt.stepMs, plannedMs, {}};
  }

  void prepare(ShareSearch& search) {
    measured_.best = timedOf(found_.best);
    if (found_.equal && found_.equal->samples != found_.best.samples)
      measured_.equal = timedOf(*found_.equal);
    for (std::size_t i = 0; i < participants_.size(); ++i) {
      if (measured_.alone.count(participants_[i].kind) > 0) continue;
      std::vector<int> samples(participants_.size(), 0);
      samples[i] = participants_[i].mostSamples;
      measured_.alone.emplace(participants_[i].kind, Alone{i, timedOf(search.deal(samples, 0))});
    }
    settle(measured_.best.samples, isShared(measured_.best.samples));
    if (measured_.equal) settle(measured_.equal->samples, isShared(measured_.equal->samples));
    for (const auto& [kind, alone] : measured_.alone) settle(alone.timed.samples, false);
  }

  int samples_;
  const BenchOptions& options_;
  Ranks ranks_;
  std::vector<NamedDevice> devices_;
  std::vector<Participant> participants_;
  FoundShares found_;
  Measured measured_;
};

std::string compared(const Timed& timed) {
  return fmt::format("{:.3f} ms (predicted {:.3f}, {:+.1f} %)",
                     timed.ms(),
                     timed.predictedMs,
                     100 * (timed.predictedMs / timed.ms() - 1));
}

void write(std::ostream& stream, const DataParallel& bench) {
  writeShares(stream, bench.devices(), bench.participants(), bench.found());
  const Measured& measured = bench.measured();
  stream << fmt::format("measured: {}\n", compared(measured.best));
  if (bench.isShared())
    stream << fmt::format("  exchange of {:.1f} MB by {}: {:.3f} ms\n",
                          static_cast<double>(measured.exchangeBytes) / 1e6,
                          measured.exchange,
                          measured.exchangeMs);
  if (measured.equal) stream << fmt::format("  by equal shares: {}\n", compared(*measured.equal));
  for (const auto& [kind, alone] : measured.alone)
    stream << fmt::format("  {} samples on {}: {}\n",
                          alone.samples(),
                          bench.devices()[alone.participant].name,
                          compared(alone.timed));
  const double speed = bench.samples() / measured.best.ms();
  stream << fmt::format("{:.3f} of the sum of the speeds alone\n", speed / bench.sumOfSpeeds());
  if (const auto alone = bench.fastestAloneMs())
    stream << fmt::format("{:.2f} times the fastest alone\n", *alone / measured.best.ms());
  if (measured.equal)
    stream << fmt::format("{:.2f} times equal shares\n", measured.equal->ms() / measured.best.ms());
}

Json toJson(const Timed& timed) {
  return {{"samples", timed.samples},
          {"predicted_ms", timed.predictedMs},
          {"planned_ms", timed.plannedMs},
          {"measured_ms", timed.ms()},
          {"rounds_ms", timed.roundsMs}};
}

Json toJson(const DataParallel& bench) {
  const Measured& measured = bench.measured();
  Json alone = Json::array();
  for (const auto& [kind, one] : measured.alone) {
    Json entry = toJson(one.timed);
    entry["device"] = bench.devices()[one.participant].name;
    alone.push_back(std::move(entry));
  }
  const auto fastest = bench.fastestAloneMs();
  return {{"exchange",
           {{"by", measured.exchange},
            {"bytes", measured.exchangeBytes},
            {"measured_ms", measured.exchangeMs}}},
          {"shares", toJson(measured.best)},
          {"equal_shares", measured.equal ? toJson(*measured.equal) : Json(nullptr)},
          {"alone", std::move(alone)},
          {"speedup", fastest ? Json(*fastest / measured.best.ms()) : Json(nullptr)},
          {"part_of_speeds", bench.samples() / measured.best.ms() / bench.sumOfSpeeds()}};
}

}  // namespace

int benchDataParallel(const BenchOptions& options,
                      const ShareOptions& asked,
                      const std::string& command) {
  if (options.totalBytes > 0)
    throw BadInput(
        "--total-workspace does not go with --data-parallel: each convolution has its own limit");
  if (asked.devices.empty()) throw BadInput("--data-parallel: give --devices, as 0,1");
  const std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  OutputFile json("--json", options.jsonFile);
  setArithmetic(Arithmetic::kOff);  // times alone; the results are the tests'
  DataParallel bench(layers, options, asked);
  bench.run();
  if (!json.isStandardOutput()) write(std::cout, bench);
  json.write([&](std::ostream& out) {
    Json all = {{"machine", describeMachine(asked.devices.front(), command)},
                {"settings", toJson(options)}};
    all["settings"]["samples"] = bench.samples();
    all["settings"]["multiprocessors"] = asked.multiprocessors;
    all["settings"]["repeats"] = options.repeats;
    all["predicted"] = toJson(bench.devices(), bench.participants(), bench.found());
    all["measured"] = toJson(bench);
    out << toText(all);
  });
  return 0;
}

}  // namespace ucudnn::tool
