// `ucudnn plan`
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "support/sizes.hpp"
#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/output_file.hpp"
#include "tool/plan_description.hpp"
#include "tool/progress.hpp"

namespace ucudnn::tool {
namespace {

/// What μ-cuDNN knows of one layer's operation.
struct Planned {
  std::string layer, operation, shape;
  std::vector<ucudnnMicroBatches_t> candidates;
  std::vector<ucudnnParetoPoint_t> front;
  std::optional<PlanDescription> choice;
  std::vector<PlanDescription> accuracy;  ///< the front of time and error, if it is asked for
  std::string error;
};

/// As it is known of the candidates: a plan that was made before does not know its own.
std::optional<double> errorOf(const PlanDescription& plan,
                              const std::vector<ucudnnMicroBatches_t>& candidates) {
  double error = 0;
  for (const MicroBatches& part : plan.configuration) {
    const auto same =
        std::find_if(candidates.begin(), candidates.end(), [&](const ucudnnMicroBatches_t& entry) {
          return entry.batch == part.batch && entry.kernel == part.kernel;
        });
    if (same == candidates.end() || same->error < 0) return std::nullopt;
    error = std::max(error, same->error);
  }
  return error;
}

Planned planRow(UcudnnHandle_t handle,
                const Layer& layer,
                ucudnnOperation_t operation,
                const ConvolutionOptions& options) {
  setArithmetic(arithmeticToPlan(options, layer));
  Planned planned;
  planned.layer = layer.name;
  planned.operation = toText(operation);
  planned.shape = layer.shape();
  try {
    const Convolution convolution(layer, operation, options.numerics);
    planned.choice = describePlan(handle, convolution, options.limitBytes);
    if (!planned.choice) throw DeviceError("not planned: it runs through cuDNN as it is");
    if (options.accuracy) planned.accuracy = describeAccuracy(handle, convolution, options);
    planned.candidates = askAll<ucudnnMicroBatches_t>(
        ucudnnGetConvolutionCandidates, "ucudnnGetConvolutionCandidates", handle, convolution);
    planned.choice->error = errorOf(*planned.choice, planned.candidates);
    planned.front = askAll<ucudnnParetoPoint_t>(
        ucudnnGetConvolutionParetoFront, "ucudnnGetConvolutionParetoFront", handle, convolution);
  } catch (const DeviceError& error) {
    planned.error = error.what();
  }
  return planned;
}

nlohmann::ordered_json toJson(const Planned& planned, std::size_t limitBytes) {
  using Json = nlohmann::ordered_json;
  Json candidates = Json::array();
  for (const ucudnnMicroBatches_t& entry : planned.candidates)
    candidates.push_back({{"batch", entry.batch},
                          {"kernel", entry.kernel},
                          {"time_ms", entry.timeMs},
                          {"device_ms", entry.deviceMs},
                          {"workspace_bytes", entry.workspaceBytes},
                          {"deterministic", entry.deterministic != 0},
                          {"error", entry.error >= 0 ? Json(entry.error) : Json(nullptr)}});
  Json front = Json::array();
  for (const ucudnnParetoPoint_t& point : planned.front)
    front.push_back({{"time_ms", point.timeMs}, {"workspace_bytes", point.workspaceBytes}});
  const PlanDescription choice = planned.choice.value_or(PlanDescription());
  Json accuracy = Json::array();
  for (const PlanDescription& point : planned.accuracy)
    accuracy.push_back({{"error", orNull(point.error)},
                        {"time_ms", point.predictedMs},
                        {"workspace_bytes", point.workspaceBytes},
                        {"configuration", toJson(point.configuration)}});
  return {{"layer", planned.layer},
          {"operation", planned.operation},
          {"shape", planned.shape},
          {"limit_bytes", limitBytes},
          {"predicted_ms", planned.choice ? Json(choice.predictedMs) : Json(nullptr)},
          {"predicted_replayed", planned.choice ? Json(choice.replayed) : Json(nullptr)},
          {"configuration", toJson(choice.configuration)},
          {"configuration_error", orNull(choice.error)},
          {"front", std::move(front)},
          {"accuracy", std::move(accuracy)},
          {"candidates", std::move(candidates)},
          {"error", planned.error.empty() ? Json(nullptr) : Json(planned.error)}};
}

void print(std::ostream& stream, const Planned& planned, std::size_t limitBytes) {
  stream << fmt::format("{} {} ({})\n", planned.layer, planned.operation, planned.shape);
  if (!planned.error.empty()) {
    stream << fmt::format("  FAILED: {}\n\n", planned.error);
    return;
  }
  stream << "  candidates\n";
  std::vector<std::vector<std::string>> lines = {
      {"    batch", "ms", "ms a sample", "workspace", "kernel"}};
  for (const ucudnnMicroBatches_t& entry : planned.candidates)
    lines.push_back(
        {fmt::format("{}", entry.batch),
         fmt::format("{:.4f}", entry.timeMs),
         fmt::format("{:.5f}", entry.timeMs / entry.batch),
         formatSize(entry.workspaceBytes),
         fmt::format(
             "{}{}", entry.kernel, entry.deterministic != 0 ? "" : " (not deterministic)")});
  writeColumns(stream, lines, 0);
  stream << "  Pareto front\n";
  lines = {{"    workspace", "ms"}};
  for (const ucudnnParetoPoint_t& point : planned.front)
    lines.push_back({formatSize(point.workspaceBytes), fmt::format("{:.4f}", point.timeMs)});
  writeColumns(stream, lines, 0);
  if (!planned.accuracy.empty()) {
    stream << "  accuracy\n";
    lines = {{"    error", "ms", "configuration"}};
    for (const PlanDescription& point : planned.accuracy)
      lines.push_back({fmt::format("{:.1e}", point.error.value()),
                       fmt::format("{:.4f}", point.predictedMs),
                       toText(point.configuration)});
    writeColumns(stream, lines, 0);
  }
  stream << fmt::format(
      "  choice within {}: {}, {:.4f} ms{}{}\n\n",
      formatSize(limitBytes),
      toText(planned.choice->configuration),
      planned.choice->predictedMs,
      planned.choice->replayed ? " when replayed" : "",
      planned.choice->error ? fmt::format(", error {:.1e}", *planned.choice->error) : "");
}

}  // namespace

int plan(const ConvolutionOptions& options, const std::string& command) {
  const std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  OutputFile json("--json", options.jsonFile);
  expectWritablePlans(options);
  useDevice(options.device);

  const Stream stream = makeStream();
  const Handles handles(stream.get());
  configure(handles.ours(), options);
  // The Pareto front ends at the limit that the handle knows.
  check(handles.ours().setDefaultWorkspaceLimit(options.limitBytes),
        "ucudnnSetDefaultWorkspaceLimit");
  std::vector<Planned> rows;
  {
    Progress progress(layers.size() * options.operations.size());
    for (const Layer& layer : layers)
      for (const ucudnnOperation_t operation : options.operations) {
        progress.begin(fmt::format("{} {}", layer.name, toText(operation)));
        rows.push_back(planRow(handles.ours(), layer, operation, options));
      }
  }
  if (!json.isStandardOutput())
    for (const Planned& row : rows) print(std::cout, row, options.limitBytes);
  json.write([&](std::ostream& out) {
    nlohmann::ordered_json all = {{"machine", describeMachine(options.device, command)},
                                  {"settings", toJson(options)},
                                  {"rows", nlohmann::ordered_json::array()}};
    for (const Planned& row : rows) all["rows"].push_back(toJson(row, options.limitBytes));
    out << toText(all);
  });
  savePlans(options);
  const auto failed = [](const Planned& row) { return !row.error.empty(); };
  return std::any_of(rows.begin(), rows.end(), failed) ? 1 : 0;
}

}  // namespace ucudnn::tool
