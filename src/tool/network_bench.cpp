// `ucudnn bench --total-workspace`
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/network.hpp"
#include "tool/output_file.hpp"
#include "tool/progress.hpp"
#include "tool/timing.hpp"

namespace ucudnn::tool {
namespace {

// A network settles after as many calls without a newcomer as it has convolutions: in the second
// iteration. One more finds everything as it stays.
constexpr int kSettlingIterations = 3;

/// What all convolutions compute with: they follow one another, so that one set will do.
struct NetworkData {
  explicit NetworkData(const Network& network)
      : tensors(most(network, &Convolution::xBytes),
                most(network, &Convolution::wBytes),
                most(network, &Convolution::yBytes),
                network.convolution(0).numerics().dataType),
        output(most(network, &Convolution::outputBytes)) {}

  static std::size_t most(const Network& network, std::size_t (Convolution::*bytes)() const) {
    std::size_t most = 0;
    for (std::size_t i = 0; i < network.size(); ++i)
      most = std::max(most, (network.convolution(i).*bytes)());
    return most;
  }

  Tensors tensors;
  DeviceBuffer output;
};

/// Trains the network one way, with a handle of its own.
class Trainer {
 public:
  Trainer(const Network& network,
          const NetworkData& data,
          const BenchOptions& options,
          const NetworkReport& report,
          Way way,
          cudaStream_t stream)
      : network_(network), data_(data), handles_(stream) {
    const UcudnnHandle_t handle = handles_.ours();
    check(handle.setOptimizerBatchSizePolicy(static_cast<ucudnnBatchSizePolicy_t>(options.policy)),
          "ucudnnSetBatchSizePolicy");
    check(handle.setTotalWorkspaceSize(way == Way::kReuse ? 0 : report.totalBytes),
          "ucudnnSetTotalWorkspaceSize");
    if (way == Way::kReuse) {
      workspace_ = DeviceBuffer(report.eachBytes);  // no query has named a limit: this is it
      return;
    }
    check(handle.setTotalWorkspacePolicy(way == Way::kDivide ? UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE
                                                             : UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE),
          "ucudnnSetTotalWorkspacePolicy");
  }

  /// Enqueues one convolution. What the call names is an algorithm that leaves all kernels open: 0
  /// of each operation.
  void convolve(std::size_t i) const {
    run(handles_.ours(),
        network_.convolution(i),
        data_.tensors,
        0,
        Workspace{workspace_.get(), workspace_.bytes()},
        data_.output.get(),
        static_cast<ucudnnLayerId_t>(i));
  }

  void iterate() const {
    for (std::size_t i = 0; i < network_.size(); ++i) convolve(i);
  }

 private:
  const Network& network_;
  const NetworkData& data_;
  Handles handles_;
  DeviceBuffer workspace_;
};

/// Fills in what is measured: each convolution by itself, and iterations.
void timeTrainers(cudaStream_t stream,
                  int repeats,
                  const std::vector<Way>& ways,
                  const std::vector<std::unique_ptr<Trainer>>& trainers,
                  NetworkReport& report) {
  // Calls `store(index of the way, ms)` for what `enqueue(trainer)` takes.
  const auto compare = [&](auto enqueue, auto store) {
    std::vector<Contestant> contestants;
    for (const auto& trainer : trainers)
      contestants.push_back({[&enqueue, &trainer = *trainer] { enqueue(trainer); }});
    timeBackToBack(stream, repeats, contestants);
    for (std::size_t i = 0; i < ways.size(); ++i)
      store(static_cast<std::size_t>(ways[i]), contestants[i].timeMs);
  };
  Progress progress(report.rows.size());
  for (std::size_t row = 0; row < report.rows.size(); ++row) {
    progress.begin(fmt::format("{} {}", report.rows[row].layer, report.rows[row].operation));
    compare([&](const Trainer& trainer) { trainer.convolve(row); },
            [&](std::size_t way, double ms) {
              NetworkTimes& summed = report.totals[way]->summed;
              summed.measuredMs = summed.measuredMs.value_or(0) + ms;
              report.rows[row].choices[way]->measuredMs = ms;
            });
  }
  compare([](const Trainer& trainer) { trainer.iterate(); },
          [&](std::size_t way, double ms) { report.totals[way]->iteration.measuredMs = ms; });
}

}  // namespace

int benchNetwork(const BenchOptions& options, const std::string& command) {
  const std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  OutputFile json("--json", options.jsonFile);
  useDevice(options.device);
  setArithmetic(Arithmetic::kOff);  // times alone; the results are the tests'

  const std::vector<Way> ways = waysOf(options.totalPolicy);
  const Stream stream = makeStream();
  Network network(layers, options);
  NetworkReport report;
  {
    const Handles handles(stream.get());
    check(handles.ours().setTotalWorkspaceSize(0), "ucudnnSetTotalWorkspaceSize");
    check(handles.ours().setOptimizerBatchSizePolicy(
              static_cast<ucudnnBatchSizePolicy_t>(options.policy)),
          "ucudnnSetBatchSizePolicy");
    report = network.plan(handles.ours(), ways, options.totalBytes);
  }
  report.machine = describeMachine(options.device, command);
  report.settings = toJson(options);
  report.settings["repeats"] = options.repeats;

  const NetworkData data(network);
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (const Way way : ways) {
    trainers.push_back(
        std::make_unique<Trainer>(network, data, options, report, way, stream.get()));
    for (int i = 0; i < kSettlingIterations; ++i) trainers.back()->iterate();
  }
  timeTrainers(stream.get(), options.repeats, ways, trainers, report);

  addStatistics(report);
  json.write([&](std::ostream& out) { out << toJson(report).dump(2) << '\n'; });
  if (!json.isStandardOutput()) writeTable(std::cout, report);
  return 0;
}

}  // namespace ucudnn::tool
