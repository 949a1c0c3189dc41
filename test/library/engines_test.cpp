// Plans of the graph API's engines: split against undivided results, and what runs where a call
// suits no engine.
#include "../support/no_errata.hpp"
#include "../support/simulator.hpp"
#include "../support/temporary_directory.hpp"
#include "fused.hpp"
#include "replay.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

std::vector<ConvolutionCase> engineCases() {
  std::vector<ConvolutionCase> cases;
  const auto add = [&](const std::string& name, auto change) {
    ConvolutionCase next;
    next.name = name;
    next.math = CUDNN_DEFAULT_MATH;
    change(next);
    cases.push_back(next);
  };
  using C = ConvolutionCase&;
  add("Tf32", [](C) {});
  add("Fma", [](C c) { c.math = CUDNN_FMA_MATH; });
  add("Half", [](C c) { c.type = CUDNN_DATA_HALF, c.math = CUDNN_TENSOR_OP_MATH; });
  add("HalfNhwc", [](C c) {
    c.type = CUDNN_DATA_HALF, c.math = CUDNN_TENSOR_OP_MATH, c.format = CUDNN_TENSOR_NHWC;
  });
  add("Double", [](C c) { c.type = CUDNN_DATA_DOUBLE; });
  add("Nhwc", [](C c) { c.format = CUDNN_TENSOR_NHWC; });
  add("GroupsOfTwo", [](C c) { c.groups = 2; });
  add("StrideTwo", [](C c) { c.stride = {2, 2}; });
  add("DilationTwo", [](C c) { c.dilation = c.pad = {2, 2}; });
  add("Mirrored", [](C c) { c.mode = CUDNN_CONVOLUTION; });
  add("NonPackedBatchStride", [](C c) { c.batchGap = 37; });
  add("OddSamples", [](C c) { c.channels = c.filters = 3, c.input = {7, 5}; });
  add("FiveDimensions", [](C c) {
    c.input = {5, 6, 4};
    c.filter = {3, 3, 3};
    c.pad = c.stride = c.dilation = {1, 1, 1};
  });
  add("FiveByFive", [](C c) { c.filter = {5, 5}, c.pad = {2, 2}; });
  // The second part's pointers are aligned to 4 bytes only.
  add("UnalignedPointerGroups", [](C c) {
    c.parts = 2, c.channels = c.filters = 1, c.input = {5, 5};
  });
  return cases;
}

bool areEngines(const std::vector<ucudnnMicroBatches_t>& entries) {
  for (const ucudnnMicroBatches_t& entry : entries)
    if (std::string(entry.kernel).rfind("eng", 0) != 0) return false;
  return !entries.empty();
}

class EnginesTest : public LibraryTest, public ::testing::WithParamInterface<ConvolutionCase> {
 protected:
  /// From the buffers as they are, by one of cuDNN's algorithms.
  static std::vector<char> undivided(Convolution& convolution,
                                     cudnnHandle_t native,
                                     ucudnnOperation_t operation,
                                     double alpha,
                                     double beta) {
    for (const int algorithm : {1, 0})
      if (auto bytes = convolution.undivided(native, operation, algorithm, alpha, beta))
        return *bytes;
    throw std::runtime_error("cuDNN has no algorithm");
  }

  /// The call, and whether its result is right.
  static void expectRight(Convolution& convolution,
                          const Handles& handles,
                          ucudnnOperation_t operation,
                          double alpha,
                          double beta) {
    SCOPED_TRACE(std::string(toText(operation)) + ", alpha " + std::to_string(alpha) + ", beta " +
                 std::to_string(beta));
    convolution.fill();
    if (beta == 0) convolution.output(operation).poison();
    const auto expected = undivided(convolution, handles.native, operation, alpha, beta);
    std::vector<Performance> named;
    ASSERT_CUDNN(convolution.query(handles.ours, operation, Query::kGet, 1, &named));
    const std::size_t bytes = named.at(0).memory;
    ASSERT_LE(bytes, kLimit);
    const DeviceBuffer workspace(bytes);
    ASSERT_CUDNN(
        convolution.run(handles.ours, operation, 0, {workspace.get(), bytes}, alpha, beta));
    const double far =
        distance(convolution.geometry(operation), convolution.output(operation).read(), expected);
    EXPECT_LE(far, std::max(toleranceBetweenAlgorithms(), tolerance(convolution.parameters())));
  }

 private:
  const TemporaryDirectory files_;
  const std::unique_ptr<const EnvironmentGuard> errata_ =
      onSimulator() ? std::make_unique<EnvironmentGuard>("CUDNN_ERRATA_JSON_FILE",
                                                         writeNoErrata(files_.file("errata.json")))
                    : nullptr;
};

TEST_P(EnginesTest, RightWhateverTheFactors) {
  const EnvironmentGuard engines("UCUDNN_KERNELS", "engines");
  const ForcedSplits forced({GetParam()});
  const Handles handles;
  Convolution convolution(GetParam());
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    ASSERT_CUDNN(convolution.plan(handles.ours, operation, kLimit, &plan, &entries));
    EXPECT_TRUE(areEngines(entries)) << entries.front().kernel;
    const bool roundsSums =
        operation == UCUDNN_BACKWARD_FILTER && GetParam().type == CUDNN_DATA_HALF;
    EXPECT_EQ(roundsSums, microBatchCount(entries) == 1);
    const ucudnnStatistics_t before = statistics();
    for (const double alpha : {1.0, 1.5})
      for (const double beta : {0.0, 1.0, 0.5})
        expectRight(convolution, handles, operation, alpha, beta);
    EXPECT_EQ(before.bypassedCalls, statistics().bypassedCalls);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         EnginesTest,
                         ::testing::ValuesIn(engineCases()),
                         [](const auto& test) { return test.param.name; });

/// Those that cuDNN's algorithm for both activations has (it has no dilations), and bfloat16.
std::vector<ConvolutionCase> fusedCases() {
  std::vector<ConvolutionCase> cases;
  for (const ConvolutionCase& next : engineCases())
    if (next.parts == 1 && next.dilation.front() == 1) cases.push_back(next);
  ConvolutionCase bfloat16 = cases.front();
  bfloat16.name = "Bfloat16Nhwc";
  bfloat16.type = CUDNN_DATA_BFLOAT16;
  bfloat16.format = CUDNN_TENSOR_NHWC;
  cases.push_back(bfloat16);
  return cases;
}

/// The further arguments of a fused call.
struct FusedArguments {
  cudnnActivationMode_t activation;
  double alpha1, alpha2;
  bool inPlace;

  /// The others run by cuDNN's algorithms.
  bool suitEngines() const { return alpha1 == 1 && (alpha2 == 0 || (alpha2 == 1 && !inPlace)); }
};

class FusedEnginesTest : public EnginesTest {
 protected:
  // The one algorithm that goes with both activations.
  static constexpr int kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;

  void SetUp() override {
    EnginesTest::SetUp();
    if (IsSkipped()) return;
    convolution_ = std::make_unique<Convolution>(GetParam());
    workspace_ = std::make_unique<DeviceBuffer>(kLimit);
  }
  void TearDown() override {
    convolution_.reset();
    workspace_.reset();
    EnginesTest::TearDown();
  }

  static std::vector<FusedArguments> arguments() {
    std::vector<FusedArguments> all;
    for (const auto activation : {CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY})
      for (const double alpha1 : {1.0, 1.5})
        for (const double alpha2 : {0.0, 1.0, 0.5})
          for (const bool inPlace : {false, true})
            all.push_back({activation, alpha1, alpha2, inPlace});
    return all;
  }

  /// Memory that is not read is NaN before the call.
  template <typename Handle>
  std::vector<char> result(Handle handle, const FusedArguments& made) {
    convolution_->fill();
    if (made.alpha2 == 0 || !made.inPlace) convolution_->y().poison();
    Fused fused(*convolution_, made.activation);
    if (made.alpha2 == 0) fused.z().poison();
    EXPECT_CUDNN(fused.run(
        handle, kAlgorithm, {workspace_->get(), kLimit}, made.alpha1, made.alpha2, made.inPlace));
    return convolution_->y().read();
  }

  /// The call, its result, and what ran it: so many micro-batches.
  void expectRight(const Handles& handles, const FusedArguments& made, int* microBatches) {
    SCOPED_TRACE("activation " + std::to_string(made.activation) + ", alpha1 " +
                 std::to_string(made.alpha1) + ", alpha2 " + std::to_string(made.alpha2) +
                 (made.inPlace ? ", z in place" : ", z apart"));
    const auto expected = result(handles.native, made);
    const auto engines = callCount("cudnnBackendExecute");
    const auto algorithms = callCount("cudnnConvolutionBiasActivationForward");
    const auto own = result(handles.ours, made);
    EXPECT_LE(distance(convolution_->geometry(UCUDNN_FORWARD), own, expected),
              std::max(toleranceBetweenAlgorithms(), tolerance(GetParam())));
    if (!onSimulator()) return;
    const auto byEngines = static_cast<int>(callCount("cudnnBackendExecute") - engines);
    const auto byAlgorithms =
        static_cast<int>(callCount("cudnnConvolutionBiasActivationForward") - algorithms);
    EXPECT_EQ(0, made.suitEngines() ? byAlgorithms : byEngines);
    *microBatches = made.suitEngines() ? byEngines : byAlgorithms;
  }

  std::unique_ptr<Convolution> convolution_;
  std::unique_ptr<DeviceBuffer> workspace_;
};

TEST_P(FusedEnginesTest, RightWhateverTheArgumentsSplitAndUndivided) {
  const EnvironmentGuard engines("UCUDNN_KERNELS", "engines");
  const EnvironmentGuard unchecked("UCUDNN_CHECK_KERNELS", "0");  // checks are convolutions, too
  const ForcedSplits forced({GetParam()}, ForcedSplits::Operations::kFused);
  for (const char* const policy : {"powerOfTwo", "undivided"}) {
    SCOPED_TRACE(policy);
    const EnvironmentGuard sizes("UCUDNN_BATCH_SIZE_POLICY", policy);
    const Handles handles;
    const ucudnnStatistics_t before = statistics();
    for (const FusedArguments& made : arguments()) {
      int microBatches = 0;
      expectRight(handles, made, &microBatches);
      if (onSimulator()) {
        EXPECT_EQ(*policy == 'u', microBatches == 1) << microBatches;
      }
    }
    EXPECT_EQ(before.bypassedCalls, statistics().bypassedCalls);
    EXPECT_EQ(before.kernelsMeasured, statistics().kernelsMeasured) << "the database knows all";
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         FusedEnginesTest,
                         ::testing::ValuesIn(fusedCases()),
                         [](const auto& test) { return test.param.name; });

class EngineSettingsTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (IsSkipped()) return;
    setArithmetic(Arithmetic::kOff);  // only times are wanted
    convolution_ = std::make_unique<Convolution>(fftCase(48));
  }
  void TearDown() override {
    convolution_.reset();
    setArithmetic(Arithmetic::kFull);
    LibraryTest::TearDown();
  }

  std::vector<ucudnnMicroBatches_t> planOf(const Handles& handles,
                                           ucudnnKernels_t kernels,
                                           std::size_t limitBytes = kLimit) {
    EXPECT_CUDNN(handles.ours.setKernels(kernels));
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    EXPECT_CUDNN(convolution_->plan(handles.ours, UCUDNN_FORWARD, limitBytes, &plan, &entries));
    EXPECT_LE(plan.workspaceBytes, limitBytes);
    milliseconds_ = plan.predictedMs;
    return entries;
  }

  std::unique_ptr<Convolution> convolution_;
  double milliseconds_ = 0;
};

TEST_F(EngineSettingsTest, EachHandleGetsPlansOfItsKernels) {
  const Handles handles;
  EXPECT_FALSE(areEngines(planOf(handles, UCUDNN_KERNELS_LEGACY)));
  const double legacyMs = milliseconds_;
  EXPECT_TRUE(areEngines(planOf(handles, UCUDNN_KERNELS_ENGINES)));
  const double enginesMs = milliseconds_;
  planOf(handles, UCUDNN_KERNELS_ALL);
  EXPECT_LE(milliseconds_, std::min(legacyMs, enginesMs) * 1.001);
  EXPECT_FALSE(areEngines(planOf(handles, UCUDNN_KERNELS_LEGACY)));
}

TEST_F(EngineSettingsTest, NoWorkspaceIsEnough) {
  const Handles handles;
  for (const auto kernels : {UCUDNN_KERNELS_ENGINES, UCUDNN_KERNELS_ALL})
    EXPECT_FALSE(planOf(handles, kernels, 0).empty());
}

TEST_F(EngineSettingsTest, DeterministicPlansHaveDeterministicEngines) {
  const Handles handles;
  EXPECT_CUDNN(handles.ours.setDeterministic(true));
  for (const auto kernels : {UCUDNN_KERNELS_ENGINES, UCUDNN_KERNELS_ALL}) {
    EXPECT_CUDNN(handles.ours.setKernels(kernels));
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    for (const ucudnnOperation_t operation : kOperations) {
      ASSERT_CUDNN(convolution_->plan(handles.ours, operation, kLimit, &plan, &entries));
      for (const ucudnnMicroBatches_t& entry : entries) EXPECT_TRUE(entry.deterministic);
    }
  }
}

TEST_F(EngineSettingsTest, UnknownKernelsAreRefused) {
  const Handles handles;
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            handles.ours.setKernels(static_cast<ucudnnKernels_t>(UCUDNN_KERNELS_ALL + 1)));
}

class EngineReplayTest : public ReplayFixture {
 private:
  const EnvironmentGuard engines_{"UCUDNN_KERNELS", "engines"};
};

TEST_F(EngineReplayTest, DividedCallsThatRepeatAreReplayed) {
  for (const ucudnnOperation_t operation : kOperations) {
    Repeated calls(replayCase());
    for (const double beta : {0.0, 1.0}) expectReplayedFromTheSecondOn(calls, operation, beta);
  }
}

/// In place by algorithms.
TEST_F(EngineReplayTest, FusedCallsThatRepeatAreReplayed) {
  const ForcedSplits forced({replayCase()}, ForcedSplits::Operations::kFused);
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  Repeated calls(replayCase());
  for (const auto mode : {CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY}) {
    Fused fused(calls.convolution(), mode);
    auto otherZ = std::make_unique<DeviceBuffer>(fused.z().bytes());
    otherZ->write(randomValues(calls.convolution().geometry(UCUDNN_FORWARD), 60));
    const auto thrice = [&](double alpha2, bool inPlace) {
      long long replayed = 0;
      for (int i = 0; i < 3; ++i) {
        const auto engines = callCount("cudnnBackendExecute");
        const Counts did = calls.call(UCUDNN_FORWARD, inPlace, [&](UcudnnHandle_t handle) {
          return fused.run(handle, kAlgorithm, calls.workspace(), 1, alpha2, inPlace);
        });
        replayed += did.replayed;
        EXPECT_EQ(1, did.split);
        if (onSimulator()) {
          EXPECT_EQ(inPlace, callCount("cudnnBackendExecute") == engines);
        }
      }
      return replayed;
    };
    EXPECT_EQ(2, thrice(0, false));
    EXPECT_EQ(2, thrice(1, false));
    EXPECT_EQ(2, thrice(1, true));
    fused.exchangeZ(otherZ);
    EXPECT_EQ(2, thrice(1, false));
    fused.bias().write(std::vector<char>(fused.bias().bytes()));
    EXPECT_EQ(3, thrice(1, false));
  }
}

}  // namespace
}  // namespace ucudnn::test
