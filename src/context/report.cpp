#include "context/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "planner/planner.hpp"
#include "support/columns.hpp"
#include "support/problem_text.hpp"
#include "support/sizes.hpp"

namespace ucudnn {
namespace {

// A screen of 24 lines has room for so many beside the sums.
constexpr std::size_t kMostConvolutions = 17;
// A program's shapes may change for ever. Further ones are counted in the sums only.
constexpr std::size_t kMostKept = kMostProblems;

void print() noexcept {
  try {
    const std::string text = report().text();
    std::fwrite(text.data(), 1, text.size(), stderr);
  } catch (const std::exception&) {  // out of memory
  }
}

std::string measuringText(const Statistics& statistics) {
  if (statistics.slices == 0) return {};
  return fmt::format(
      "ucudnn: {:.1f} s of measuring was not asked for: {} calls waited for it, {:.0f} ms at "
      "most\n",
      static_cast<double>(statistics.sliceMicroseconds) / 1e6,
      statistics.slices.load(),
      static_cast<double>(statistics.longestSliceMicroseconds) / 1e3);
}

std::string duration(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400, kYear = 365 * kDay;
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} minutes", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.0f} hours", seconds / kHour);
  return seconds < kYear ? fmt::format("{:.0f} days", seconds / kDay) : "more than a year";
}

constexpr const char* kNoCalls =
    "ucudnn: no convolution call came by: the program made a cuDNN handle, but no convolution.\n"
    "        Compiled models, and other libraries, compute convolutions without cuDNN\n";

}  // namespace

std::string payBackText(double spentSeconds, double gainedSeconds, double runningSeconds) {
  constexpr double kLeastSpent = 0.05, kLeastGained = 0.0005;  // less is printed as 0
  const std::string gained = gainedSeconds < kLeastGained ? "nothing so far"
                             : gainedSeconds < 1
                                 ? fmt::format("{:.0f} ms so far", gainedSeconds * 1e3)
                                 : fmt::format("{:.1f} s so far", gainedSeconds);
  if (spentSeconds < kLeastSpent)
    return fmt::format("ucudnn: measuring and planning took no time; the plans have gained {}\n",
                       gained);
  const std::string begin =
      fmt::format("ucudnn: measuring and planning took {:.1f} s; the plans have gained {}",
                  spentSeconds,
                  gained);
  const double missing = spentSeconds - gainedSeconds;
  if (missing <= 0) return begin + ",\n        which has paid for it\n";
  if (gainedSeconds < kLeastGained) return begin + "\n";
  const double runSeconds = std::max(runningSeconds - spentSeconds, gainedSeconds);
  return fmt::format("{},\n        which pays for it after {} more\n",
                     begin,
                     duration(missing / gainedSeconds * runSeconds));
}

void Report::add(const Problem* problem, const CallRecord& record) noexcept {
  try {
    const std::uint64_t process = fork_gate::generation();
    const std::lock_guard lock(mutex_);
    if (process_ != process) {
      all_ = {};
      convolutions_.clear();
      reasons_.clear();
      begin_ = std::chrono::steady_clock::now();
      process_ = process;
    }
    const auto count = [&](Calls& calls) {
      ++calls.count;
      calls.split += record.isPlanned() && record.divided ? 1 : 0;
      calls.replayed += record.isPlanned() && record.replayed ? 1 : 0;
      calls.unmeasured += record.isPlanned() && !record.measured ? 1 : 0;
      calls.left += record.isPlanned() ? 0 : 1;
      calls.beyond += record.beyondBytes > 0 ? 1 : 0;
      calls.beyondBytes = std::max(calls.beyondBytes, record.beyondBytes);
      if (!record.isPlanned()) return;
      calls.predictedMs += record.predictedMs;
      const double undividedMs = record.undividedMs > 0 ? record.undividedMs : record.predictedMs;
      calls.undividedMs += undividedMs;
      calls.ownMs += record.ownMs > 0 ? record.ownMs : undividedMs;
    };
    count(all_);
    if (!record.isPlanned()) ++reasons_[record.why];
    if (problem == nullptr) return;
    auto found = convolutions_.find(*problem);
    if (found == convolutions_.end()) {
      if (convolutions_.size() >= kMostKept) return;
      found = convolutions_.emplace(*problem, Calls()).first;
    }
    Calls& calls = found->second;
    count(calls);
    if (record.isPlanned() || calls.left == calls.count) calls.last = record;
  } catch (const std::exception&) {
  }
}

std::string Report::textOf(const Convolutions::value_type& entry) const {
  const auto& [problem, calls] = entry;
  const bool isPlanned = calls.last.isPlanned();
  const bool isCompared = isPlanned && calls.last.undividedMs > 0;
  const std::string numbers =
      fmt::format("{:>6} {:>6} {:>9} {:>9} {:>9} {:>9}  ",
                  calls.count,
                  calls.split,
                  calls.predictedMs > 0 ? fmt::format("{:.1f}", calls.predictedMs) : "-",
                  isPlanned ? formatSize(calls.last.workspaceBytes) : "-",
                  isCompared ? fmt::format("{:.1f}", calls.undividedMs) : "-",
                  isCompared ? formatSize(calls.last.undividedBytes) : "-");
  std::string plan = isPlanned ? calls.last.splitText() : std::string("cuDNN, ") + calls.last.why;
  plan = indented(plan, std::string(numbers.size(), ' '));
  plan.replace(0, numbers.size(), numbers);
  const std::string convolution =
      fmt::format("{} N={}", shortProblemText(problem.text()), problem.batch());
  return plan + '\n' + indented(convolution, "    ") + '\n';
}

std::string Report::sumsText() const {
  const auto& statistics = planner().statistics();
  std::string text = fmt::format(
      "ucudnn: {} convolution calls: {} split, {} undivided, {} left to cuDNN; {} replayed\n",
      all_.count,
      all_.split,
      all_.count - all_.split - all_.left,
      all_.left,
      all_.replayed);
  const std::chrono::duration<double> running = std::chrono::steady_clock::now() - begin_;
  text += payBackText(static_cast<double>(statistics.planningMicroseconds) / 1e6,
                      (all_.ownMs - all_.predictedMs) / 1e3,
                      running.count());
  text += measuringText(statistics);
  if (statistics.kernelsWrong > 0)
    text += fmt::format(
        "ucudnn: {} of {} kernels that were checked compute wrong results, and are "
        "not used\n",
        statistics.kernelsWrong.load(),
        statistics.kernelsChecked.load());
  if (all_.left + all_.unmeasured < all_.count)
    text += fmt::format(
        "ucudnn: planned calls take {:.1f} ms, as measured; the program's own kernels {:.1f} ms,\n"
        "        the fastest undivided ones within the limits {:.1f} ms\n",
        all_.predictedMs,
        all_.ownMs,
        all_.undividedMs);
  if (all_.unmeasured > 0)
    text += fmt::format(
        "ucudnn: {} ran in parts within the limit: {}\n", all_.unmeasured, reason::kNotMeasured);
  for (const auto& [why, count] : reasons_)
    text += fmt::format("ucudnn: {} left to cuDNN: {}\n", count, why);
  if (all_.beyond > 0)
    text += fmt::format(
        "ucudnn: {} of these belong to graphs that cuDNN runs alone; they need up to {} more "
        "workspace than UCUDNN_WORKSPACE_LIMIT\n",
        all_.beyond,
        formatSize(all_.beyondBytes));
  return text;
}

std::string Report::text() const {
  if (process_ != fork_gate::generation()) return maker_ == fork_gate::generation() ? kNoCalls : "";
  const std::lock_guard lock(mutex_);
  std::string text = sumsText();
  std::vector<const Convolutions::value_type*> longest;
  for (const auto& convolution : convolutions_) longest.push_back(&convolution);
  const auto isLonger = [](const auto* a, const auto* b) {
    return std::make_pair(a->second.predictedMs, a->second.count) >
           std::make_pair(b->second.predictedMs, b->second.count);
  };
  std::sort(longest.begin(), longest.end(), isLonger);
  const std::size_t shown = std::min(longest.size(), kMostConvolutions);
  text += fmt::format("{:>6} {:>6} {:>9} {:>9} {:>9} {:>9}  split, and convolution\n",
                      "calls",
                      "split",
                      "ms",
                      "workspace",
                      "undivided",
                      "workspace");
  for (std::size_t i = 0; i < shown; ++i) text += textOf(*longest[i]);
  if (shown < longest.size())
    text += fmt::format("ucudnn: and {} other convolutions\n", longest.size() - shown);
  return text;
}

Report& report() {
  static Report& instance = [&]() -> Report& {
    auto* const made = new Report;  // never destroyed: static destructors use handles
    std::atexit(print);
    return *made;
  }();
  return instance;
}

}  // namespace ucudnn
