// Questions at one batch size must not spoil the answers at another: pairs of sizes under three
// policies, in one process and through the database. Each side is its own process.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "../library/fixture.hpp"
#include "../support/simulator.hpp"
#include "../support/temporary_directory.hpp"
#include "forked.hpp"
#include "random.hpp"

namespace ucudnn::test {
namespace {

constexpr int kProblems = 40;
constexpr double kSlower = 1.05;
constexpr unsigned kSeconds = 120;

// Asked at the first, then at the second: last batches, larger and smaller ones, neighbours.
constexpr int kPairs[][2] = {{256, 240},
                             {240, 256},
                             {256, 100},
                             {32, 256},
                             {128, 100},
                             {100, 128},
                             {64, 60},
                             {60, 64},
                             {48, 32}};

struct Problem {
  ConvolutionCase convolution;
  ucudnnOperation_t operation = UCUDNN_FORWARD;
  std::size_t limitBytes = 0;
  std::string randomTimes;  ///< the simulator's seed; 0: its model
};

Problem problemOf(int number) {
  Random random(static_cast<std::uint64_t>(number) + 4711);
  Problem problem;
  ConvolutionCase& c = problem.convolution;
  const int filter = random.pick({1, 3, 3, 5, 5, 7});
  const int image = random.between(7, 28);
  c.math = random.pick({CUDNN_FMA_MATH, CUDNN_DEFAULT_MATH});
  c.channels = random.pick({8, 16, 32, 64});
  c.filters = random.pick({8, 16, 32, 64});
  c.input = {image, image};
  c.filter = {filter, filter};
  c.pad = {filter / 2, filter / 2};
  problem.operation = kOperations[number % 3];
  problem.limitBytes = std::size_t{256} << (10 + 2 * (number % 5));  // 256 KiB to 64 MiB
  problem.randomTimes = number % 2 == 0 ? std::to_string(number + 1) : "0";
  return problem;
}

/// Every algorithm that was reported runs in the memory reported for it, undivided by plain cuDNN.
void checkReported(cudnnHandle_t native,
                   Convolution& convolution,
                   const Problem& problem,
                   const std::vector<Performance>& reported,
                   const Answer& answer) {
  for (const Performance& entry : reported) {
    if (entry.status != CUDNN_STATUS_SUCCESS) continue;
    const DeviceBuffer memory(entry.memory);
    const cudnnStatus_t status =
        convolution.run(native, problem.operation, entry.algorithm, {memory.get(), entry.memory});
    std::ostringstream text;
    text << "algorithm " << entry.algorithm << " in " << entry.memory
         << " bytes at N=" << convolution.parameters().batch;
    if (status != CUDNN_STATUS_SUCCESS) answer.write("invalid: " + text.str() + "\n");
    if (entry.memory > problem.limitBytes) answer.write("beyond the limit: " + text.str() + "\n");
  }
}

/// The virtual time of one call in so much workspace.
double timeOf(Handles& handles,
              Convolution& convolution,
              const Problem& problem,
              std::size_t bytes) {
  const DeviceBuffer workspace(bytes);
  const double before = clockMs(nullptr);
  EXPECT_CUDNN(
      convolution.run(handles.ours, problem.operation, 0, {workspace.get(), workspace.bytes()}));
  return clockMs(nullptr) - before;
}

/// In a child: FindEx within the limit, then the plan for it. Writes what is wrong, and for the
/// last size "predicted MS ran MS".
void ask(const Problem& problem, const std::vector<int>& batches, const Answer& answer) {
  setArithmetic(Arithmetic::kOff);
  Handles handles;
  for (const int batch : batches) {
    ConvolutionCase parameters = problem.convolution;
    parameters.batch = batch;
    Convolution convolution(parameters, Convolution::Contents::kAny);
    const DeviceBuffer workspace(problem.limitBytes);
    std::vector<Performance> reported;
    const cudnnStatus_t found = convolution.query(handles.ours,
                                                  problem.operation,
                                                  Query::kFindEx,
                                                  8,
                                                  &reported,
                                                  {workspace.get(), workspace.bytes()});
    if (found != CUDNN_STATUS_SUCCESS)
      answer.write(std::string("FindEx: ") + cudnnGetErrorString(found) + "\n");
    checkReported(handles.native, convolution, problem, reported, answer);
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    const cudnnStatus_t planned =
        convolution.plan(handles.ours, problem.operation, problem.limitBytes, &plan, &entries);
    if (planned != CUDNN_STATUS_SUCCESS)
      answer.write("no plan at N=" + std::to_string(batch) + ": " + cudnnGetErrorString(planned) +
                   "\n");
    if (batch != batches.back()) continue;
    std::ostringstream text;
    text.precision(9);
    text << "predicted " << plan.predictedMs << " ran "
         << timeOf(handles, convolution, problem, plan.workspaceBytes) << " ms:";
    for (const ucudnnMicroBatches_t& entry : entries)
      text << ' ' << entry.count << " x " << entry.batch << ' ' << entry.kernel;
    answer.write(text.str() + "\n");
  }
}

struct Side {
  double predictedMs = 0;
  double ranMs = 0;
  std::string plan;
  std::string wrong;
};

Side run(const Problem& problem,
         const std::vector<int>& batches,
         std::map<std::string, std::string> environment) {
  environment["UCUDNN_SIMULATOR_RANDOM_TIMES"] = problem.randomTimes;
  const EnvironmentGuard guard(environment);
  const ForkResult result =
      runForked([&](const Answer& answer) { ask(problem, batches, answer); }, kSeconds);
  Side side;
  std::istringstream lines(result.answer);
  for (std::string line; std::getline(lines, line);)
    if (std::sscanf(line.c_str(), "predicted %lf ran %lf", &side.predictedMs, &side.ranMs) == 2)
      side.plan = line;
    else
      side.wrong += line + "; ";
  if (result.status != 0) side.wrong += "status " + std::to_string(result.status) + "; ";
  side.wrong += result.output;
  return side;
}

void expectAsGood(const Side& alone, const Side& after, const std::string& what) {
  EXPECT_EQ("", after.wrong) << what;
  EXPECT_LE(after.predictedMs, kSlower * alone.predictedMs)
      << what << "\n  alone: " << alone.plan << "\n  after: " << after.plan;
  EXPECT_LE(after.ranMs, kSlower * alone.ranMs)
      << what << "\n  alone: " << alone.plan << "\n  after: " << after.plan;
}

class PairsTest : public ::testing::TestWithParam<int> {};

TEST_P(PairsTest, SecondSizeIsPlannedAsIfItWereTheFirst) {
  if (!onSimulator()) GTEST_SKIP() << "children start on the simulator only";
  const Problem problem = problemOf(GetParam());
  for (const char* policy : {"undivided", "powerOfTwo", "all"}) {
    const std::map<std::string, std::string> cold{{"UCUDNN_BATCH_SIZE_POLICY", policy}};
    std::map<int, Side> alone;
    for (const auto& [first, second] : kPairs) {
      if (alone.count(second) == 0) {
        alone[second] = run(problem, {second}, cold);
        EXPECT_EQ("", alone[second].wrong) << "N=" << second << " alone, " << policy;
      }
      const std::string what =
          "N=" + std::to_string(first) + ", then " + std::to_string(second) + ", " + policy + ", " +
          toText(problem.operation) + " of \"" + problem.convolution.serialized() + "\" within " +
          std::to_string(problem.limitBytes) + ", random times " + problem.randomTimes;
      expectAsGood(alone[second], run(problem, {first, second}, cold), what);

      const TemporaryDirectory directory;
      std::map<std::string, std::string> stored = cold;
      stored["UCUDNN_DATABASE"] = directory.file("database");
      EXPECT_EQ("", run(problem, {first}, stored).wrong) << what << ", database";
      expectAsGood(alone[second], run(problem, {second}, stored), what + ", through the database");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Problems, PairsTest, ::testing::Range(0, kProblems));

}  // namespace
}  // namespace ucudnn::test
