#include "simulator/cudnn/engine_models.hpp"

namespace ucudnn::simulator {
namespace {

// Ranges as cuDNN's KNOB_INFO gives them.
constexpr KnobRange kTile{CUDNN_KNOB_TYPE_TILE_SIZE, 0, 23};
constexpr KnobRange kTileK{CUDNN_KNOB_TYPE_TILEK, 0, 3};
constexpr KnobRange kStages{CUDNN_KNOB_TYPE_STAGES, 0, 7};
constexpr KnobRange kIndexMode{CUDNN_KNOB_TYPE_IDX_MODE, 0, 1};
constexpr KnobRange kSpecial{CUDNN_KNOB_TYPE_SPECFILT, 0, 4};
constexpr KnobRange kWorkspace{CUDNN_KNOB_TYPE_WORKSPACE, 0, 1};
constexpr KnobRange kClusterM{CUDNN_KNOB_TYPE_TILE_CGA_M, 1, 16};
constexpr KnobRange kClusterN{CUDNN_KNOB_TYPE_TILE_CGA_N, 1, 16};
constexpr KnobRange kMultiply{CUDNN_KNOB_TYPE_MULTIPLY, 0, 2};
constexpr KnobRange kBlock{CUDNN_KNOB_TYPE_KBLOCK, 0, 5};
constexpr KnobRange kTexture{CUDNN_KNOB_TYPE_USE_TEX, 0, 1};
constexpr KnobRange kSplits{CUDNN_KNOB_TYPE_SPLIT_K, 1, 2048};

constexpr KnobRange kLoadA{CUDNN_KNOB_TYPE_LDGA, 0, 4};
constexpr KnobRange kLoadC{CUDNN_KNOB_TYPE_LDGC, 0, 4};
constexpr KnobRange kSplitBuffers{CUDNN_KNOB_TYPE_SPLIT_K_BUF, 1, 2048};
constexpr KnobRange kReduction{CUDNN_KNOB_TYPE_REDUCTION_MODE, 0, 1};
constexpr KnobRange kSplitSlices{CUDNN_KNOB_TYPE_SPLIT_K_SLC, 1, 2048};

/// An engine that only recorded tables propose.
EngineModel unproposed(std::int64_t index, unsigned traits, std::vector<KnobRange> knobs) {
  constexpr double kTime = 0.9;
  return {index,
          Method::kPrecomputedGemm,
          (traits & kPlainUnits) == 0,
          kTime,
          EngineSpace::kCopies,
          traits,
          std::move(knobs),
          {}};
}

// Times are relative to the legacy algorithms': misc/profiles has legacy algorithms and engines of
// AlexNet and ResNet-18 on an H200, where tensor-core engines take 0.4 to 1.5 of the legacy time.
std::vector<EngineModel> forwardEngines() {
  return {
      {0, Method::kImplicitGemm, false, 6, EngineSpace::kNone, kStrictNan | kFallback, {}, {{}}},
      {1,
       Method::kPrecomputedGemm,
       false,
       1.05,
       EngineSpace::kMethod,
       kNotDouble | kFallback,
       {kTile, kTexture},
       {}},
      {3, Method::kFft, false, 0.9, EngineSpace::kMethod, kFourier, {kMultiply}, {{2}}},
      {28,
       Method::kImplicitGemm,
       false,
       0.8,
       EngineSpace::kNone,
       kFallback,
       {kTile, kTexture},
       {{4, 0}}},
      {38,
       Method::kPrecomputedGemm,
       true,
       0.95,
       EngineSpace::kInputs,
       kUngrouped | kVectors,
       {kTile, kTileK, kStages, kIndexMode, kLoadC, kSpecial},
       {{0, 2, 3, 0, 0, 0}, {8, 1, 4, 0, 0, 0}}},
      {46,
       Method::kPrecomputedGemm,
       true,
       0.75,
       EngineSpace::kCopies,
       kPlanar,
       {kTile, kBlock, kStages},
       {{0, 2, 3}}},
      {67,
       Method::kPrecomputedGemm,
       true,
       0.55,
       EngineSpace::kDescribed,
       0,
       {kTile, kTileK, kIndexMode, kWorkspace, kClusterM, kClusterN},
       {{9, 0, 0, 0, 4, 1}, {0, 0, 0, 1, 8, 1}, {5, 0, 0, 1, 1, 2}}},
      {70,
       Method::kPrecomputedGemm,
       false,
       0.95,
       EngineSpace::kNone,
       kNotDouble | kNotHalf,
       {kTile, kIndexMode},
       {{4, 0}}},
      unproposed(35, kPlanar, {kTile, kBlock, kStages}),
      unproposed(41,
                 kUngrouped | kVectors,
                 {kTile,
                  kSplitBuffers,
                  kTileK,
                  kStages,
                  kReduction,
                  kSplitSlices,
                  kIndexMode,
                  kLoadC,
                  kSpecial}),
      unproposed(48, kUngrouped, {kTile, kLoadA, kTileK, kStages, kLoadC}),
      {71,
       Method::kPrecomputedGemm,
       true,
       0.6,
       EngineSpace::kCopies,
       kCompiled | kUnscaled | kFallback,
       {},
       {{}}},
  };
}

std::vector<EngineModel> backwardDataEngines() {
  return {
      {0, Method::kImplicitGemm, false, 6, EngineSpace::kNone, kStrictNan | kFallback, {}, {{}}},
      {2, Method::kPrecomputedGemm, false, 1.1, EngineSpace::kNone, 0, {kTile, kTexture}, {{1, 0}}},
      {25,
       Method::kImplicitGemm,
       false,
       0.8,
       EngineSpace::kNone,
       kNondeterministic | kFallback,
       {kTile, kTexture},
       {{2, 0}}},
      {28,
       Method::kPrecomputedGemm,
       true,
       0.7,
       EngineSpace::kCopies,
       kUngrouped | kVectors,
       {kTile, kTileK, kStages, kIndexMode, kSpecial},
       {{4, 1, 3, 0, 0}, {8, 0, 4, 0, 2}}},
      {50, Method::kFftTiling, false, 0.9, EngineSpace::kMethod, kFourier, {}, {{}}},
      {58,
       Method::kPrecomputedGemm,
       true,
       0.75,
       EngineSpace::kCopies,
       kPlanar,
       {kTile, kBlock, kStages},
       {{4, 2, 3}}},
      {71,
       Method::kPrecomputedGemm,
       true,
       0.55,
       EngineSpace::kDescribed,
       0,
       {kTile, kTileK, kIndexMode, kWorkspace, kClusterM, kClusterN},
       {{1, 0, 0, 0, 2, 1}, {4, 0, 0, 1, 4, 2}, {3, 0, 0, 1, 1, 2}}},
      {74,
       Method::kPrecomputedGemm,
       false,
       0.9,
       EngineSpace::kNone,
       kNotDouble | kNotHalf,
       {kTile, kIndexMode},
       {{4, 0}}},
      unproposed(1, kPlainUnits | kNotDouble, {}),
      unproposed(56, 0, {kTile, kTileK, kStages}),
      unproposed(60, kPlanar, {kTile, kBlock, kStages}),
      unproposed(65, kPlanar, {kTile, kBlock, kStages}),
      unproposed(76, kUngrouped, {kTile, kTileK, kIndexMode, kClusterM, kClusterN}),
      {78,
       Method::kPrecomputedGemm,
       true,
       0.6,
       EngineSpace::kCopies,
       kCompiled | kUnscaled | kFallback,
       {},
       {{}}},
  };
}

std::vector<EngineModel> backwardFilterEngines() {
  return {
      {0, Method::kImplicitGemm, false, 8, EngineSpace::kNone, kStrictNan | kFallback, {}, {{}}},
      {1,
       Method::kPrecomputedGemm,
       false,
       1.05,
       EngineSpace::kMethod,
       kFallback,
       {kTile, kTexture},
       {{5, 0}}},
      {17,
       Method::kWinogradNonfused,
       false,
       0.9,
       EngineSpace::kMethod,
       kWinograd,
       {kWorkspace},
       {{0}}},
      {18, Method::kFft, false, 0.9, EngineSpace::kMethod, kFourier, {kMultiply}, {{0}}},
      {20,
       Method::kImplicitGemm,
       false,
       0.8,
       EngineSpace::kNone,
       kNondeterministic | kFallback,
       {kTile, kTexture},
       {{5, 0}}},
      {23,
       Method::kPrecomputedGemm,
       true,
       0.9,
       EngineSpace::kCopies,
       kVectors,
       {kTile, kTileK, kStages, kIndexMode, kSpecial},
       {{5, 1, 3, 1, 0}}},
      {34,
       Method::kPrecomputedGemm,
       true,
       0.6,
       EngineSpace::kPartials,
       kPlanar,
       {kSplits, kTile, kBlock, kStages},
       {{4, 0, 2, 4}, {23, 7, 2, 5}}},
      {68,
       Method::kPrecomputedGemm,
       true,
       0.6,
       EngineSpace::kDescribed,
       kUngrouped,
       {kTile, kTileK, kIndexMode, kWorkspace, kClusterM, kClusterN},
       {{4, 0, 1, 0, 1, 2}, {1, 0, 1, 0, 1, 2}, {5, 0, 1, 1, 1, 3}}},
      unproposed(
          30,
          0,
          {kTile, kSplitBuffers, kTileK, kStages, kReduction, kSplitSlices, kIndexMode, kSpecial}),
      unproposed(40,
                 kUngrouped,
                 {kTile, kLoadA, kSplitBuffers, kTileK, kStages, kReduction, kSplitSlices, kLoadC}),
      unproposed(48, kPlanar, {kSplits, kTile, kBlock, kStages}),
      unproposed(50, kPlanar, {kSplits, kTile, kBlock, kStages}),
      unproposed(67, kPlainUnits | kNotDouble, {kTile}),
      {70,
       Method::kPrecomputedGemm,
       true,
       0.8,
       EngineSpace::kCopies,
       kCompiled | kUnscaled | kFallback,
       {},
       {{}}},
  };
}

/// Convolution, addition, bias and activation in one: cuDNN has some of the forward engines for it,
/// with numbers of their own.
std::vector<EngineModel> fusedEngines() {
  struct Number {
    std::int64_t plain;
    std::int64_t fused;
  };
  static constexpr Number kNumbers[] = {
      {0, 0}, {28, 11}, {38, 26}, {41, 29}, {48, 33}, {67, 51}, {70, 44}};
  std::vector<EngineModel> engines;
  for (EngineModel& engine : forwardEngines()) {
    for (const Number& number : kNumbers) {
      if (number.plain != engine.index) continue;
      engine.plainIndex = number.plain;
      engine.index = number.fused;
      engines.push_back(std::move(engine));
      break;
    }
  }
  return engines;
}

}  // namespace

const std::vector<EngineModel>& engineModels(const OperationGraph& graph) {
  // Never destroyed: plans run from static destructors.
  static const auto* const forward = new std::vector<EngineModel>(forwardEngines());
  static const auto* const fused = new std::vector<EngineModel>(fusedEngines());
  static const auto* const backwardData = new std::vector<EngineModel>(backwardDataEngines());
  static const auto* const backwardFilter = new std::vector<EngineModel>(backwardFilterEngines());
  switch (graph.problem.operation) {
    case Operation::kForward:
      return graph.fused.has_value() ? *fused : *forward;
    case Operation::kBackwardData:
      return *backwardData;
    default:
      return *backwardFilter;
  }
}

}  // namespace ucudnn::simulator
