// The report on a network: JSON, tables and bars.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "support/settings.hpp"
#include "support/sizes.hpp"
#include "support/text.hpp"
#include "tool/columns.hpp"
#include "tool/network.hpp"

namespace ucudnn::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBarColumns = 20;  // with names and numbers beside it, a line of a terminal

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

/// Remarks that a reader of the numbers needs.
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
  std::vector<std::vector<std::string>> lines = {
      {title, "predicted", "measured", "off by", "of wr", "replayed", "workspace", "host"}};
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

/// The kernels of the division's plans.
void writeKernels(std::ostream& stream, const NetworkReport& report) {
  for (const NetworkRow& row : report.rows) {
    stream << fmt::format("\n{} {} ({})\n", printable(row.layer), row.operation, row.shape);
    writeConfiguration(
        stream, row.choices[static_cast<std::size_t>(Way::kDivide)]->plan.configuration, "    ");
  }
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
      header.emplace_back(toText(way));
      header.emplace_back("workspace");
    }
  std::vector<std::vector<std::string>> lines = {header};
  for (const NetworkRow& row : report.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    line = {layerName(row.layer), operationName(row.operation)};
    for (const auto& choice : row.choices)
      if (choice) {
        line.push_back(milliseconds(choice->measuredMs.value()));
        line.push_back(formatSize(choice->plan.workspaceBytes));
      }
  }
  writeRemarks(stream, report);
  writeColumns(stream, lines, 2);

  stream << fmt::format(
      "\n{} convolutions, {} in all. Times are ms. wr: an equal part of {} for each. divide: a\n"
      "part for each, by its gain. share: all of it for each in turn. Streams: {}.\n",
      report.rows.size(),
      formatSize(report.totalBytes),
      formatSize(report.eachBytes),
      report.settings.at("streams").get<std::string>());
  writeTimes(stream, report, "sum, each by itself", &NetworkTotals::summed);
  writeTimes(stream, report, "iterations in a row", &NetworkTotals::iteration);
  if (report.totals[static_cast<std::size_t>(Way::kDivide)] && !report.optimal)
    stream << "The division is the best that was found in time; a better one may exist.\n";
  stream << fmt::format("Planning took {:.0f} ms: {} kernels measured, {} from the database.\n",
                        report.planningMs,
                        report.kernelsMeasured,
                        report.kernelsLoaded);
}

void writeBars(std::ostream& stream, const NetworkReport& report, bool verbose) {
  constexpr auto kDivide = static_cast<std::size_t>(Way::kDivide);
  writeRemarks(stream, report);
  std::size_t most = 1;
  for (const NetworkRow& row : report.rows)
    most = std::max(most, row.choices[kDivide]->plan.workspaceBytes);
  std::vector<std::vector<std::string>> lines = {
      {"layer", "operation", "", "workspace", "of total", "ms"}};
  for (const NetworkRow& row : report.rows) {
    const PlanDescription& choice = row.choices[kDivide]->plan;
    const double length = static_cast<double>(kBarColumns) *
                          static_cast<double>(choice.workspaceBytes) / static_cast<double>(most);
    std::string bar(static_cast<std::size_t>(std::lround(length)), '#');
    bar.resize(kBarColumns, ' ');
    lines.push_back({layerName(row.layer),
                     operationName(row.operation),
                     "|" + bar + "|",
                     formatSize(choice.workspaceBytes),
                     percent(static_cast<double>(choice.workspaceBytes) /
                             static_cast<double>(report.totalBytes)),
                     milliseconds(choice.predictedMs)});
  }
  const std::size_t left = columnsLeft(lines);
  lines.front().emplace_back("split");
  for (std::size_t i = 0; i < report.rows.size(); ++i)
    lines[i + 1].push_back(splitText(report.rows[i].choices[kDivide]->plan.configuration, left));
  writeColumns(stream, lines, 3);
  if (verbose) writeKernels(stream, report);
  stream << fmt::format(
      "\n{} of {} divided among {} convolutions{}: {} ms.\n"
      "wr, an equal part of {} for each: {} ms. share, all of it for each in turn: {} ms.\n",
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
