// The first 10,000 steps of a program that trains AlexNet under a cap, on the simulator's clock:
// what the first 1,000 cost, and the longest wait of all.
#include "planner/planner.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "benchmark/kernel_timer.hpp"
#include "kernels/engines.hpp"
#include "planner_engines_fixture.hpp"
#include "support/host_clock.hpp"
#include "support/skips.hpp"

namespace ucudnn::test {
namespace {

constexpr int kBatch = 256, kSteps = 1000, kAllSteps = 10000;
constexpr std::size_t kCap = 64 * kMebibyte;

struct Layer {
  int channels, filters, height, filter, pad, stride;
};
constexpr Layer kAlexNet[] = {{3, 64, 224, 11, 2, 4},
                              {64, 192, 27, 5, 2, 1},
                              {192, 384, 13, 3, 1, 1},
                              {384, 256, 13, 3, 1, 1},
                              {256, 256, 13, 3, 1, 1}};

Problem problemOf(const Layer& layer, Operation operation) {
  Problem problem = sampleProblem(operation, kBatch, layer.channels);
  const int height = (layer.height + 2 * layer.pad - layer.filter) / layer.stride + 1;
  const auto packed = [](int channels, int side) {
    return Problem::Strides{channels * side * side, side * side, side, 1, 0};
  };
  problem.mathType = CUDNN_DEFAULT_MATH;
  problem.xSizes = {kBatch, layer.channels, layer.height, layer.height, 0};
  problem.xStrides = packed(layer.channels, layer.height);
  problem.ySizes = {kBatch, layer.filters, height, height, 0};
  problem.yStrides = packed(layer.filters, height);
  problem.wSizes = {layer.filters, layer.channels, layer.filter, layer.filter, 0};
  problem.pads = {layer.pad, layer.pad, 0};
  problem.strides = {layer.stride, layer.stride, 0};
  return problem;
}

struct Step {
  double callsMs = 0;     ///< of the device's
  double planningMs = 0;  ///< of the host's
  int measured = 0;       ///< plans
};

class ProgramStartTest : public PlannerTest {
 protected:
  void SetUp() override {
    arithmetic_ = Arithmetic::kFull;  // there are copies to blocks with it only
    PlannerTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(hasBlockCopies(), kHasBlockCopies);
    setArithmetic(Arithmetic::kOff);
    settings_.graphMemoryBytes = 0;
    settings_.kernels = Kernels::kAll;
    settings_.databasePath.clear();
    hostClock() = hostClockMs;
  }
  void TearDown() override {
    hostClock() = steadyMs;
    setMeasuringCost(false);
    PlannerTest::TearDown();
  }

  /// The program's calls in a step. Each runs the first engine that cuDNN names.
  std::vector<PlanRequest> calls(Planner& planner) const {
    std::vector<PlanRequest> all;
    for (const Layer& layer : kAlexNet)
      for (const Operation operation :
           {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
        if (operation == Operation::kBackwardData && layer.channels == 3) continue;
        PlanRequest wanted = request(planner, kCap, problemOf(layer, operation));
        wanted.suitsEngines = true;
        wanted.calls = CallKind::kOverwriting;
        wanted.own = ownOf(wanted.problem);
        wanted.lacksWorkspace = wanted.own->workspaceBytes > kCap;
        all.push_back(wanted);
      }
    return all;
  }

  OwnKernel ownOf(const Problem& problem) const {
    const auto offers = offeredKernels(handle_.get(),
                                       problem,
                                       ProblemDescriptors(problem).get(),
                                       true,
                                       nullptr,
                                       Calls::kOverwriting);
    for (const KernelOffer& offer : offers) {
      if (offer.kernel.source != kEngines) continue;
      EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
      value.blocks = 0;
      return {{idOf(value), offer.kernel.mathType, kEngines}, offer.workspaceBytes};
    }
    throw std::logic_error("no engine");
  }

  double timeOf(const Problem& problem, const Plan::Step& step) {
    TimingMemory memory(problem, step.workspaceBytes, {}, false, nullptr);
    const auto place = memory.place(step.batch, step.workspaceBytes);
    KernelTimer timer(handle_.get(), problem);
    return step.count *
           timer.time({step.built, step.batch, step.workspaceBytes, place.value()}, {1, 4, 1})
               .samples.at(0);
  }
  /// What the device takes for a call. Null: its own kernel.
  double timeOf(const PlanRequest& call, const Plan* plan) {
    std::string text = call.problem.text();
    if (plan != nullptr) text += toText(*plan);
    const auto [place, isNew] = times_.try_emplace(text, 0);
    if (!isNew) return place->second;
    setMeasuringCost(false);
    if (plan != nullptr) {
      for (const Plan::Step& step : plan->steps) place->second += timeOf(call.problem, step);
    } else {
      Plan::Step own;
      own.workspaceBytes = call.own->workspaceBytes;
      own.batch = kBatch;
      own.count = 1;
      own.built =
          buildKernel(handle_.get(), call.problem, nullptr, call.own->kernel, Calls::kOverwriting);
      place->second = timeOf(call.problem, own);
    }
    setMeasuringCost(true);
    return place->second;
  }

  std::map<std::string, double> times_;
};

TEST_F(ProgramStartTest, WhatRunsInPartsIsReplacedWithoutLosingTime) {
  Planner planner;
  const auto all = calls(planner);
  double plainMs = 0;
  for (const PlanRequest& call : all) plainMs += timeOf(call, nullptr);
  const auto stepOf = [&](double* longestMs) {
    Step step;
    for (const PlanRequest& call : all) {
      const double beginMs = hostClockMs();
      const auto plan = planner.answer(call, Measuring::kWhenItPays).plan;
      const double planningMs = hostClockMs() - beginMs;
      EXPECT_TRUE(plan || !call.lacksWorkspace) << call.problem.text();
      step.planningMs += planningMs;
      step.callsMs += timeOf(call, plan.get());
      step.measured += plan && plan->measured ? 1 : 0;
      *longestMs = std::max(*longestMs, planningMs);
      planner.waitFor(call);
    }
    return step;
  };
  setMeasuringCost(true);
  double longestMs = 0;
  const Step first = stepOf(&longestMs);
  Step last, sum = first;
  for (int i = 1; i < kAllSteps; ++i) {
    last = stepOf(&longestMs);
    if (i >= kSteps) continue;
    sum.callsMs += last.callsMs;
    sum.planningMs += last.planningMs;
  }
  RecordProperty("of_plain", std::to_string((sum.callsMs + sum.planningMs) / (kSteps * plainMs)));
  RecordProperty("longest_ms", std::to_string(longestMs));
  if (kHasBlockCopies) {  // without them few plans are faster than the parts
    EXPECT_LE(5, last.measured);
    EXPECT_GT(0.97 * first.callsMs, last.callsMs);
  }
  // Without them the parts go on to run, and each part's engine copies.
  const double most = kHasBlockCopies ? 1.25 : 1.3;
  EXPECT_GT(most * kSteps * plainMs, sum.callsMs + sum.planningMs);
  EXPECT_GT(settings_.benchmarkStallMs, longestMs);
}

}  // namespace
}  // namespace ucudnn::test
