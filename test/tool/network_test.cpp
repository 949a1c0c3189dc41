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

void expectPredicted(const Json& network, const char* way) {
  const Json& totals = network.at("totals").at(way);
  EXPECT_NEAR(1, totals.at("predicted_ms").get<double>() / timeOf(network, way), 0.05) << way;
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
       {Bound{"alexnet.csv", 256, 15, 0.72, 0.33}, Bound{"resnet18.csv", 128, 60, 0.72, 0.42}}) {
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
#if UCUDNN_HAVE_GLPK
    expectPredicted(network, "divide");
    EXPECT_LE(timeOf(network, "divide"), bound.divide * timeOf(network, "wr"));
    EXPECT_TRUE(network.at("division_optimal"));
#endif
  }
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

#if UCUDNN_HAVE_GLPK
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

// All 159 convolutions, as recorded on an H200. The dynamic program knows memory in units of 64
// KiB: rounded down it can only be faster than the best division, rounded up it is itself a
// division.
TEST_F(SimulatedNetwork, ResNet50IsDividedAsWellAsByADynamicProgram) {
  constexpr std::size_t kUnit = std::size_t{64} << 10;
  constexpr std::size_t kTotal = std::size_t{159 * 8} << 20;
  const std::string list = kLists + "resnet50.csv --batch-size 128";
  std::vector<std::vector<Option>> items;
  const std::string recorded =
      "UCUDNN_SIMULATOR_PROFILE=" + kLists + "../profiles/h200_resnet50_n128.csv";
  const Json each = run("plan " + list, recorded);
  for (const Json& row : each.at("rows")) {
    auto& options = items.emplace_back();
    for (const Json& point : row.at("front"))
      options.push_back({point.at("time_ms"), point.at("workspace_bytes")});
  }
  ASSERT_EQ(159U, items.size());
  const Json network =
      run("plan " + list + " --total-workspace " + std::to_string(kTotal), recorded).at("network");
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
  EXPECT_NE(outcome.output.find("|########################################|"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("of 120 MiB divided among 15 convolutions"), std::string::npos);
  const std::string text = readFile(program);
  for (const char* const part : {"Minimize", "Subject To", "End"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(2,
            runTool("plan " + kLists + "alexnet.csv --total-workspace 1MiB --lp /none/x").status);
}
#endif

}  // namespace
}  // namespace ucudnn::test
