#include "tool/network.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "support/alignment.hpp"
#include "support/sizes.hpp"
#include "tool/device.hpp"
#include "tool/failure.hpp"
#include "tool/progress.hpp"
#include "tool/timing.hpp"

namespace ucudnn::tool {
namespace {

NetworkChoice choose(cudnnHandle_t handle,
                     const Convolution& convolution,
                     const NetworkRow& row,
                     std::size_t bytes) {
  auto plan = describePlan(handle, convolution, bytes);
  if (!plan)
    throw DeviceError(row.layer + " " + row.operation + ": no plan within " + formatSize(bytes) +
                      ": it runs through cuDNN as it is");
  return {std::move(*plan), std::nullopt, std::nullopt};
}

void addTotals(NetworkReport& report, Way way) {
  const auto index = static_cast<std::size_t>(way);
  NetworkTotals totals;
  double deviceMs = 0;
  double hostPacedMs = 0;
  for (const NetworkRow& row : report.rows) {
    const PlanDescription& plan = row.choices[index]->plan;
    totals.summed.predictedMs += plan.predictedMs;
    deviceMs += plan.deviceMs;
    hostPacedMs += plan.hostPacedMs;
    if (way == Way::kShare)
      totals.workspaceBytes = std::max(totals.workspaceBytes, plan.workspaceBytes);
    else
      totals.workspaceBytes += roundUpToAlignment(plan.workspaceBytes);
  }
  totals.iteration.predictedMs = std::max(deviceMs, hostPacedMs);
  report.totals[index] = totals;
}

}  // namespace

const char* toText(Way way) {
  static const char* const names[] = {"wr", "divide", "share"};
  return names[static_cast<std::size_t>(way)];
}

ucudnnTotalWorkspacePolicy_t policyOf(Way way) {
  return way == Way::kDivide ? UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE
                             : UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE;
}

std::vector<Way> waysOf(TotalWorkspacePolicy policy) {
  switch (policy) {
    case TotalWorkspacePolicy::kDivide:
      return {Way::kReuse, Way::kDivide};
    case TotalWorkspacePolicy::kShare:
      return {Way::kReuse, Way::kShare};
    case TotalWorkspacePolicy::kAuto:
      break;
  }
  std::vector<Way> ways = {Way::kReuse};
  if (workspaceDivisionAvailable()) ways.push_back(Way::kDivide);
  ways.push_back(Way::kShare);
  return ways;
}

Network::Network(const std::vector<Layer>& layers, const ConvolutionOptions& options) {
  const auto add = [&](const Layer& layer, ucudnnOperation_t operation) {
    const auto number = static_cast<std::size_t>(&layer - layers.data());
    const auto& asked = options.operations;
    if (std::find(asked.begin(), asked.end(), operation) == asked.end()) return;
    convolutions_.push_back(std::make_unique<Convolution>(layer, operation, options.numerics));
    layers_.push_back(number);
    rows_.push_back({layer.name, tool::toText(operation), layer.shape(), {}});
  };
  for (const Layer& layer : layers) add(layer, UCUDNN_FORWARD);
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
    for (const ucudnnOperation_t operation : {UCUDNN_BACKWARD_FILTER, UCUDNN_BACKWARD_DATA})
      add(*layer, operation);
}

bool Network::isSamePass(std::size_t i, std::size_t j) const {
  const auto isForward = [&](std::size_t k) {
    return convolutions_[k]->operation() == UCUDNN_FORWARD;
  };
  return layers_[i] == layers_[j] && isForward(i) == isForward(j);
}

NetworkReport Network::plan(cudnnHandle_t handle,
                            const std::vector<Way>& ways,
                            std::size_t totalBytes) {
  NetworkReport report;
  report.totalBytes = totalBytes;
  report.eachBytes = totalBytes / size();
  report.rows = rows_;
  const auto has = [&](Way way) { return std::find(ways.begin(), ways.end(), way) != ways.end(); };
  // Plans from a file are for some limits, and nothing is measured for others.
  const char* const plans = std::getenv("UCUDNN_PLANS");
  const bool measures = has(Way::kDivide) && (plans == nullptr || *plans == '\0');
  const auto begin = std::chrono::steady_clock::now();
  Progress progress(size());
  for (std::size_t i = 0; i < size(); ++i) {
    progress.begin(rows_[i].layer + " " + rows_[i].operation);
    const auto plan = [&](Way way, std::size_t bytes) {
      if (has(way))
        report.rows[i].choices[static_cast<std::size_t>(way)] =
            choose(handle, *convolutions_[i], report.rows[i], bytes);
    };
    if (measures)
      for (const std::size_t bytes : limitsToMeasure(totalBytes, size()))
        describePlan(handle, *convolutions_[i], bytes);
    plan(Way::kReuse, report.eachBytes);
    plan(Way::kShare, totalBytes);
  }
  if (has(Way::kDivide)) {
    findFronts(handle, totalBytes);
    divide(report, handle);
  }
  for (const Way way : ways) addTotals(report, way);
  report.planningMs = msSince(begin);
  return report;
}

void Network::findFronts(cudnnHandle_t handle, std::size_t totalBytes) {
  fronts_.clear();
  for (const auto& convolution : convolutions_) {
    DivisionItem& item = fronts_.emplace_back();
    for (const ucudnnParetoPoint_t& point :
         askAll<ucudnnParetoPoint_t>(ucudnnGetConvolutionParetoFront,
                                     "ucudnnGetConvolutionParetoFront",
                                     handle,
                                     *convolution))
      if (point.workspaceBytes <= totalBytes)
        item.options.push_back({point.timeMs, point.workspaceBytes});
    if (item.options.empty())
      throw DeviceError("a convolution has no configuration within the total");
  }
}

void Network::divide(NetworkReport& report, cudnnHandle_t handle) {
  DivisionSettings settings;
  settings.totalBytes = report.totalBytes;
  const auto begin = std::chrono::steady_clock::now();
  const auto division = divideWorkspace(fronts_, settings);
  report.divisionMs =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (!division) throw DeviceError("the total is too small for a division");
  report.optimal = division->optimal;
  for (std::size_t i = 0; i < size(); ++i)
    report.rows[i].choices[static_cast<std::size_t>(Way::kDivide)] =
        choose(handle,
               *convolutions_[i],
               report.rows[i],
               fronts_[i].options[division->chosen[i]].workspaceBytes);
}

}  // namespace ucudnn::tool
