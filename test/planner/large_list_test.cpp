// The problems of misc/layers/larger_than_2to31.csv, unmeasured and measured: each runs in parts,
// and a sample of its outputs is compared with sums in double. On a GPU; on the simulator nothing
// is computed, and nothing measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "benchmark/exact_outputs.hpp"
#include "benchmark/random_values.hpp"
#include "executor/executor.hpp"
#include "planner/planner.hpp"
// Behind the settings, which have a kEngines of their own.
#include "cuda/block_copy.hpp"
#include "kernels/engines.hpp"
#include "problem/numbers.hpp"
#include "support/device.hpp"
#include "support/simulator.hpp"
#include "support/skips.hpp"
#include "tool/layer_list.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{256} << 20;
constexpr int kSampled = 4096;
constexpr int kTimed = 3;

std::vector<tool::Layer> layers() {
  return tool::readLayers({UCUDNN_LAYERS "/larger_than_2to31.csv"}, 0);
}

/// Packed, channels first.
void setTensor(const std::vector<int>& from, Problem::Sizes& sizes, Problem::Strides& strides) {
  sizes = {};
  std::copy(from.begin(), from.end(), sizes.begin());
  std::int64_t stride = 1;
  for (std::size_t i = from.size(); i-- > 0; stride *= from[i]) strides[i] = stride;
}

Problem problemOf(const tool::Layer& layer, Operation operation) {
  Problem problem;
  problem.operation = operation;
  problem.dimensions = static_cast<std::int32_t>(layer.size.size()) + 2;
  problem.xType = problem.wType = problem.yType =
      layer.dataType == "half" ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  problem.wFormat = CUDNN_TENSOR_NCHW;
  setTensor(layer.inputSizes(), problem.xSizes, problem.xStrides);
  setTensor(layer.outputSizes(), problem.ySizes, problem.yStrides);
  Problem::Strides none{};
  setTensor(layer.filterSizes(), problem.wSizes, none);
  std::copy(layer.pad.begin(), layer.pad.end(), problem.pads.begin());
  std::copy(layer.stride.begin(), layer.stride.end(), problem.strides.begin());
  std::copy(layer.dilation.begin(), layer.dilation.end(), problem.dilations.begin());
  problem.mode = CUDNN_CROSS_CORRELATION;
  problem.computeType = CUDNN_DATA_FLOAT;
  problem.mathType = CUDNN_DEFAULT_MATH;
  problem.groups = layer.groups;
  return problem;
}

/// The layer with half its samples, or half its rows or depth.
tool::Layer halfOf(tool::Layer layer) {
  (layer.batch > 1 ? layer.batch : layer.size.front()) /= 2;
  return layer;
}

class LargeListTest : public ::testing::TestWithParam<std::tuple<std::size_t, Operation>> {
 protected:
  void SetUp() override {
    if (!hasDevice()) GTEST_SKIP() << "no device";
    static_cast<void>(hasBlockCopies());  // the simulator loads them with arithmetic alone
    setArithmetic(Arithmetic::kOff);
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
    settings_.benchmarkShare = 0;
    settings_.benchmarkMemoryBytes = std::numeric_limits<std::size_t>::max();  // for large tensors
    settings_.kernels = Kernels::kAll;
  }
  void TearDown() override { setArithmetic(Arithmetic::kFull); }

  /// Tensors of random numbers, and a workspace.
  struct Memory {
    DeviceBuffer x, w, y, workspace;

    Memory(const Problem& problem, std::size_t workspaceBytes)
        : x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes()), workspace(workspaceBytes) {
      fillRandom(x.get(), x.bytes(), RandomTensor::kX, problem.xType, nullptr);
      fillRandom(w.get(), w.bytes(), RandomTensor::kW, problem.wType, nullptr);
      fillRandom(y.get(), y.bytes(), RandomTensor::kY, problem.yType, nullptr);
      const DeviceBuffer& output = outputOf(problem);
      UCUDNN_CHECK_CUDA(cudaMemset(output.get(), 0xFF, output.bytes()));
    }
    const DeviceBuffer& outputOf(const Problem& problem) const {
      return problem.operation == Operation::kBackwardData     ? x
             : problem.operation == Operation::kBackwardFilter ? w
                                                               : y;
    }
    ConvolutionPointers pointers(const Problem& problem) const {
      return {Factor::one(problem).get(),
              Factor::zero(problem).get(),
              x.get(),
              w.get(),
              y.get(),
              workspace.get(),
              workspace.bytes()};
    }
  };

  /// The first engine that cuDNN's heuristics name.
  std::optional<KernelOffer> firstEngine(const Problem& problem) const {
    const auto offers = offeredKernels(handle_.get(),
                                       problem,
                                       ProblemDescriptors(problem).get(),
                                       true,
                                       nullptr,
                                       Calls::kOverwriting);
    const auto first = std::find_if(offers.begin(), offers.end(), [](const KernelOffer& offer) {
      return offer.kernel.source == kEngines;
    });
    return first != offers.end() ? std::optional(*first) : std::nullopt;
  }

  PlanRequest call(Planner& planner, const Problem& problem, Kernel own) const {
    PlanRequest wanted;
    wanted.handle = handle_.get();
    wanted.machine = planner.machines().ofDevice(0);
    wanted.problem = problem;
    wanted.limitBytes = kLimit;
    wanted.settings = &settings_;
    wanted.benchmarkDevices = &noDevices_;
    wanted.calls = CallKind::kOverwriting;
    wanted.suitsEngines = true;
    wanted.own = OwnKernel{own, 0};
    return wanted;
  }

  /// The time of one run, after one that warms up.
  static double msOf(const std::function<cudnnStatus_t()>& run) {
    const Event begin = makeEvent(), end = makeEvent();
    EXPECT_EQ(run(), CUDNN_STATUS_SUCCESS);
    UCUDNN_CHECK_CUDA(cudaEventRecord(begin.get(), nullptr));
    for (int i = 0; i < kTimed; ++i) EXPECT_EQ(run(), CUDNN_STATUS_SUCCESS);
    UCUDNN_CHECK_CUDA(cudaEventRecord(end.get(), nullptr));
    UCUDNN_CHECK_CUDA(cudaEventSynchronize(end.get()));
    float ms = 0;
    UCUDNN_CHECK_CUDA(cudaEventElapsedTime(&ms, begin.get(), end.get()));
    return static_cast<double>(ms) / kTimed;
  }

  struct Run {
    double ms = 0, error = 0;
  };
  Run runOf(const Problem& problem, const Plan& plan) const {
    const Memory memory(problem, plan.workspaceBytes);
    ConvolutionCall call{};
    call.pointers = memory.pointers(problem);
    Run run;
    run.ms = msOf([&] { return runPlan(handle_.get(), plan, call).status; });
    if (!onSimulator()) run.error = errorOf(problem, memory);
    return run;
  }

  static double errorOf(const Problem& problem, const Memory& memory) {
    const auto exact = exactOutputs(problem, kSampled);
    const std::size_t bytes = elementBytes(problem.outputType());
    std::vector<char> result(exact.size() * bytes);
    const char* const output = static_cast<const char*>(memory.outputOf(problem).get());
    for (std::size_t i = 0; i < exact.size(); ++i)
      UCUDNN_CHECK_CUDA(cudaMemcpy(
          &result[i * bytes], output + exact[i].offset * bytes, bytes, cudaMemcpyDeviceToHost));
    return normalizedError(exact, toDoubles(result.data(), exact.size(), problem.outputType()));
  }

  Settings settings_;
  std::vector<int> noDevices_;
  CudnnHandle handle_;
};

/// Prints beside it the time of half the problem by the engine that cuDNN names first.
TEST_P(LargeListTest, IsRightInParts) {
  const auto [index, operation] = GetParam();
  const tool::Layer layer = layers().at(index);
  // Nothing else divides one sample without groups, or a filter gradient in 16 bits.
  if (layer.groups == 1 && (layer.batch == 1 || operation == Operation::kBackwardFilter)) {
    UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  }
  const Problem problem = problemOf(layer, operation), half = problemOf(halfOf(layer), operation);
  ASSERT_TRUE(problem.isLarge());
  ASSERT_LT(problem.xBytes() + problem.wBytes() + problem.yBytes(), std::size_t{40'000'000'000});
  const auto first = firstEngine(half);
  ASSERT_TRUE(first);
  Planner planner;
  const PlanRequest wanted = call(planner, problem, first->kernel);
  const auto plan = planner.answer(wanted, Measuring::kWhenItPays).plan;
  ASSERT_TRUE(plan) << problem.text();
  EXPECT_LE(plan->workspaceBytes, kLimit);
  const Run unmeasured = runOf(problem, *plan);
  // Each output is rounded once, a filter gradient of bands, or of sums, twice.
  const double most = problem.xType == CUDNN_DATA_HALF ? 2e-3 : 1.2e-2;
  EXPECT_LT(unmeasured.error, most);
  const Memory memory(half, first->workspaceBytes);
  const auto built = buildKernel(handle_.get(),
                                 half,
                                 std::make_shared<const ProblemDescriptors>(half),
                                 first->kernel,
                                 Calls::kOverwriting);
  const double halfMs =
      msOf([&] { return built->enqueue(handle_.get(), memory.pointers(half), nullptr); });
  const auto print = [&](const char* how, const Plan& ran, const Run& run) {
    std::printf("%s %s %s: %.2f ms in %zu MiB, %s; half of it %.2f ms in %zu MiB; error %.2g\n",
                layer.name.c_str(),
                toText(operation),
                how,
                run.ms,
                ran.workspaceBytes >> 20,
                toText(ran).c_str(),
                halfMs,
                first->workspaceBytes >> 20,
                run.error);
  };
  print("unmeasured", *plan, unmeasured);
  if (onSimulator()) return;
  PlanRequest any = wanted;
  any.own.reset();  // it stands for the client's, which may be as fast
  const auto fastest = planner.plan(any);
  ASSERT_TRUE(fastest) << problem.text();
  EXPECT_LE(fastest->workspaceBytes, kLimit);
  const Run measured = runOf(problem, *fastest);
  EXPECT_LT(measured.error, most);
  print("measured", *fastest, measured);
}

INSTANTIATE_TEST_SUITE_P(All,
                         LargeListTest,
                         ::testing::Combine(::testing::Range<std::size_t>(0, 8),
                                            ::testing::Values(Operation::kForward,
                                                              Operation::kBackwardData,
                                                              Operation::kBackwardFilter)),
                         [](const auto& made) {
                           std::string name = layers().at(std::get<0>(made.param)).name + "_";
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + toText(std::get<1>(made.param));
                         });

}  // namespace
}  // namespace ucudnn::test
