// A whole network in one workspace total, by the tool on the simulator, with the times recorded on
// an H200 where there are any (all of AlexNet's and ResNet-18's).
#include <algorithm>
#include <limits>
#include <vector>

#include "tool/simulated_tool.hpp"

namespace ucudnn::test {
namespace {

const std::string kLists = UCUDNN_LAYERS "/";

class SimulatedNetwork : public ToolTest {};

double timeOf(const Json& network, const char* way) {
  return network.at("totals").at(way).at("measured_ms");
}

/// Predicted over measured.
double prediction(const Json& times) {
  return times.at("predicted_ms").get<double>() / times.at("measured_ms").get<double>();
}

void expectPredicted(const Json& network, const char* way) {
  const Json& totals = network.at("totals").at(way);
  EXPECT_NEAR(1, prediction(totals), 0.05) << way;
  EXPECT_NEAR(1, prediction(totals.at("iteration")), 0.05) << way;
  EXPECT_LE(totals.at("workspace_bytes"), network.at("total_workspace_bytes")) << way;
}

struct Bound {
  const char* list;
  int batch;
  int convolutions;
  double divide, share;  ///< of WR's time, at most
};

TEST_F(SimulatedNetwork, DividesAndSharesAsTheRecordedTimesPredict) {
  for (const Bound& bound :
       {Bound{"alexnet.csv", 256, 15, 0.75, 0.43}, Bound{"resnet18.csv", 128, 60, 0.72, 0.42}}) {
    SCOPED_TRACE(bound.list);
    const Json network =
        run("bench " + kLists + bound.list + " --batch-size " + std::to_string(bound.batch) +
            " --repeats 1 --total-workspace " + std::to_string(8 * bound.convolutions) + "MiB")
            .at("network");
    EXPECT_EQ(bound.convolutions, network.at("convolutions"));
    EXPECT_EQ(8 << 20, network.at("wr_limit_bytes"));
    expectPredicted(network, "wr");
    expectPredicted(network, "share");
    EXPECT_LE(timeOf(network, "share"), bound.share * timeOf(network, "wr"));
#if UCUDNN_HAVE_DIVISION
    expectPredicted(network, "divide");
    EXPECT_LE(timeOf(network, "divide"), bound.divide * timeOf(network, "wr"));
    EXPECT_TRUE(network.at("division_optimal"));
#endif
  }
}

TEST_F(SimulatedNetwork, TheRowsSumUpToTheTotals) {
  const Json result = run("bench " + kLists + "alexnet.csv --repeats 1 --total-workspace 120MiB");
  for (const auto& [way, totals] : result.at("network").at("totals").items()) {
    double predictedMs = 0, measuredMs = 0, replayed = 0;
    for (const Json& row : result.at("rows")) {
      predictedMs += row.at(way).at("predicted_ms").get<double>();
      measuredMs += row.at(way).at("measured_ms").get<double>();
      replayed += row.at(way).at("replayed").get<double>() / 15;
      EXPECT_LE(row.at(way).at("device_ms"), row.at(way).at("predicted_ms"));
    }
    EXPECT_NEAR(predictedMs, totals.at("predicted_ms"), 1e-6) << way;
    EXPECT_NEAR(measuredMs, totals.at("measured_ms"), 1e-6) << way;
    EXPECT_NEAR(replayed, totals.at("replayed"), 1e-6) << way;
  }
}

// A kernel shorter than the 75 us that a call takes the host would be paced by it; replayed it is
// not.
TEST_F(SimulatedNetwork, AnIterationIsPredictedWhereTheHostWouldPaceKernels) {
  const Json network =
      run("bench " + kLists + "resnet18.csv --batch-size 128 --repeats 1 --total-workspace 480MiB",
          "UCUDNN_SIMULATOR_CALL_US=75")
          .at("network");
  for (const char* const way : {"wr", "share"}) {
    const Json& totals = network.at("totals").at(way);
    const Json& iteration = totals.at("iteration");
    const double measuredMs = iteration.at("measured_ms");
    EXPECT_NEAR(measuredMs, iteration.at("predicted_ms"), 0.005 * measuredMs) << way;
    EXPECT_NEAR(measuredMs, timeOf(network, way), 0.005 * measuredMs) << way;
  }
}

TEST_F(SimulatedNetwork, TheDevicesPartOfATimeIsFoundByReplaying) {
  const auto candidates = [&](const char* environment) {
    return run("plan " + kLists +
                   "resnet18.csv --batch-size 128 --layers layer2.0.conv2 --operations forward",
               environment)
        .at("rows")[0]
        .at("candidates");
  };
  const Json free = candidates("");
  const Json paced = candidates("UCUDNN_SIMULATOR_CALL_US=75");
  int found = 0;
  for (const Json& kernel : paced) {
    const double deviceMs = kernel.at("device_ms");
    EXPECT_LE(deviceMs, kernel.at("time_ms"));
    if (kernel.at("time_ms") > 0.076) continue;  // longer than the host's call
    const auto same = std::find_if(free.begin(), free.end(), [&](const Json& other) {
      return other.at("batch") == kernel.at("batch") && other.at("kernel") == kernel.at("kernel");
    });
    ASSERT_NE(free.end(), same);
    EXPECT_NEAR(1, deviceMs / same->at("device_ms").get<double>(), 0.01) << kernel;
    ++found;
  }
  EXPECT_LT(0, found);
}

// AlexNet and ResNet-18 with a stream and a handle for each layer's operation, as Caffe has them.
TEST_F(SimulatedNetwork, StreamsForEachLayerLoseNothingAgainstOne) {
  for (const Bound& bound :
       {Bound{"alexnet.csv", 256, 120, 0.70, 1.10}, Bound{"resnet18.csv", 128, 480, 0.65, 1.10}}) {
    SCOPED_TRACE(bound.list);
    const auto iterationMs = [&](const std::string& streams) {
      const Json totals = run("bench " + kLists + bound.list + " --batch-size " +
                              std::to_string(bound.batch) + " --repeats 1 --total-workspace " +
                              std::to_string(bound.convolutions) + "MiB --streams " + streams)
                              .at("network")
                              .at("totals");
      std::map<std::string, double> times;
      for (const auto& [way, of] : totals.items())
        times[way] = of.at("iteration").at("measured_ms");
      return times;
    };
    auto one = iterationMs("one");
    auto layer = iterationMs("layer");
    EXPECT_LE(layer.at("share"), bound.share * one.at("share"));
#if UCUDNN_HAVE_DIVISION
    EXPECT_LE(layer.at("share"), bound.divide * layer.at("divide"));
#endif
  }
  EXPECT_EQ(2, runTool("bench x.csv --total-workspace 1 --streams many").status);
}

TEST_F(SimulatedNetwork, PlansOneSample) {
  const Outcome outcome = runTool("plan " + kLists +
                                  "alexnet.csv --batch-size 1 --layers conv3 --operations forward "
                                  "--total-workspace 64MiB");
  EXPECT_EQ(0, outcome.status) << outcome.error;
}

TEST_F(SimulatedNetwork, OperationsThatOverlapAreLetOverlap) {
  const Json result = run("bench " + kLists +
                          "alexnet.csv --batch-size 8 --repeats 1 --total-workspace 60MiB "
                          "--streams operation");
  EXPECT_EQ("operation", result.at("settings").at("streams"));
  const Json& totals = result.at("network").at("totals");
  const auto iterationMs = [&](const char* way) {
    return totals.at(way).at("iteration").at("measured_ms").get<double>();
  };
  double best = iterationMs("wr");
#if UCUDNN_HAVE_DIVISION
  best = std::min(best, iterationMs("divide"));
#endif
  EXPECT_LE(iterationMs("share"), 1.05 * best);
}

TEST_F(SimulatedNetwork, WithoutReplayNothingIsReplayed) {
  const Json result = run("bench " + kLists +
                          "alexnet.csv --repeats 1 --total-workspace 120MiB --replay off "
                          "--streams operation");
  EXPECT_EQ(false, result.at("settings").at("replay"));
  const Json& network = result.at("network");
  for (const char* const counter : {"replayed_calls", "graphs", "graph_bytes"})
    EXPECT_EQ(0, network.at(counter)) << counter;
  for (const auto& [way, totals] : network.at("totals").items()) {
    EXPECT_EQ(0, totals.at("replayed")) << way;
    EXPECT_EQ(0, totals.at("iteration").at("replayed")) << way;
    for (const Json& row : result.at("rows"))
      EXPECT_EQ(false, row.at(way).at("predicted_replayed")) << way;
  }
  EXPECT_NE(outcome_.output.find("replay off\n"), std::string::npos) << outcome_.output;
}

TEST_F(SimulatedNetwork, APolicyLimitsWhatIsCompared) {
  const Json network = run("bench " + kLists +
                           "alexnet.csv --repeats 1 --total-workspace 120MiB "
                           "--total-workspace-policy share")
                           .at("network");
  EXPECT_EQ(0U, network.at("totals").count("divide"));
  EXPECT_EQ(1U, network.at("totals").count("share"));
  EXPECT_EQ(2, runTool("bench x.csv --total-workspace 1 --total-workspace-policy other").status);
  EXPECT_EQ(2, runTool("bench x.csv --total-workspace much").status);
}

#if UCUDNN_HAVE_SQLITE
TEST_F(SimulatedNetwork, AWarmStartMeasuresNothing) {
  const std::string arguments =
      "bench " + kLists + "alexnet.csv --repeats 1 --total-workspace 120MiB";
  const std::string environment = "UCUDNN_DATABASE=" + directory_.file("measurements.db");
  const Json cold = run(arguments, environment).at("network");
  EXPECT_LT(0, cold.at("kernels_measured"));
  const Json warm = run(arguments, environment).at("network");
  EXPECT_EQ(0, warm.at("kernels_measured"));
  EXPECT_EQ(cold.at("totals"), warm.at("totals"));
}
#endif

#if UCUDNN_HAVE_DIVISION
struct Option {
  double timeMs;
  std::size_t bytes;
};

/// The least summed time in `units` of memory, each option rounded to units by `round`.
template <typename Round>
double leastTime(const std::vector<std::vector<Option>>& items, std::size_t units, Round round) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<double> best(units + 1, 0.0);  // within so much
  for (const auto& options : items) {
    std::vector<double> next(units + 1, kNone);
    for (const Option& option : options) {
      const std::size_t need = round(option.bytes);
      for (std::size_t memory = need; memory <= units; ++memory)
        next[memory] = std::min(next[memory], best[memory - need] + option.timeMs);
    }
    best = std::move(next);
  }
  return best[units];
}

// The largest batches that fit little workspace are not those that fit the total.
TEST_F(SimulatedNetwork, EqualPartsAreAsFastAsWithoutATotalAndADivisionIsFaster) {
  for (const char* const kernels : {"legacy", "all"}) {
    const std::string list = kLists + "alexnet.csv --kernels " + kernels;
    const Json alone = run("bench " + list + " --repeats 1 --no-check --limit 8MiB");
    const Json totals =
        run("plan " + list + " --total-workspace 120MiB").at("network").at("totals");
    const double aloneMs = alone.at("totals").at("predicted_ms");
    EXPECT_LE(totals.at("wr").at("predicted_ms"), aloneMs * (1 + 1e-9));
    EXPECT_LT(totals.at("divide").at("predicted_ms"), aloneMs);
  }
}

// All 159 convolutions, as recorded on an H200. The dynamic program knows memory in units of 64
// KiB: rounded down it can only be faster than the best division, rounded up it is itself a
// division.
TEST_F(SimulatedNetwork, ResNet50IsDividedAsWellAsByADynamicProgram) {
  constexpr std::size_t kUnit = std::size_t{64} << 10;
  constexpr std::size_t kTotal = std::size_t{159 * 8} << 20;
  const std::string list = kLists + "resnet50.csv --batch-size 128";
  std::vector<std::vector<Option>> items;
  const std::string recorded = "UCUDNN_SIMULATOR_PROFILE=" + kLists +
                               "../profiles/h200_resnet50_n128.csv" +
                               " UCUDNN_DATABASE=" + directory_.file("measurements.db");
  const Json network =
      run("plan " + list + " --total-workspace " + std::to_string(kTotal), recorded).at("network");
  // Uses the same measurements, which a division takes within several limits.
  const Json each = run("plan " + list, recorded);
  for (const Json& row : each.at("rows")) {
    auto& options = items.emplace_back();
    for (const Json& point : row.at("front"))
      options.push_back({point.at("time_ms"), point.at("workspace_bytes")});
  }
  ASSERT_EQ(159U, items.size());
  const double divided = network.at("totals").at("divide").at("predicted_ms");
  const double least =
      leastTime(items, kTotal / kUnit, [](std::size_t bytes) { return bytes / kUnit; });
  const double most = leastTime(
      items, kTotal / kUnit, [](std::size_t bytes) { return (bytes + kUnit - 1) / kUnit; });
  EXPECT_LT(most, least * 1.01) << "the bounds say nothing";
  EXPECT_LE(least, divided * (1 + 1e-9));
  // The plan at a point may be the undivided one, up to 2 % slower: no split for noise.
  EXPECT_LE(divided, most * 1.02);
  EXPECT_TRUE(network.at("division_optimal"));
}

TEST_F(SimulatedNetwork, PlanDrawsTheDivisionAndWritesTheProgram) {
  const std::string program = directory_.file("division.lp");
  const Outcome outcome =
      runTool("plan " + kLists + "alexnet.csv --total-workspace 120MiB --lp " + program);
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.output.find("|####################|"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("of 120 MiB divided among 15 convolutions"), std::string::npos);
  const std::string text = readFile(program);
  for (const char* const part : {"Minimize", "Subject To", "End"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  const std::string plan = "plan " + kLists + "alexnet.csv --total-workspace 120MiB --lp ";
  EXPECT_EQ(runTool(plan + "/none/x").status, 2);
  const Outcome full = runTool(plan + "/dev/full");
  EXPECT_EQ(full.status, 2);
  EXPECT_EQ(full.error, "ucudnn: --lp: /dev/full: cannot be written\n");
  EXPECT_EQ(runTool(plan + "-").output, text);
}
#endif

TEST_F(SimulatedNetwork, APlacementOfTensorsIsBounded) {
  const std::string command =
      "plan " + kAlexNet + " --limit 1GiB --policy undivided --device-memory ";
  const auto placement = [&](const char* bytes) { return run(command + bytes).at("placement"); };
  const Json little = placement("1KiB"), some = placement("32MiB"), all = placement("8GiB");
  EXPECT_NE(outcome_.output.find("any placement "), std::string::npos) << outcome_.output;
  const auto least = [](const Json& each) { return each.at("least_ms").get<double>(); };
  EXPECT_NEAR(little.at("in_host_memory_ms"), least(little), 0.01 * least(little));
  EXPECT_LT(least(some), 0.999 * least(little));
  EXPECT_LT(least(all), 0.999 * least(some));
  EXPECT_NEAR(all.at("on_device_ms"), least(all), 0.01 * least(all));
  EXPECT_NEAR(55e6, little.at("to_host_bytes_per_ms"), 1e6);
  for (const char* const other : {" --total-workspace 64MiB", " --operations forward"})
    EXPECT_EQ(2, runTool(command + "1GiB" + other).status) << other;
}

}  // namespace
}  // namespace ucudnn::test
