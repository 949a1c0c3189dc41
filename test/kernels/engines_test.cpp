// The answers of this cuDNN's own engines about our graphs.
#include "engines_fixture.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "kernels/built_engine.hpp"
#include "kernels/engine_offers.hpp"
#include "kernels/factor.hpp"
#include "support/operations.hpp"

namespace ucudnn {
namespace {

using namespace test;

TEST(EngineConfigurationTest, ItsTextIsReadBack) {
  for (const char* const text : {"eng0",
                                 "eng46_k2=0_k5=2_k14=3",
                                 "eng30_k12=-1",
                                 "eng0_tiles=2",
                                 "eng67_k25=1_tiles=8",
                                 "eng33_k0=61_folds=2",
                                 "eng68_k2=5_sums=32",
                                 "eng68_k2=5_splits=32",
                                 "eng67_k25=1_blocks=1",
                                 "eng67_k25=1_blocks=1_bands=4096",
                                 "eng67_k25=1_blocks=1_folds=2",
                                 "eng67_k25=1_blocks=1_folds=8_bands=2",
                                 "eng67_k25=1_blocks=4_last=1",
                                 "eng67_k25=1_blocks=16"}) {
    const auto configuration = engineConfigurationFromText(text);
    ASSERT_TRUE(configuration) << text;
    EXPECT_EQ(toText(*configuration), text);
    EXPECT_EQ(engineConfigurationOf(idOf(*configuration)), *configuration);
  }
}

TEST(EngineConfigurationTest, OtherTextsAreNone) {
  std::string endless = "eng1";
  for (int i = 0; i < 100; ++i) endless += "_k1=1";
  for (const std::string& text : {std::string(),
                                  std::string("eng"),
                                  std::string("engine1"),
                                  std::string("eng1_"),
                                  std::string("eng1_k2"),
                                  std::string("eng1_k2="),
                                  std::string("eng1_k2=3x"),
                                  std::string("eng01"),
                                  std::string("eng1_k02=3"),
                                  std::string("eng-0"),
                                  std::string("eng99999999999999999999"),
                                  std::string("FFT/default"),
                                  std::string("eng1_tiles="),
                                  std::string("eng1_tiles=1"),
                                  std::string("eng1_tiles=02"),
                                  std::string("eng1_tiles=0"),
                                  std::string("eng1_tiles=-2"),
                                  std::string("eng1_tiles=9"),
                                  std::string("eng1_tiles=99999999999"),
                                  std::string("eng1_tiles=2_k2=3"),
                                  std::string("eng1_tiles=2_tiles=2"),
                                  std::string("eng1_folds="),
                                  std::string("eng1_folds=1"),
                                  std::string("eng1_folds=0"),
                                  std::string("eng1_folds=-2"),
                                  std::string("eng1_folds=9"),
                                  std::string("eng1_folds=2_tiles=2"),
                                  std::string("eng1_tiles=2_folds=2"),
                                  std::string("eng1_sums="),
                                  std::string("eng1_sums=1"),
                                  std::string("eng1_sums=0"),
                                  std::string("eng1_sums=-2"),
                                  std::string("eng1_sums=64"),
                                  std::string("eng1_splits=1"),
                                  std::string("eng1_splits=64"),
                                  std::string("eng1_sums=2_splits=2"),
                                  std::string("eng1_blocks="),
                                  std::string("eng1_blocks=0"),
                                  std::string("eng1_blocks=-4"),
                                  std::string("eng1_blocks=65"),
                                  std::string("eng1_sums=2_blocks=4"),
                                  std::string("eng1_bands=2"),
                                  std::string("eng1_blocks=4_bands=2"),
                                  std::string("eng1_last=1"),
                                  std::string("eng1_blocks=1_last=1"),
                                  std::string("eng1_blocks=4_last=0"),
                                  std::string("eng1_blocks=4_last=2"),
                                  std::string("eng1_blocks=65_last=1"),
                                  std::string("eng1_blocks=4_last=1_bands=2"),
                                  std::string("eng1_blocks=4_folds=2"),
                                  std::string("eng1_blocks=1_folds=1"),
                                  std::string("eng1_blocks=1_folds=9"),
                                  std::string("eng1_blocks=1_folds=1_bands=2"),
                                  std::string("eng1_blocks=1_folds=2_bands=1"),
                                  std::string("eng1_blocks=1_bands=2_folds=2"),
                                  std::string("eng1_folds=2_bands=2"),
                                  std::string("eng1_folds=2_sums=2"),
                                  std::string("eng1_tiles=2_sums=2"),
                                  endless})
    EXPECT_FALSE(engineConfigurationFromText(text)) << text;
}

TEST(SuitsEnginesTest, FactorsOfOneAndZeroAndAlignedPointers) {
  const Problem problem = convolution(Operation::kForward, 4, 8, 8, 8, 3);
  alignas(16) std::array<float, 8> memory{};
  const float one = 1;
  const float zero = 0;
  const float half = 0.5F;
  const auto suits = [&](const void* alpha, const void* beta, const void* x) {
    return suitsEngines(problem, {alpha, beta, x, memory.data(), memory.data()}, nullptr);
  };
  EXPECT_TRUE(suits(&one, &zero, memory.data()));
  EXPECT_TRUE(suits(&one, &one, memory.data()));
  EXPECT_FALSE(suits(&half, &zero, memory.data()));
  EXPECT_FALSE(suits(&one, &half, memory.data()));
  EXPECT_FALSE(suits(nullptr, &zero, memory.data()));
  EXPECT_FALSE(suits(&one, nullptr, memory.data()));
  EXPECT_FALSE(suits(&one, &zero, &memory[1]));
  EXPECT_FALSE(suits(&one, &zero, nullptr));
}

TEST(SuitsEnginesTest, AlignedWorkspaceOrNone) {
  alignas(16) std::array<float, 8> memory{};
  float* const data = memory.data();
  EXPECT_TRUE(isMemoryForEngines({nullptr, nullptr, data, data, data, nullptr, 0}));
  EXPECT_TRUE(isMemoryForEngines({nullptr, nullptr, data, data, data, &memory[4], 16}));
  EXPECT_FALSE(isMemoryForEngines({nullptr, nullptr, data, data, data, &memory[1], 16}));
}

TEST_F(EnginesTest, EachOperationHasSeveralThatCanBeBuilt) {
  for (const Operation operation : kOperations) {
    const Problem problem = convolution(operation, 64, 64, 192, 27, 5);
    const auto found = offers(problem);
    EXPECT_GE(found.size(), 8u) << toText(operation);
    expectBuilt(problem, found);
    const auto isWithout = [](const KernelOffer& offer) { return offer.workspaceBytes == 0; };
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), isWithout)) << toText(operation);
    for (const KernelOffer& offer : found) EXPECT_FALSE(offer.anyCall);
  }
}

/// Sharing descriptors between an engine's graphs changes nothing: cuDNN's own description of the
/// plans is the same.
TEST_F(EnginesTest, GraphsThatShareTensorsAndKnobsMakeThePlansOfOthers) {
  const auto describe = [&](const BackendDescriptor& configuration) {
    const auto plan = makeExecutionPlan(device_, configuration);
    constexpr std::int64_t kMostBytes = 1 << 16;
    std::string text(kMostBytes, '\0');
    text.resize(static_cast<std::size_t>(getAttribute(plan,
                                                      CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                                      CUDNN_TYPE_CHAR,
                                                      kMostBytes,
                                                      text.data())));
    return text;
  };
  for (const Operation operation : kOperations) {
    const Problem problem = convolution(operation, 32, 64, 64, 14, 3);
    for (const KernelOffer& offer : offers(problem)) {
      const EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
      const EnginePart part(problem, value);
      const auto graphs = makeGraphs(device_, part);
      ASSERT_EQ(graphs.size(), 2U);
      ConfiguredEngine engine(device_, graphs, value);
      for (const std::size_t beta : {0, 1}) {
        const OperationGraph own(
            device_, part.problem, static_cast<double>(beta), kEngineAlignment);
        const std::string expected = describe(own.configuration(device_, value));
        EXPECT_GT(expected.size(), 100U);
        EXPECT_EQ(describe(engine.at(beta)), expected) << toText(value) << ", beta " << beta;
      }
    }
  }
}

// PyTorch's first choice for VGG-16's second convolution needs 4.9 GiB for 200 samples.
TEST_F(EnginesTest, TheFirstForAWholeBatchRunsPartsOfIt) {
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
    const Problem whole = convolution(operation, 200, 64, 64, 224, 3);
    const auto graphs = makeGraphs(device_, EnginePart(whole, {}));
    const auto proposals = graphs.front().proposals(device_, CUDNN_HEUR_MODE_A);
    ASSERT_FALSE(proposals.empty());
    EXPECT_EQ(configurationOf(graphs.front().configuration(device_, proposals.front())),
              proposals.front());
    const Problem part = whole.withBatch(2);
    const auto partGraphs = makeGraphs(device_, EnginePart(part, {}));
    ConfiguredEngine engine(device_, partGraphs, proposals.front());
    const auto offer = offerOf(part, engine, Calls::kAll, nullptr);
    ASSERT_TRUE(offer) << toText(operation);
    EXPECT_LT(offer->workspaceBytes, std::size_t{64} << 20);
    expectBuilt(part, {*offer});
  }
}

/// With FMA most problems have no others.
TEST_F(EnginesTest, AllThatAnyModeNamesIsOfferedUnlessBetterOnesTakeNoMoreWorkspace) {
  for (const Operation operation : kOperations)
    for (const int batch : {2, 64, 256}) {
      Problem problem = convolution(operation, batch, 512, 512, 7, 3);
      problem.mathType = CUDNN_FMA_MATH;
      const auto found = offers(problem);
      const OperationGraph graph(device_, problem, 0, kEngineAlignment);
      // Four of the eight better ones need no more.
      const auto isOffered = [&](const EngineConfiguration& value) {
        const std::size_t bytes = workspaceOf(graph.configuration(device_, value));
        const auto needsNoMore = [&](const KernelOffer& o) { return o.workspaceBytes <= bytes; };
        return std::any_of(found.begin(),
                           found.end(),
                           [&](const KernelOffer& o) { return o.kernel.id == idOf(value); }) ||
               (found.size() >= 8 && std::count_if(found.begin(), found.end(), needsNoMore) >= 4);
      };
      const auto isTensorCores = [&](const EngineConfiguration& value) {
        const auto notes = notesOf(graph.configuration(device_, value));
        return notes.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
      };
      for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK})
        for (const EngineConfiguration& value : graph.proposals(device_, mode))
          EXPECT_TRUE(isTensorCores(value) || isOffered(value))
              << toText(operation) << " N=" << batch << " " << toText(value);
    }
}

/// Its tensor core engines compute in TF32, which FMA does not allow.
TEST_F(EnginesTest, FmaHasFewer) {
  Problem problem = convolution(Operation::kForward, 64, 64, 192, 27, 5);
  const auto tf32 = offers(problem);
  problem.mathType = CUDNN_FMA_MATH;
  const auto fma = offers(problem);
  ASSERT_FALSE(fma.empty());
  const OperationGraph graph(device_, problem, 0, kEngineAlignment);
  for (const KernelOffer& offer : fma)
    EXPECT_FALSE(notesOf(graph.configuration(device_, engineConfigurationOf(offer.kernel.id)))
                     .has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  EXPECT_LT(fma.size(), tf32.size());
}

// An engine that adds up in 16 bits is the client's choice alone.
TEST_F(EnginesTest, ReducedSumsAreOfferedOnlyWhereTheClientsEngineHasThem) {
  for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    Problem problem = convolution(Operation::kBackwardFilter, 64, 64, 192, 27, 5);
    problem.xType = problem.wType = problem.yType = type;
    const auto withReduced = [&] {
      const OperationGraph graph(device_, problem, 0, kEngineAlignment);
      const auto all = offers(problem);
      return std::count_if(all.begin(), all.end(), [&](const KernelOffer& offer) {
        return notesOf(graph.configuration(device_, engineConfigurationOf(offer.kernel.id)))
            .has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
      });
    };
    EXPECT_EQ(withReduced(), 0);
    problem.reducedSums = 1;
    EXPECT_GT(withReduced(), 0);
  }
}

TEST(EngineNotes, TellTheTransform) {
  const auto ofFilters = [](const EngineNotes& notes) {
    return transformOf(Operation::kBackwardFilter, notes);
  };
  EXPECT_EQ(ofFilters({1, {}}), Transform::kNone);
  EXPECT_EQ(ofFilters({1,
                       {CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
                        CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
                        CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}}),
            Transform::kNone);
  EXPECT_EQ(ofFilters({18, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_FFT}}),
            Transform::kFourier);
  for (const auto note : {CUDNN_NUMERICAL_NOTE_WINOGRAD,
                          CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
                          CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
                          CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13})
    EXPECT_EQ(ofFilters({1, {CUDNN_NUMERICAL_NOTE_FFT, note}}), Transform::kWinograd);
}

// cuDNN 9.19 notes nothing of it on an H200.
TEST(EngineNotes, LackTheFiltersWinograd) {
  EXPECT_EQ(transformOf(Operation::kBackwardFilter, {17, {}}), Transform::kWinograd);
  EXPECT_EQ(transformOf(Operation::kForward, {17, {}}), Transform::kNone);
}

/// An A100, of which cuDNN 9.19 has fused Winograd engines without the device itself.
class AmpereEnginesTest : public EnginesTest {
 protected:
  void SetUp() override {
    std::string device = kH200;
    const std::string version = "\"deviceVer\": 900";
    device.replace(device.find(version), version.size(), "\"deviceVer\": 800");
    describe(device);
  }
};

TEST_F(AmpereEnginesTest, WinogradIsOfferedOnlyWhereItIsAllowed) {
  for (const Operation operation : {Operation::kForward, Operation::kBackwardData}) {
    Problem problem = convolution(operation, 64, 64, 64, 28, 3);
    problem.mathType = CUDNN_FMA_MATH;
    const OperationGraph graph(device_, problem, 0, kEngineAlignment);
    const auto isWinograd = [&](const KernelOffer& offer) {
      return notesOf(graph.configuration(device_, engineConfigurationOf(offer.kernel.id)))
          .has(CUDNN_NUMERICAL_NOTE_WINOGRAD);
    };
    const auto all = offers(problem);
    const auto winograd = std::count_if(all.begin(), all.end(), isWinograd);
    EXPECT_GT(winograd, 0) << toText(operation);
    for (const Transform transform : {Transform::kFourier, Transform::kNone}) {
      problem.transform = transform;
      const auto exact = offers(problem);
      EXPECT_FALSE(exact.empty());
      EXPECT_TRUE(std::none_of(exact.begin(), exact.end(), isWinograd));
    }
  }
}

TEST_F(EnginesTest, OneThatIsNotDeterministicSaysSo) {
  const auto found = offers(convolution(Operation::kBackwardFilter, 64, 64, 192, 27, 5));
  const auto isDeterministic = [](const KernelOffer& offer) { return offer.deterministic; };
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), isDeterministic));
  EXPECT_FALSE(std::all_of(found.begin(), found.end(), isDeterministic));
}

TEST_F(EnginesTest, OddSamplesStridesGroupsDilationsAndThreeDimensionsHaveSome) {
  for (const Operation operation : kOperations) {
    Problem odd = convolution(operation, 5, 3, 8, 13, 3);
    Problem strided = convolution(operation, 8, 16, 16, 17, 3);
    strided.strides = {2, 2};
    strided.ySizes = {8, 16, 9, 9};
    strided.yStrides = {16 * 81, 81, 9, 1};
    Problem grouped = convolution(operation, 8, 32, 32, 14, 3);
    grouped.groups = 4;
    grouped.wSizes[1] = 8;
    Problem dilated = convolution(operation, 8, 16, 16, 14, 3);
    dilated.dilations = dilated.pads = {2, 2};
    Problem volume = convolution(operation, 2, 16, 16, 12, 3);
    volume.dimensions = 5;
    volume.xSizes = volume.ySizes = {2, 16, 12, 12, 12};
    volume.xStrides = volume.yStrides = {16 * 1728, 1728, 144, 12, 1};
    volume.wSizes = {16, 16, 3, 3, 3};
    volume.pads = volume.strides = volume.dilations = {1, 1, 1};
    for (const Problem& problem : {odd, strided, grouped, dilated, volume}) {
      const auto found = offers(problem);
      EXPECT_FALSE(found.empty()) << problem.text();
      expectBuilt(problem, found);
    }
  }
}

TEST_F(EnginesTest, HalfWithChannelsLastAndDoubleHaveSome) {
  for (const Operation operation : kOperations) {
    Problem half = convolution(operation, 16, 64, 64, 14, 3);
    half.xType = half.wType = half.yType = CUDNN_DATA_HALF;
    half.wFormat = CUDNN_TENSOR_NHWC;
    half.xStrides = half.yStrides = {64 * 196, 1, 14 * 64, 64};
    Problem exact = convolution(operation, 4, 8, 8, 14, 3);
    exact.xType = exact.wType = exact.yType = exact.computeType = CUDNN_DATA_DOUBLE;
    for (const Problem& problem : {half, exact}) {
      const auto found = offers(problem);
      EXPECT_FALSE(found.empty()) << problem.text();
      expectBuilt(problem, found);
    }
  }
}

TEST_F(EnginesTest, WhatCudnnDoesNotHaveIsNotOffered) {
  const Problem problem = convolution(Operation::kForward, 4, 8, 8, 14, 3);
  const OperationGraph graph(device_, problem, 0, kEngineAlignment);
  for (const char* const text : {"eng9999", "eng0_k2=9999", "eng-1", "eng0_k9999=1"})
    EXPECT_THROW(graph.configuration(device_, *engineConfigurationFromText(text)), Error) << text;
}

}  // namespace
}  // namespace ucudnn
