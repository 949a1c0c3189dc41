#include "tool/share_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "support/sizes.hpp"
#include "tool/columns.hpp"
#include "tool/report.hpp"

namespace ucudnn::tool {
namespace {

using Json = nlohmann::ordered_json;

/// So wide that all columns together fit a terminal.
constexpr std::size_t kDeviceColumns = 38;

/// The time of a device's share, everything included.
std::optional<double> stepMs(const Participant& participant, const Dealt& dealt, std::size_t i) {
  const auto& plan = dealt.plans[i];
  if (!plan) return std::nullopt;
  return plan->ms + participant.rest.of(dealt.samples[i]);
}

Json toJson(const std::vector<Participant>& participants, const Dealt& dealt) {
  Json devices = Json::array();
  for (std::size_t i = 0; i < participants.size(); ++i)
    devices.push_back({{"samples", dealt.samples[i]},
                       {"predicted_ms", orNull(stepMs(participants[i], dealt, i))},
                       {"workspace_bytes",
                        dealt.plans[i] ? Json(dealt.plans[i]->workspaceBytes) : Json(nullptr)}});
  return {{"step_ms", dealt.stepMs}, {"devices", std::move(devices)}};
}

std::optional<double> fastestAloneMs(const FoundShares& found) {
  std::optional<double> fastest;
  for (const auto& ms : found.aloneMs)
    if (ms && (!fastest || *ms < *fastest)) fastest = ms;
  return fastest;
}

}  // namespace

void writeShares(std::ostream& stream,
                 const std::vector<NamedDevice>& devices,
                 const std::vector<Participant>& participants,
                 const FoundShares& found) {
  std::vector<std::vector<std::string>> lines = {
      {"device", "share", "ms", "workspace", "equal share", "ms", "alone ms"}};
  for (std::size_t i = 0; i < participants.size(); ++i) {
    const Participant& participant = participants[i];
    const auto& plan = found.best.plans[i];
    lines.push_back({shortened(devices[i].name, kDeviceColumns),
                     fmt::format("{}", found.best.samples[i]),
                     milliseconds(stepMs(participant, found.best, i)),
                     plan ? formatSize(plan->workspaceBytes) : "-",
                     found.equal ? fmt::format("{}", found.equal->samples[i]) : "-",
                     found.equal ? milliseconds(stepMs(participant, *found.equal, i)) : "-",
                     milliseconds(found.aloneMs[i])});
  }
  writeColumns(stream, lines, 1);
  stream << fmt::format("a step of {} samples: {:.3f} ms",
                        std::accumulate(found.best.samples.begin(), found.best.samples.end(), 0),
                        found.best.stepMs);
  const auto& plans = found.best.plans;
  const bool isShared = std::count_if(plans.begin(), plans.end(), [](const auto& plan) {
                          return plan.has_value();
                        }) > 1;
  if (isShared && found.exchangeMs > 0)
    stream << fmt::format(", {:.3f} of it exchange", found.exchangeMs);
  stream << '\n';
  const auto compare = [&](const char* what, double ms) {
    stream << fmt::format("  {}: {:.3f} ms, {:.2f} times\n", what, ms, ms / found.best.stepMs);
  };
  if (found.equal) compare("by equal shares", found.equal->stepMs);
  if (const auto alone = fastestAloneMs(found)) compare("on the fastest alone", *alone);
}

Json toJson(const std::vector<NamedDevice>& devices,
            const std::vector<Participant>& participants,
            const FoundShares& found) {
  Json all = Json::array();
  for (std::size_t i = 0; i < participants.size(); ++i) {
    const Participant& participant = participants[i];
    Json planned = Json::object();
    for (const auto& [samples, ms] : found.plannedMs[i]) planned[std::to_string(samples)] = ms;
    all.push_back({{"device", devices[i].name},
                   {"limit_bytes", devices[i].limitBytes},
                   {"most_samples", participant.mostSamples},
                   {"rest_ms", participant.rest.ms},
                   {"rest_ms_per_sample", participant.rest.msPerSample},
                   {"alone_ms", orNull(found.aloneMs[i])},
                   {"planned_ms", std::move(planned)}});
  }
  return {{"devices", std::move(all)},
          {"exchange_ms", found.exchangeMs},
          {"shares", toJson(participants, found.best)},
          {"equal_shares", found.equal ? toJson(participants, *found.equal) : Json(nullptr)}};
}

}  // namespace ucudnn::tool
