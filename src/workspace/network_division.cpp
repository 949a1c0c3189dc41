#include "workspace/network_division.hpp"

#include <utility>

#include "division/workspace_division.hpp"
#include "planner/planner.hpp"
#include "support/log.hpp"
#include "support/sizes.hpp"

namespace ucudnn {
namespace {

#ifdef UCUDNN_DEBUG_GLPK_PRINT
constexpr const char* kDiagnosisDirectory = ".";  // as published
#else
constexpr const char* kDiagnosisDirectory = "";
#endif

/// The convolution's Pareto front. Empty if it takes no part.
const std::vector<Configuration>& frontOf(const Segment& segment,
                                          const std::vector<std::size_t>& limits) {
  const PlanRequest& request = segment.request;
  auto& known = segment.convolution->front;
  if (!known || known->deterministic != request.deterministic || known->calls != request.calls) {
    known = NetworkConvolution::Front{request.deterministic, request.calls, {}};
    try {
      known->points = planner().front(request, Measuring::kNow, limits);
    } catch (const std::exception& error) {
      logWarn("{} takes no part in the division: {}", request.problem.text(), error.what());
    }
  }
  return known->points;
}

}  // namespace

std::optional<std::vector<Segment>> divideNetwork(std::vector<Segment> network,
                                                  std::size_t totalBytes) {
  try {
    std::vector<Segment> segments;
    std::vector<DivisionItem> items;
    const auto limits = limitsToMeasure(totalBytes, network.size());
    for (Segment& segment : network) {
      const std::vector<Configuration>& front = frontOf(segment, limits);
      if (front.empty()) continue;
      DivisionItem& item = items.emplace_back();
      for (const Configuration& point : front)
        item.options.push_back({point.timeMs, point.workspaceBytes});
      segments.push_back(std::move(segment));
    }
    DivisionSettings settings;
    settings.totalBytes = totalBytes;
    settings.diagnosisDirectory = kDiagnosisDirectory;
    const auto division = divideWorkspace(items, settings);
    if (!division) {
      logWarn("{} of workspace cannot be divided among {} convolutions: they share it",
              formatSize(totalBytes),
              items.size());
      return std::nullopt;
    }
    if (!division->optimal)
      logWarn("the division of {} of workspace is not proven to be the best: time was short",
              formatSize(totalBytes));
    for (std::size_t i = 0; i < items.size(); ++i) {
      segments[i].bytes = items[i].options[division->chosen[i]].workspaceBytes;
      segments[i].plan = planner().plan(segments[i].request.within(segments[i].bytes));
    }
    return segments;
  } catch (const std::exception& error) {
    logWarn("the workspace is shared, not divided: {}", error.what());
    return std::nullopt;
  }
}

}  // namespace ucudnn
