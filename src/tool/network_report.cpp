// What was found out about a network: JSON, tables and bars.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "support/settings.hpp"
#include "support/sizes.hpp"
#include "tool/network.hpp"

namespace ucudnn::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBarColumns = 40;  // with names and numbers beside it, a line of a terminal

Json toJson(const NetworkChoice& choice) {
  const PlanDescription& plan = choice.plan;
  return {{"workspace_bytes", plan.workspaceBytes},
          {"predicted_ms", plan.predictedMs},
          {"predicted_replayed", plan.replayed},
          {"measured_ms", orNull(choice.measuredMs)},
          {"replayed", orNull(choice.replayed)},
          {"device_ms", plan.deviceMs},
          {"configuration", toJson(plan.configuration)}};
}

/// What a reader of the numbers must know.
void writeRemarks(std::ostream& stream, const NetworkReport& report) {
  const auto text = [&](const Json& from, const char* key) {
    return from.at(key).get<std::string>();
  };
  stream << fmt::format(
      "{}, cuDNN {}, CUDA {}, μ-cuDNN {}\npolicy {}, {}, {} math, {}, replay {}\n",
      text(report.machine, "device"),
      text(report.machine, "cudnn"),
      text(report.machine, "cuda"),
      text(report.machine, "ucudnn"),
      text(report.settings, "policy"),
      text(report.settings, "data_type"),
      text(report.settings, "math"),
      text(report.settings, "layout"),
      report.settings.at("replay").get<bool>() ? "on" : "off");
  if (onSimulator()) stream << "simulated: times are virtual, from a model or a recorded profile\n";
  stream << '\n';
}

/// The ways side by side. REQUIRES: they have been measured.
void writeTimes(std::ostream& stream,
                const NetworkReport& report,
                const char* title,
                NetworkTimes NetworkTotals::*times) {
  std::vector<std::vector<std::string>> lines = {{title,
                                                  "predicted ms",
                                                  "measured ms",
                                                  "prediction",
                                                  "of wr",
                                                  "replayed",
                                                  "workspace",
                                                  "host ms"}};
  const auto& reuse = report.totals[static_cast<std::size_t>(Way::kReuse)];
  for (const Way way : kWays) {
    const auto& totals = report.totals[static_cast<std::size_t>(way)];
    if (!totals) continue;
    const double predictedMs = ((*totals).*times).predictedMs;
    const double measuredMs = ((*totals).*times).measuredMs.value();
    lines.push_back({toText(way),
                     milliseconds(predictedMs),
                     milliseconds(measuredMs),
                     percent(predictedMs / measuredMs - 1),
                     fmt::format("{:.3f}", measuredMs / ((*reuse).*times).measuredMs.value()),
                     percent(((*totals).*times).replayed.value()),
                     formatSize(totals->workspaceBytes),
                     milliseconds(((*totals).*times).hostMs.value_or(0))});
  }
  const auto& hostMs = ((*reuse).*times).hostMs;
  if (!hostMs)
    for (auto& line : lines) line.pop_back();
  stream << '\n';
  writeColumns(stream, lines, 1);
}

}  // namespace

Json toJson(const NetworkReport& report) {
  Json rows = Json::array();
  for (const NetworkRow& row : report.rows) {
    Json entry = {{"layer", row.layer}, {"operation", row.operation}, {"shape", row.shape}};
    for (const Way way : kWays)
      if (const auto& choice = row.choices[static_cast<std::size_t>(way)])
        entry[toText(way)] = toJson(*choice);
    rows.push_back(std::move(entry));
  }
  Json totals = Json::object();
  for (const Way way : kWays)
    if (const auto& sum = report.totals[static_cast<std::size_t>(way)])
      totals[toText(way)] = {{"predicted_ms", sum->summed.predictedMs},
                             {"measured_ms", orNull(sum->summed.measuredMs)},
                             {"replayed", orNull(sum->summed.replayed)},
                             {"iteration",
                              {{"predicted_ms", sum->iteration.predictedMs},
                               {"measured_ms", orNull(sum->iteration.measuredMs)},
                               {"replayed", orNull(sum->iteration.replayed)},
                               {"host_ms", orNull(sum->iteration.hostMs)}}},
                             {"workspace_bytes", sum->workspaceBytes}};
  const bool divided = report.totals[static_cast<std::size_t>(Way::kDivide)].has_value();
  return {{"machine", report.machine},
          {"settings", report.settings},
          {"network",
           {{"convolutions", report.rows.size()},
            {"total_workspace_bytes", report.totalBytes},
            {"wr_limit_bytes", report.eachBytes},
            {"planning_ms", report.planningMs},
            {"kernels_measured", report.kernelsMeasured},
            {"kernels_loaded", report.kernelsLoaded},
            {"replayed_calls", report.replayedCalls},
            {"graphs", report.graphs},
            {"graph_bytes", report.graphBytes},
            {"division_optimal", divided ? Json(report.optimal) : Json()},
            {"division_ms", divided ? Json(report.divisionMs) : Json()},
            {"totals", std::move(totals)}}},
          {"rows", std::move(rows)}};
}

void writeTable(std::ostream& stream, const NetworkReport& report) {
  std::vector<std::string> header = {"layer", "operation"};
  for (const Way way : kWays)
    if (report.totals[static_cast<std::size_t>(way)]) {
      header.push_back(fmt::format("{} ms", toText(way)));
      header.emplace_back("workspace");
    }
  std::vector<std::vector<std::string>> lines = {header};
  for (const NetworkRow& row : report.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    line = {row.layer, row.operation};
    for (const auto& choice : row.choices)
      if (choice) {
        line.push_back(milliseconds(choice->measuredMs.value()));
        line.push_back(formatSize(choice->plan.workspaceBytes));
      }
  }
  writeRemarks(stream, report);
  writeColumns(stream, lines, 2);

  stream << fmt::format("\n{} convolutions, {} in all; wr: {} each; streams: {}\n",
                        report.rows.size(),
                        formatSize(report.totalBytes),
                        formatSize(report.eachBytes),
                        report.settings.at("streams").get<std::string>());
  writeTimes(stream, report, "sum of all, each by itself", &NetworkTotals::summed);
  writeTimes(stream, report, "one iteration after another", &NetworkTotals::iteration);
  if (report.totals[static_cast<std::size_t>(Way::kDivide)] && !report.optimal)
    stream << "the division is the best found in time, not proven to be the best\n";
  stream << fmt::format("planning {:.0f} ms: {} kernels measured, {} loaded from the database\n",
                        report.planningMs,
                        report.kernelsMeasured,
                        report.kernelsLoaded);
}

void writeBars(std::ostream& stream, const NetworkReport& report) {
  constexpr auto kDivide = static_cast<std::size_t>(Way::kDivide);
  writeRemarks(stream, report);
  std::size_t most = 1;
  for (const NetworkRow& row : report.rows)
    most = std::max(most, row.choices[kDivide]->plan.workspaceBytes);
  std::vector<std::vector<std::string>> lines = {
      {"layer", "operation", "", "workspace", "of total", "ms", "configuration"}};
  for (const NetworkRow& row : report.rows) {
    const PlanDescription& choice = row.choices[kDivide]->plan;
    const double length = static_cast<double>(kBarColumns) *
                          static_cast<double>(choice.workspaceBytes) / static_cast<double>(most);
    std::string bar(static_cast<std::size_t>(std::lround(length)), '#');
    bar.resize(kBarColumns, ' ');
    lines.push_back({row.layer,
                     row.operation,
                     "|" + bar + "|",
                     formatSize(choice.workspaceBytes),
                     percent(static_cast<double>(choice.workspaceBytes) /
                             static_cast<double>(report.totalBytes)),
                     milliseconds(choice.predictedMs),
                     toText(choice.configuration)});
  }
  writeColumns(stream, lines, 3);
  stream << fmt::format(
      "\n{} of {} divided among {} convolutions{}: {} ms; wr with {} each: {} ms; shared: {} ms\n",
      formatSize(report.totals[kDivide]->workspaceBytes),
      formatSize(report.totalBytes),
      report.rows.size(),
      report.optimal ? "" : " (not proven to be the best)",
      milliseconds(report.totals[kDivide]->summed.predictedMs),
      formatSize(report.eachBytes),
      milliseconds(report.totals[static_cast<std::size_t>(Way::kReuse)]->summed.predictedMs),
      milliseconds(report.totals[static_cast<std::size_t>(Way::kShare)]->summed.predictedMs));
}

}  // namespace ucudnn::tool
