// `ucudnn bench --total-workspace`
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/network.hpp"
#include "tool/output_file.hpp"
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

  /// Enqueues every convolution once. What a call names is an algorithm that leaves all kernels
  /// open: 0 of each operation.
  void iterate() const {
    for (std::size_t i = 0; i < network_.size(); ++i)
      run(handles_.ours(),
          network_.convolution(i),
          data_.tensors,
          0,
          Workspace{workspace_.get(), workspace_.bytes()},
          data_.output.get(),
          static_cast<ucudnnLayerId_t>(i));
  }

 private:
  const Network& network_;
  const NetworkData& data_;
  Handles handles_;
  DeviceBuffer workspace_;
};

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
  std::vector<Contestant> contestants;
  for (const Way way : ways) {
    trainers.push_back(
        std::make_unique<Trainer>(network, data, options, report, way, stream.get()));
    const Trainer& trainer = *trainers.back();
    for (int i = 0; i < kSettlingIterations; ++i) trainer.iterate();
    contestants.push_back({[&trainer] { trainer.iterate(); }});
  }
  timeBackToBack(stream.get(), options.repeats, contestants);
  for (std::size_t i = 0; i < ways.size(); ++i)
    report.totals[static_cast<std::size_t>(ways[i])]->measuredMs = contestants[i].timeMs;

  addStatistics(report);
  json.write([&](std::ostream& out) { out << toJson(report).dump(2) << '\n'; });
  if (!json.isStandardOutput()) writeTable(std::cout, report);
  return 0;
}

}  // namespace ucudnn::tool
