// `ucudnn bench --total-workspace`
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/network.hpp"
#include "tool/output_file.hpp"
#include "tool/progress.hpp"
#include "tool/timing.hpp"
#include "tool/trainer.hpp"

namespace ucudnn::tool {
namespace {

/// The host's time to enqueue an iteration: the least of several, because disturbances only add to
/// it.
double hostMs(cudaStream_t stream, int repeats, const Trainer& trainer) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    const auto begin = std::chrono::steady_clock::now();
    trainer.iterate();
    least = std::min(least, msSince(begin));
  }
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return least;
}

/// Fills in what is measured: each convolution by itself, and iterations.
void timeTrainers(cudaStream_t stream,
                  int repeats,
                  const std::vector<Way>& ways,
                  const std::vector<std::unique_ptr<Trainer>>& trainers,
                  NetworkReport& report) {
  const auto convolutions = static_cast<double>(report.rows.size());
  // Calls `store(index of the way, timed contestant)` for what `enqueue(trainer)` takes.
  const auto compare = [&](auto enqueue, auto store) {
    std::vector<Contestant> contestants;
    contestants.reserve(trainers.size());
    for (const auto& trainer : trainers)
      contestants.push_back({[&enqueue, &trainer = *trainer] { enqueue(trainer); }});
    timeBackToBack(stream, repeats, contestants);
    for (std::size_t i = 0; i < ways.size(); ++i)
      store(static_cast<std::size_t>(ways[i]), contestants[i]);
  };
  Progress progress(report.rows.size());
  for (std::size_t row = 0; row < report.rows.size(); ++row) {
    progress.begin(fmt::format("{} {}", report.rows[row].layer, report.rows[row].operation));
    compare([&](const Trainer& trainer) { trainer.convolve(row); },
            [&](std::size_t way, const Contestant& timed) {
              NetworkTimes& summed = report.totals[way]->summed;
              summed.measuredMs = summed.measuredMs.value_or(0) + timed.timeMs;
              summed.replayed = summed.replayed.value_or(0) + timed.replayedCalls / convolutions;
              report.rows[row].choices[way]->measuredMs = timed.timeMs;
              report.rows[row].choices[way]->replayed = timed.replayedCalls;
            });
  }
  compare([](const Trainer& trainer) { trainer.iterate(); },
          [&](std::size_t way, const Contestant& timed) {
            NetworkTimes& iteration = report.totals[way]->iteration;
            iteration.measuredMs = timed.timeMs;
            iteration.replayed = timed.replayedCalls / convolutions;
          });
  if (onSimulator()) return;  // a GPU's host it is not
  for (std::size_t i = 0; i < ways.size(); ++i)
    report.totals[static_cast<std::size_t>(ways[i])]->iteration.hostMs =
        hostMs(stream, repeats, *trainers[i]);
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
    configure(handles.ours(), options);
    report = network.plan(handles.ours(), ways, options.totalBytes);
  }
  report.machine = describeMachine(options.device, command);
  report.settings = toJson(options);
  report.settings["repeats"] = options.repeats;
  report.settings["streams"] = toText(options.streams);

  const NetworkData data(network);
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (const Way way : ways) {
    trainers.push_back(
        std::make_unique<Trainer>(network, data, options, report, way, stream.get()));
    trainers.back()->settle();
  }
  timeTrainers(stream.get(), options.repeats, ways, trainers, report);

  addStatistics(report);
  if (!json.isStandardOutput()) writeTable(std::cout, report);
  json.write([&](std::ostream& out) { out << toText(toJson(report)); });
  return 0;
}

}  // namespace ucudnn::tool
