#include "tool/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tool/timing.hpp"

namespace ucudnn::tool {

using Json = nlohmann::ordered_json;

Json orNull(const std::optional<double>& value) {
  // JSON has no NaN.
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json orNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json toJson(const std::vector<MicroBatches>& configuration) {
  Json parts = Json::array();
  for (const MicroBatches& part : configuration) {
    parts.push_back({{"batch", part.batch}, {"kernel", part.kernel}, {"count", part.count}});
    if (part.borrows) parts.back()["borrows"] = true;
  }
  return parts;
}

namespace {

const std::string& bestKernel(const Row& row) {
  return row.isEngineBest() ? row.engineKernel : row.unlimitedKernel;
}

std::size_t bestWorkspaceBytes(const Row& row) {
  return row.isEngineBest() ? row.engineWorkspaceBytes : row.unlimitedWorkspaceBytes;
}

Json toJson(const AgainstBest& limit) {
  return {{"limit_bytes", limit.limitBytes},
          {"rows", limit.rows},
          {"geometric_mean_best_speedup", orNull(limit.geometricMean)},
          {"minimum_best_speedup", orNull(limit.minimum)},
          {"minimum_row", orNull(limit.minimumRow)}};
}

Json toJson(const Row& row) {
  return {{"layer", row.layer},
          {"operation", row.operation},
          {"shape", row.shape},
          {"cudnn_ms", orNull(row.cudnnMs)},
          {"predicted_ms", orNull(row.predictedMs)},
          {"ucudnn_ms", orNull(row.ucudnnMs)},
          {"undivided_ms", orNull(row.undividedMs)},
          {"unlimited_ms", orNull(row.unlimitedMs)},
          {"speedup", orNull(row.speedup())},
          {"prediction_error", orNull(row.predictionError())},
          {"replayed", orNull(row.replayed)},
          {"planning_ms", orNull(row.planningMs)},
          {"limit_bytes", row.limitBytes},
          {"workspace_bytes", row.workspaceBytes},
          {"cudnn_kernel", orNull(row.cudnnKernel)},
          {"cudnn_workspace_bytes", row.cudnnWorkspaceBytes},
          {"undivided_kernel", orNull(row.undividedKernel)},
          {"undivided_workspace_bytes", row.undividedWorkspaceBytes},
          {"unlimited_kernel", orNull(row.unlimitedKernel)},
          {"unlimited_workspace_bytes", row.unlimitedWorkspaceBytes},
          {"best_ms", orNull(row.bestMs())},
          {"best_speedup", orNull(row.bestSpeedup())},
          {"best_kernel", orNull(bestKernel(row))},
          {"best_workspace_bytes", bestWorkspaceBytes(row)},
          {"relative_error", orNull(row.relativeError)},
          {"cudnn_relative_error", orNull(row.cudnnRelativeError)},
          {"unlimited_relative_error", orNull(row.unlimitedRelativeError)},
          {"picked_kernel", orNull(row.pickedKernel)},
          {"picked_relative_error", orNull(row.pickedRelativeError)},
          {"configuration", toJson(row.configuration)},
          {"error", orNull(row.error)}};
}

}  // namespace

std::optional<double> Row::speedup() const {
  if (!cudnnMs || !ucudnnMs || *ucudnnMs <= 0) return std::nullopt;
  return *cudnnMs / *ucudnnMs;
}

bool Row::isEngineBest() const {
  return engineMs && (!unlimitedMs || *engineMs < *unlimitedMs);
}

std::optional<double> Row::bestMs() const {
  return isEngineBest() ? engineMs : unlimitedMs;
}

std::optional<double> Row::bestSpeedup() const {
  if (!bestMs() || !ucudnnMs || *ucudnnMs <= 0) return std::nullopt;
  return *bestMs() / *ucudnnMs;
}

std::optional<double> Row::predictionError() const {
  if (!predictedMs || !ucudnnMs || *ucudnnMs <= 0) return std::nullopt;
  return *predictedMs / *ucudnnMs - 1;
}

bool Row::isLessAccurate() const {
  const bool split =
      configuration.size() > 1 || (configuration.size() == 1 && configuration[0].count > 1);
  if (!split || !relativeError || !unlimitedRelativeError) return false;
  const double cudnns =
      std::max(*unlimitedRelativeError, pickedRelativeError.value_or(*unlimitedRelativeError));
  return *relativeError > std::max(1.1 * cudnns, cudnns + 1e-6);
}

Totals computeTotals(const std::vector<Row>& rows) {
  Totals totals;
  totals.rows = rows.size();
  double logarithms = 0;
  int compared = 0;
  int undivided = 0;
  double undividedMs = 0;
  std::vector<double> errors;
  for (const Row& row : rows) {
    if (!row.error.empty()) ++totals.failed;
    if (row.isLessAccurate()) ++totals.lessAccurate;
    totals.planningMs += row.planningMs.value_or(0);
    if (const auto error = row.predictionError()) errors.push_back(std::abs(*error));
    const auto speedup = row.speedup();
    if (!speedup || !row.unlimitedMs) continue;
    ++compared;
    totals.cudnnMs += *row.cudnnMs;
    totals.ucudnnMs += *row.ucudnnMs;
    totals.unlimitedMs += *row.unlimitedMs;
    totals.bestMs += *row.bestMs();
    if (row.undividedMs) ++undivided;
    undividedMs += row.undividedMs.value_or(0);
    totals.predictedMs += row.predictedMs.value_or(*row.ucudnnMs);
    logarithms += std::log(*speedup);
    totals.maximumSpeedup = std::max(totals.maximumSpeedup.value_or(0), *speedup);
  }
  if (compared > 0) {
    totals.speedup = totals.cudnnMs / totals.ucudnnMs;
    totals.geometricMeanSpeedup = std::exp(logarithms / compared);
    if (undivided == compared) totals.undividedMs = undividedMs;
  }
  if (!errors.empty()) {
    totals.predictionMedianError = median(errors);
    totals.predictionMaximumError = *std::max_element(errors.begin(), errors.end());
  }
  return totals;
}

std::vector<AgainstBest> compareWithBest(const std::vector<Row>& rows) {
  std::vector<AgainstBest> limits;
  std::vector<double> logarithms;
  for (const Row& row : rows) {
    const auto same = std::find_if(limits.begin(), limits.end(), [&](const AgainstBest& limit) {
      return limit.limitBytes == row.limitBytes;
    });
    const auto place = static_cast<std::size_t>(same - limits.begin());
    if (same == limits.end()) {
      limits.push_back({row.limitBytes, 0, std::nullopt, std::nullopt, ""});
      logarithms.push_back(0);
    }
    const auto speedup = row.bestSpeedup();
    if (!speedup || !row.error.empty()) continue;
    AgainstBest& limit = limits[place];
    ++limit.rows;
    logarithms[place] += std::log(*speedup);
    limit.geometricMean = std::exp(logarithms[place] / static_cast<double>(limit.rows));
    if (limit.minimum && *limit.minimum <= *speedup) continue;
    limit.minimum = *speedup;
    limit.minimumRow = row.layer + " " + row.operation;
  }
  return limits;
}

std::string toText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Json toJson(const Report& report) {
  const Totals totals = computeTotals(report.rows);
  Json rows = Json::array();
  for (const Row& row : report.rows) rows.push_back(toJson(row));
  Json limits = Json::array();
  for (const AgainstBest& limit : compareWithBest(report.rows)) limits.push_back(toJson(limit));
  return {{"machine", report.machine},
          {"settings", report.settings},
          {"totals",
           {{"rows", totals.rows},
            {"failed", totals.failed},
            {"cudnn_ms", totals.cudnnMs},
            {"ucudnn_ms", totals.ucudnnMs},
            {"undivided_ms", orNull(totals.undividedMs)},
            {"unlimited_ms", totals.unlimitedMs},
            {"predicted_ms", totals.predictedMs},
            {"speedup", orNull(totals.speedup)},
            {"geometric_mean_speedup", orNull(totals.geometricMeanSpeedup)},
            {"maximum_speedup", orNull(totals.maximumSpeedup)},
            {"planning_ms", totals.planningMs},
            {"kernels_measured", report.kernelsMeasured},
            {"kernels_loaded", report.kernelsLoaded},
            {"replayed_calls", report.replayedCalls},
            {"graphs", report.graphs},
            {"graph_bytes", report.graphBytes},
            {"less_accurate", totals.lessAccurate},
            {"prediction_median_error", orNull(totals.predictionMedianError)},
            {"prediction_maximum_error", orNull(totals.predictionMaximumError)}}},
          {"against_best", std::move(limits)},
          {"rows", std::move(rows)}};
}

}  // namespace ucudnn::tool
