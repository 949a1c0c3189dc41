// `ucudnn plan`
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <utility>

#include "support/sizes.hpp"
#include "tool/columns.hpp"
#include "tool/commands.hpp"
#include "tool/device_data.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/output_file.hpp"
#include "tool/placement_bound.hpp"
#include "tool/plan_description.hpp"
#include "tool/progress.hpp"
#include "tool/timing.hpp"

namespace ucudnn::tool {
namespace {

constexpr std::size_t kSplitColumns = 70;  // what is left beside workspace and time

/// A point of the front, and the plan that has it.
struct Point {
  double timeMs = 0;
  std::size_t workspaceBytes = 0;
  std::vector<MicroBatches> configuration;
};

/// μ-cuDNN's plans for one layer's operation.
struct Planned {
  std::string layer, operation, shape;
  std::vector<ucudnnMicroBatches_t> candidates;
  std::vector<Point> front;
  std::optional<PlanDescription> choice;
  double planningMs = 0;                  ///< of the choice
  std::vector<PlanDescription> accuracy;  ///< the front of time and error, if it is asked for
  std::string error;
};

/// The plan's error, from the candidates: a plan that was made before does not know its own.
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
    const auto begin = std::chrono::steady_clock::now();
    planned.choice = describePlan(handle, convolution, options.limitBytes);
    planned.planningMs = msSince(begin);
    if (!planned.choice) throw DeviceError("not planned: it runs through cuDNN as it is");
    if (options.accuracy) planned.accuracy = describeAccuracy(handle, convolution, options);
    planned.candidates = askAll<ucudnnMicroBatches_t>(
        ucudnnGetConvolutionCandidates, "ucudnnGetConvolutionCandidates", handle, convolution);
    planned.choice->error = errorOf(*planned.choice, planned.candidates);
  } catch (const DeviceError& error) {
    planned.error = error.what();
  }
  return planned;
}

/// Each point's plan is made, too: after those that are chosen have been saved.
void addFront(UcudnnHandle_t handle,
              const Layer& layer,
              ucudnnOperation_t operation,
              const ConvolutionOptions& options,
              Planned& planned) {
  if (!planned.error.empty()) return;
  try {
    const Convolution convolution(layer, operation, options.numerics);
    for (const ucudnnParetoPoint_t& point :
         askAll<ucudnnParetoPoint_t>(ucudnnGetConvolutionParetoFront,
                                     "ucudnnGetConvolutionParetoFront",
                                     handle,
                                     convolution)) {
      auto plan = describePlan(handle, convolution, point.workspaceBytes);
      planned.front.push_back(
          {point.timeMs,
           point.workspaceBytes,
           plan ? std::move(plan->configuration) : std::vector<MicroBatches>()});
    }
  } catch (const DeviceError& error) {
    planned.error = error.what();
  }
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
  for (const Point& point : planned.front)
    front.push_back({{"time_ms", point.timeMs},
                     {"workspace_bytes", point.workspaceBytes},
                     {"configuration", toJson(point.configuration)}});
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
          {"planning_ms", planned.planningMs},
          {"front", std::move(front)},
          {"accuracy", std::move(accuracy)},
          {"candidates", std::move(candidates)},
          {"error", planned.error.empty() ? Json(nullptr) : Json(planned.error)}};
}

/// The time of micro-batches in a repeated call: the only kind of time that is printed.
double printedMs(const ucudnnMicroBatches_t& entry, const ConvolutionOptions& options) {
  return options.graphMemoryBytes > 0 ? entry.deviceMs : entry.timeMs;
}

/// Whether the same kernels run the same micro-batches.
bool isSame(const std::vector<MicroBatches>& one, const std::vector<MicroBatches>& other) {
  const auto areSame = [](const MicroBatches& a, const MicroBatches& b) {
    return a.batch == b.batch && a.count == b.count && a.kernel == b.kernel;
  };
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), areSame);
}

/// The line of the plan, or else the fastest one that needs no more workspace. There may be faster
/// ones than the plan: what is gained below 1 % is not worth workspace.
const Point* lineOf(const Planned& planned) {
  const Point* fastest = nullptr;
  const Point* same = nullptr;
  for (const Point& point : planned.front) {
    if (point.workspaceBytes > planned.choice->workspaceBytes) break;
    fastest = &point;
    if (isSame(point.configuration, planned.choice->configuration)) same = &point;
  }
  return same != nullptr ? same : fastest;
}

/// Marks the line of the plan.
void printFront(std::ostream& stream, const Planned& planned, bool verbose) {
  stream << "  Pareto front\n";
  std::vector<std::vector<std::string>> lines = {{"    ", "workspace", "ms", "split"}};
  const Point* const choice = lineOf(planned);
  for (const Point& point : planned.front) {
    lines.push_back({&point == choice ? "   *" : "",
                     formatSize(point.workspaceBytes),
                     fmt::format("{:.4f}", point.timeMs),
                     splitText(point.configuration, kSplitColumns)});
  }
  writeColumns(stream, lines, 1);
  if (!verbose) return;
  for (const Point& point : planned.front) {
    stream << fmt::format("  {}\n", formatSize(point.workspaceBytes));
    writeConfiguration(stream, point.configuration, "    ");
  }
}

void printCandidates(std::ostream& stream,
                     const Planned& planned,
                     const ConvolutionOptions& options) {
  stream << "  kernels\n";
  std::vector<std::vector<std::string>> lines = {
      {"    batch", "ms", "ms a sample", "workspace", "kernel"}};
  for (const ucudnnMicroBatches_t& entry : planned.candidates)
    lines.push_back(
        {fmt::format("{}", entry.batch),
         fmt::format("{:.4f}", printedMs(entry, options)),
         fmt::format("{:.5f}", printedMs(entry, options) / entry.batch),
         formatSize(entry.workspaceBytes),
         fmt::format(
             "{}{}", entry.kernel, entry.deterministic != 0 ? "" : " (not deterministic)")});
  writeColumns(stream, lines, 0);
}

void printAccuracy(std::ostream& stream, const Planned& planned, bool verbose) {
  stream << "  accuracy\n";
  std::vector<std::vector<std::string>> lines = {{"    error", "ms", "split"}};
  for (const PlanDescription& point : planned.accuracy)
    lines.push_back({fmt::format("{:.1e}", point.error.value()),
                     fmt::format("{:.4f}", point.predictedMs),
                     splitText(point.configuration, kSplitColumns)});
  writeColumns(stream, lines, 0);
  if (!verbose) return;
  for (const PlanDescription& point : planned.accuracy) {
    stream << fmt::format("  {:.1e}\n", point.error.value());
    writeConfiguration(stream, point.configuration, "    ");
  }
}

void print(std::ostream& stream, const Planned& planned, const ConvolutionOptions& options) {
  stream << fmt::format("{} {} ({})\n", planned.layer, planned.operation, planned.shape);
  if (!planned.error.empty()) {
    stream << fmt::format("  FAILED: {}\n\n", planned.error);
    return;
  }
  const PlanDescription& choice = *planned.choice;
  stream << fmt::format("  within {}: {:.4f} ms, {} of workspace{}\n",
                        formatSize(options.limitBytes),
                        choice.predictedMs,
                        formatSize(choice.workspaceBytes),
                        choice.error ? fmt::format(", error {:.1e}", *choice.error) : "");
  if (options.verbose)
    writeConfiguration(stream, choice.configuration, "    ");
  else
    stream << fmt::format("    {}\n", splitText(choice.configuration, kMostColumns));
  printFront(stream, planned, options.verbose);
  if (!planned.accuracy.empty()) printAccuracy(stream, planned, options.verbose);
  if (options.verbose)
    printCandidates(stream, planned, options);
  else
    stream << fmt::format("  {} kernels measured; --verbose lists them\n",
                          planned.candidates.size());
  stream << '\n';
}

/// For `--device-memory`, if each of the step's calls has a plan. Throws DeviceError.
std::optional<PlacementReport> placementOf(const std::vector<Layer>& layers,
                                           const std::vector<Planned>& rows,
                                           const ConvolutionOptions& options,
                                           cudaStream_t stream) {
  if (options.deviceBytes == 0) return std::nullopt;
  std::vector<LayerTimes> times;
  auto row = rows.begin();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    times.emplace_back();
    for (const ucudnnOperation_t operation : options.operations) {
      if (!row->choice) return std::nullopt;
      double& ms = operation == UCUDNN_FORWARD         ? times.back().forwardMs
                   : operation == UCUDNN_BACKWARD_DATA ? times.back().backwardDataMs
                                                       : times.back().backwardFilterMs;
      ms = (row++)->choice->predictedMs;
    }
  }
  return describePlacement(trainingStep(layers,
                                        times,
                                        elementBytes(options.numerics.dataType),
                                        options.deviceBytes,
                                        measureLink(stream)));
}

void expectTrainingStep(const std::vector<Layer>& layers, const ConvolutionOptions& options) {
  if (options.deviceBytes == 0) return;
  for (const ucudnnOperation_t operation :
       {UCUDNN_FORWARD, UCUDNN_BACKWARD_DATA, UCUDNN_BACKWARD_FILTER})
    if (std::count(options.operations.begin(), options.operations.end(), operation) == 0)
      throw BadInput("--device-memory: a training step has all three operations");
  for (const Layer& layer : layers)
    if (!layer.dataType.empty())
      throw BadInput("--device-memory: the layers' tensors have one data type");
}

}  // namespace

int plan(const ConvolutionOptions& options, const std::string& command) {
  const std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  expectTrainingStep(layers, options);
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
  savePlans(options);
  auto row = rows.begin();
  for (const Layer& layer : layers)
    for (const ucudnnOperation_t operation : options.operations)
      addFront(handles.ours(), layer, operation, options, *row++);
  const std::optional<PlacementReport> placement = placementOf(layers, rows, options, stream.get());
  if (!json.isStandardOutput()) {
    for (const Planned& planned : rows) print(std::cout, planned, options);
    if (placement) print(std::cout, *placement);
  }
  json.write([&](std::ostream& out) {
    nlohmann::ordered_json all = {{"machine", describeMachine(options.device, command)},
                                  {"settings", toJson(options)},
                                  {"rows", nlohmann::ordered_json::array()}};
    for (const Planned& planned : rows) all["rows"].push_back(toJson(planned, options.limitBytes));
    if (placement) all["placement"] = toJson(*placement);
    out << toText(all);
  });
  const auto failed = [](const Planned& planned) { return !planned.error.empty(); };
  return std::any_of(rows.begin(), rows.end(), failed) ? 1 : 0;
}

}  // namespace ucudnn::tool
