// How frameworks choose among the plans of a graph.
#include <algorithm>

#include "graph_client.hpp"

namespace ucudnn::test {

/// aten/src/ATen/native/cudnn/Conv_v8.cpp, try_configs: the next one where there is no memory.
std::optional<GraphClient::Built> GraphClient::chooseAsPyTorch() {
  for (int i = 0; i < static_cast<int>(configurations_.size()); ++i) {
    auto built = build(i);
    if (!built) continue;
    const std::size_t bytes = ask(*built);
    const DeviceMemory workspace(bytes);
    if (!workspace.isThere() || execute(*built, workspace.get()) != CUDNN_STATUS_SUCCESS) continue;
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    result_.passedBytes = bytes;
    return built;
  }
  return std::nullopt;
}

/// The same file, generate_and_filter_plans and get_plans_from_find: the largest of all workspaces
/// serves all; where it can't be allocated, plans of more than half of it go.
/// CUDNN_FIND_SAMPLE_MEDIAN_OF_THREE takes the least of three times (cudnn_frontend_find_plan.h).
std::optional<GraphClient::Built> GraphClient::chooseAsPyTorchBenchmark() {
  std::vector<Built> plans;
  for (int i = 0; i < static_cast<int>(configurations_.size()); ++i)
    if (auto built = build(i)) {
      ask(*built);
      plans.push_back(std::move(*built));
    }
  std::size_t most = habits_.boundBytes;
  DeviceMemory workspace;
  for (bool isThere = false; !isThere;) {
    std::size_t bytes = 0;
    for (const Built& plan : plans)
      if (plan.toldBytes <= most) bytes = std::max(bytes, plan.toldBytes);
    workspace = DeviceMemory();
    workspace = DeviceMemory(bytes);
    isThere = workspace.isThere();
    if (!isThere) most = bytes / 2;
  }
  std::vector<Built*> order;
  for (Built& plan : plans)
    if (plan.toldBytes <= most && timed(plan, workspace.get(), 3)) order.push_back(&plan);
  std::stable_sort(
      order.begin(), order.end(), [](const Built* a, const Built* b) { return a->ms < b->ms; });
  workspace = DeviceMemory();
  for (Built* const plan : order) {
    const DeviceMemory own(plan->toldBytes);
    if (!own.isThere()) continue;
    result_.passedBytes = plan->toldBytes;
    return std::move(*plan);
  }
  return std::nullopt;
}

/// The workspace that the frontend's user will pass; empty: more than the bound. A program that has
/// bounded configurations relies on plans to take no more.
std::optional<std::size_t> GraphClient::boundedBytes(Built& built) {
  std::size_t configured = 0;
  if (habits_.boundsConfigurations) {
    configured = askConfiguration(built.place);
    if (configured > habits_.boundBytes) return std::nullopt;
  }
  if (habits_.passes == Passes::kConfigurationsWorkspace) {
    if (habits_.asksAllFirst) ask(built);
    return configured;
  }
  const std::size_t told = ask(built);
  if (habits_.passes == Passes::kBound && habits_.boundsConfigurations) return habits_.boundBytes;
  if (told > habits_.boundBytes) return std::nullopt;
  return habits_.passes == Passes::kBound ? habits_.boundBytes : told;
}

/// cudnn-frontend's deselect_* and build_plans, and a filter on getWorkspaceSize() == 0 (bound 0).
std::optional<GraphClient::Built> GraphClient::chooseAsFrontend() {
  std::vector<std::pair<Built, std::size_t>> fitting;
  for (int i = 0; i < static_cast<int>(configurations_.size()); ++i) {
    auto built = build(i);
    if (!built) continue;
    if (const auto bytes = boundedBytes(*built)) fitting.emplace_back(std::move(*built), *bytes);
    if (!habits_.asksAllFirst && !fitting.empty()) break;
  }
  if (fitting.empty()) return std::nullopt;
  result_.passedBytes = fitting.front().second;
  return std::move(fitting.front().first);
}

/// xla/stream_executor/cuda/cuda_dnn.cc, CreateOpRunners and the autotuner: engines and knobs by
/// number, each with its workspace; the fastest is built anew, and asked again what it needs.
std::optional<GraphClient::Built> GraphClient::chooseAsXla() {
  std::optional<Built> best;
  for (int i = 0; i < static_cast<int>(configurations_.size()); ++i) {
    auto built = buildByIndex(i);
    if (!built || ask(*built) > habits_.boundBytes) continue;
    const DeviceMemory workspace(built->toldBytes);
    if (!workspace.isThere() || !timed(*built, workspace.get(), 1)) continue;
    if (!best || built->ms < best->ms) best = std::move(built);
  }
  if (!best) return std::nullopt;
  result_.passedBytes = best->toldBytes;
  result_.rememberedBytes = best->toldBytes;
  auto again = buildByIndex(best->place);
  if (!again) {
    result_.failure = "its plan can't be built again";
    return best;
  }
  if (ask(*again) > *result_.rememberedBytes)
    result_.failure = "its plan needs " + std::to_string(again->toldBytes) +
                      " bytes when it is built again, not " +
                      std::to_string(*result_.rememberedBytes);
  return again;
}

}  // namespace ucudnn::test
