// `ucudnn bench`
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <optional>
#include <sstream>

#include "support/sizes.hpp"
#include "tool/bench_row.hpp"
#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/interruption.hpp"
#include "tool/machine.hpp"
#include "tool/output_file.hpp"
#include "tool/progress.hpp"

namespace ucudnn::tool {
namespace {

/// Loads cuDNN's libraries and their first kernels, which takes a second and is no part of planning
/// the first layer: one small convolution, through the native handle.
void warmUp(const Handles& handles, const BenchOptions& options) {
  Layer layer;
  layer.batch = 2;
  layer.inputChannels = layer.outputChannels = 8;
  layer.size = {16, 16};
  layer.kernel = {3, 3};
  layer.pad = layer.stride = layer.dilation = {1, 1};
  try {
    for (const ucudnnOperation_t operation : options.operations) {
      const Convolution convolution(layer, operation, options.numerics);
      const Tensors tensors(convolution);
      const DeviceBuffer workspace(std::size_t{1} << 20);  // enough for such a small one
      findAlgorithms(handles.native(), convolution, tensors, workspace);
    }
  } catch (const DeviceError&) {
    // The layers' own rows report a convolution that can't be computed at all.
  }
}

nlohmann::ordered_json settingsOf(const BenchOptions& options) {
  nlohmann::ordered_json settings = toJson(options);
  settings["workspace_limits_bytes"] = options.limitsBytes;
  settings["repeats"] = options.repeats;
  settings["check"] = options.check;
  settings["arithmetic"] =
      !onSimulator()
          ? nlohmann::ordered_json(nullptr)
          : nlohmann::ordered_json(options.arithmetic ? toText(*options.arithmetic) : "auto");
  const std::string database =
      options.database.value_or(settingsFromEnvironment(Reporting::kNever).databasePath);
  settings["database"] =
      database.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(database);
  return settings;
}

/// The autotuner times each undivided kernel. So its tuning is exhaustive: fast tuning leaves out
/// engines that lose against splits. It has no file of plans, which would name splits, and no
/// total, which would replace the limit.
void configureAutotuner(UcudnnHandle_t handle, const BenchOptions& options) {
  BenchOptions undivided = options;
  undivided.policy = BatchSizePolicy::kUndivided;
  undivided.kernels = Kernels::kAll;
  undivided.tuning = Tuning::kExhaustive;
  undivided.maxError = 0;
  configure(handle, undivided);
  check(handle.setPlans(""), "ucudnnSetPlans");
  check(handle.setTotalWorkspaceSize(0), "ucudnnSetTotalWorkspaceSize");
}

/// The names of files that are separated by commas.
std::string fileNames(const std::string& paths) {
  std::string names;
  std::istringstream stream(paths);
  for (std::string path; std::getline(stream, path, ',');)
    names += (names.empty() ? "" : ", ") + path.substr(path.rfind('/') + 1);
  return names;
}

/// Remarks that a reader of the table needs.
std::vector<std::string> remarksOn(const nlohmann::ordered_json& machine,
                                   const BenchOptions& options,
                                   const std::vector<Layer>& layers) {
  std::vector<std::string> limits;
  for (const std::size_t bytes : options.limitsBytes) limits.push_back(formatSize(bytes));
  std::vector<std::string> remarks = {fmt::format("{}, cuDNN {}, CUDA {}, μ-cuDNN {}",
                                                  machine.at("device").get<std::string>(),
                                                  machine.at("cudnn").get<std::string>(),
                                                  machine.at("cuda").get<std::string>(),
                                                  machine.at("ucudnn").get<std::string>()),
                                      fmt::format("limit {}, policy {}, {}, {} math, {}, replay {}",
                                                  fmt::join(limits, ", "),
                                                  toText(options.policy),
                                                  options.dataTypeName,
                                                  options.mathName,
                                                  options.layoutName,
                                                  options.graphMemoryBytes > 0 ? "on" : "off")};
  if (!onSimulator()) return remarks;
  const std::string profile = simulatorProfile();
  remarks.push_back(
      "simulated: times are virtual, " +
      (profile.empty() ? "from a model" : "recorded on a GPU: " + fileNames(profile)));
  std::size_t sampled = 0;
  std::size_t off = 0;
  for (const Layer& layer : layers) {
    const Arithmetic arithmetic = arithmeticFor(options, layer);
    if (arithmetic == Arithmetic::kSampled) ++sampled;
    if (arithmetic == Arithmetic::kOff) ++off;
  }
  if (options.check && sampled > 0)
    remarks.push_back(
        fmt::format("arithmetic: {} of {} layers are large and compared at sampled outputs only",
                    sampled,
                    layers.size()));
  if (options.check && off > 0)
    remarks.push_back(fmt::format(
        "arithmetic: off for {} of {} layers, which are not compared", off, layers.size()));
  return remarks;
}

}  // namespace

int bench(const BenchOptions& options, const std::string& command) {
  const std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  OutputFile json("--json", options.jsonFile);
  useDevice(options.device);

  Report report;
  report.machine = describeMachine(options.device, command);
  report.settings = settingsOf(options);
  report.remarks = remarksOn(report.machine, options, layers);
  const Interruption interruption;  // until all is written
  {
    const Stream stream = makeStream();
    const Handles handles(stream.get());
    configure(handles.ours(), options);
    std::optional<Handles> autotuner;
    if (options.kernels != Kernels::kLegacy) {
      autotuner.emplace(stream.get());
      configureAutotuner(autotuner->ours(), options);
    }
    warmUp(handles, options);
    Progress progress(layers.size() * options.operations.size());
    for (const Layer& layer : layers)
      for (const ucudnnOperation_t operation : options.operations) {
        progress.begin(fmt::format("{} {}", layer.name, toText(operation)));
        const std::vector<Row> rows =
            interruption.happened() ? rowsNotRun(layer, operation, options, "not run: interrupted")
                                    : benchRows(handles,
                                                autotuner ? &*autotuner : nullptr,
                                                stream.get(),
                                                layer,
                                                operation,
                                                options);
        report.rows.insert(report.rows.end(), rows.begin(), rows.end());
      }
    addStatistics(report);  // while there are handles: graphs end with the last one
    for (const Row& row : report.rows) report.kernelsMeasured -= row.comparedKernels;
  }

  if (!json.isStandardOutput()) writeTable(std::cout, report, options.verbose);
  json.write([&](std::ostream& stream) { stream << toText(toJson(report)); });
  return computeTotals(report.rows).failed == 0 ? 0 : 1;
}

}  // namespace ucudnn::tool
