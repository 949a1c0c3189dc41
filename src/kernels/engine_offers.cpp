#include "kernels/engine_offers.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "kernels/algorithms.hpp"
#include "kernels/blocks.hpp"
#include "kernels/channels_last.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/engine_configuration.hpp"
#include "kernels/engine_proposals.hpp"
#include "kernels/engines.hpp"
#include "kernels/errata.hpp"
#include "kernels/folds.hpp"
#include "kernels/offered_parts.hpp"
#include "kernels/sums.hpp"
#include "kernels/tiles.hpp"

namespace ucudnn {
namespace {

// cuDNN proposes 30 configurations of a convolution, and times none. The first few are mostly the
// fastest, but want the most workspace. These two numbers keep 13 of 30. For the 351 problems of
// misc/profiles/h200_engines.csv, the fastest one kept is within 1 % of the fastest at 0, 8 and 64
// MiB, and within 3 % at any workspace.
constexpr std::size_t kFirstKept = 8;
constexpr int kKeptWithinWorkspace = 4;

// Tiles are for filters that take much of a small workspace at any batch size. A tile that saves
// less of the filter than this saves little of 8 MiB. As soon as x is larger than the filter, a
// smaller batch saves more.
constexpr std::size_t kLeastFilterShare = std::size_t{2} << 20;
// So many engines run in tiles: each costs a query and a timing at each batch size.
constexpr std::size_t kKeptTiled = 3;
// So many engines run in bands: each costs a query and a timing for each number of bands. cuDNN's
// first three are often variants of one engine, and a faster one may come behind them.
constexpr std::size_t kKeptBanded = 8;
// Parts of large tensors take seconds to time.
constexpr std::size_t kKeptLarge = 3;
constexpr int kKeptOfOneEngine = 2;
constexpr int kUseTexture = 3;  // CUDNN_KNOB_TYPE_USE_TEX, which cuDNN 9 has deprecated

constexpr std::size_t kKeptBlocked = 4;
constexpr std::size_t kKeptSplit = 2;
// Our copies may take so much more workspace than an engine's: 1/64 of it, and some alignments.
constexpr std::size_t kMoreWorkspace = 64, kAlignments = std::size_t{4} << 10;

/// Whether the problem's types, math type and transform allow the engine. cuDNN marks its TF32
/// engines by TENSOR_CORE alone.
bool isAllowed(const Problem& problem, const EngineNotes& notes) {
  if (!problem.allows(transformOf(problem.operation, notes))) return false;
  const bool isFma = problem.mathType == CUDNN_FMA_MATH;
  if (isFma && notes.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return false;
  if (notes.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
      problem.mathType != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
    return false;
  return problem.computeType == CUDNN_DATA_HALF || problem.reducedSums != 0 ||
         !notes.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
}

/// cuDNN makes a texture in each call, which voids a client's capture. No heuristics propose such
/// engines, but a knob selects them.
bool makesTextures(const EngineConfiguration& value) {
  const auto& knobs = value.knobs;
  return std::any_of(knobs.begin(), knobs.end(), [](const auto& knob) {
    return knob.first == kUseTexture && knob.second == 1;
  });
}

/// Whether kFirstKept better kernels need no more workspace.
bool isOutranked(const std::vector<KernelOffer>& better, std::size_t workspaceBytes) {
  return better.size() >= kFirstKept &&
         std::count_if(better.begin(), better.end(), [&](const KernelOffer& other) {
           return other.workspaceBytes <= workspaceBytes;
         }) >= kKeptWithinWorkspace;
}

}  // namespace

std::optional<KernelOffer> offerOf(const Problem& problem,
                                   ConfiguredEngine& engine,
                                   Calls calls,
                                   int* failures,
                                   const std::vector<KernelOffer>& better) {
  if (makesTextures(engine.value())) return std::nullopt;
  try {
    const auto notes = notesOf(engine.at(0));
    if (!isAllowed(problem, notes)) return std::nullopt;
    // To ask for its workspace would take as long as to compile it: 0.3 to 1.5 s.
    if (notes.isCompiled && !tellsWorkspaceBeforePlans()) return std::nullopt;
    std::size_t workspaceBytes = 0;
    const EnginePart part(problem, engine.value());
    const bool mayUseTensorCores = notes.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    if (engine.mayRun() && isBarred(part.problem, &engine.value(), mayUseTensorCores))
      return std::nullopt;
    const bool overwrites = calls == Calls::kOverwriting && part.engineAdds && !part.addsUp;
    for (std::size_t i = 0; i < (overwrites ? 1 : engine.graphs()); ++i) {
      workspaceBytes = std::max(workspaceBytes, engine.workspaceBytes(i));
      if (isOutranked(better, workspaceBytes)) return std::nullopt;
    }
    KernelOffer offer{{part.workspaceBytes(workspaceBytes),
                       !notes.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC),
                       transformOf(problem.operation, notes) != Transform::kWinograd ||
                           isWinogradAccurate(problem),
                       false},
                      {idOf(engine.value()), problem.mathType, kEngines}};
    if (overwrites) offer.calls = Calls::kOverwriting;
    offer.compiled = notes.isCompiled;
    return offer;
  } catch (const Error& error) {
    if (failures != nullptr && !isRefusal(error.status())) ++*failures;
    return std::nullopt;
  }
}

void addEngines(const Asking& asking,
                EngineConfiguration kind,
                std::size_t most,
                std::vector<KernelOffer>& offers,
                const std::function<bool(const KernelOffer&)>& isWanted) {
  const auto graphs = makeGraphs(asking.device, EnginePart(asking.problem, kind), asking.calls);
  for (EngineConfiguration& value : graphs.front().proposals(asking.device, CUDNN_HEUR_MODE_A)) {
    if (most == 0) return;
    kind.engine = value.engine;
    kind.knobs = std::move(value.knobs);
    ConfiguredEngine engine(asking.device, graphs, kind);
    const auto offer = offerOf(asking.problem, engine, asking.calls, asking.failures);
    if (!offer || !isWanted(*offer)) continue;
    offers.push_back(*offer);
    --most;
  }
}

bool isMoreByACopy(std::size_t workspaceBytes, std::size_t enginesBytes) noexcept {
  return workspaceBytes > enginesBytes + enginesBytes / kMoreWorkspace + kAlignments;
}

bool mayCopyLast(const Problem& problem) {
  return !Blocking::hasFewChannels(problem) && isCopiedLast(problem) &&
         ChannelsLast::exists(problem, 1);
}

void copyLast(const Asking& asking, std::vector<KernelOffer>& offers) {
  const Problem& problem = asking.problem;
  const auto mayCopy = [&](const KernelOffer& offer) {
    return offer.workspaceBytes >= problem.xBytes() + problem.yBytes();
  };
  if (problem.xType != CUDNN_DATA_FLOAT || std::none_of(offers.begin(), offers.end(), mayCopy) ||
      !mayCopyLast(problem))
    return;
  EngineConfiguration kind;
  kind.blocks = 1;
  const auto graphs = makeGraphs(asking.device, EnginePart(asking.problem, kind), asking.calls);
  for (KernelOffer& offer : offers) {
    EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
    if (!mayCopy(offer) || !value.readsCallersTensors()) continue;
    value.blocks = 1;
    ConfiguredEngine engine(asking.device, graphs, std::move(value));
    const auto last = offerOf(problem, engine, asking.calls, asking.failures);
    if (last && !isMoreByACopy(last->workspaceBytes, offer.workspaceBytes)) offer = *last;
  }
}

namespace {

/// Whether the best ones copy the filter. They don't if the tensors have the layout that engines
/// like.
bool copyFilter(const std::vector<KernelOffer>& best, const Problem& problem) {
  const auto end = best.begin() + static_cast<std::ptrdiff_t>(std::min(best.size(), kKeptTiled));
  return std::any_of(best.begin(), end, [&](const KernelOffer& offer) {
    return offer.workspaceBytes >= problem.wBytes();
  });
}

/// The workspaces of the offers that copy the filter, the best first.
std::vector<std::size_t> workspacesWithCopy(const std::vector<KernelOffer>& offers,
                                            const Problem& problem) {
  std::vector<std::size_t> workspaces;
  for (const KernelOffer& offer : offers)
    if (offer.workspaceBytes >= problem.wBytes()) workspaces.push_back(offer.workspaceBytes);
  return workspaces;
}

/// Adds the first few engines in tiles to the undivided offers. They copy a tile of the filter, and
/// need less than the engines that copy all of it. One needs less than the best of these, because
/// its tiles may be the fastest. The others need less than all of them. The choice doesn't depend
/// on a limit, so that an answer for one limit holds for all smaller ones.
void addTiled(const Asking& asking, std::vector<KernelOffer>& offers) {
  const Problem& problem = asking.problem;
  if (problem.xBytes() > problem.wBytes() || !copyFilter(offers, problem) ||
      !groupTilesOf(problem).empty())
    return;
  const auto whole = workspacesWithCopy(offers, problem);
  const std::size_t least = *std::min_element(whole.begin(), whole.end());
  EngineConfiguration kind;
  for (kind.tiles = 2; kind.tiles <= kMostTiles; kind.tiles *= 2) {
    const std::size_t share = problem.wBytes() / static_cast<std::size_t>(kind.tiles);
    if (share < kLeastFilterShare || cutInTiles(problem, kind.tiles).empty()) return;
    std::size_t beyond = whole.front();
    const auto savesCopy = [&](const KernelOffer& offer) {
      if (offer.workspaceBytes < share || offer.workspaceBytes >= beyond) return false;
      beyond = least;
      return true;
    };
    addEngines(asking, kind, kKeptTiled, offers, savesCopy);
  }
}

/// Adds the first few engines that read several columns as one, if that leaves less to copy.
void addFolded(const Asking& asking, std::vector<KernelOffer>& offers) {
  const Problem& problem = asking.problem;
  EngineConfiguration kind;
  kind.folds = Folding::columnsOf(problem);
  if (!Folding::exists(problem, kind.folds) || !Folding::savesCopies(problem)) return;
  const auto any = [](const KernelOffer&) { return true; };
  addEngines(asking, kind, kFirstKept, offers, any);
}

/// Whether the best one copies x or y, as its workspace tells.
bool copiesXOrY(const std::vector<KernelOffer>& offers, const Problem& problem) {
  return !offers.empty() &&
         offers.front().workspaceBytes >= std::min(problem.xBytes(), problem.yBytes());
}

/// Adds engines on parts of the batch, if the best ones copy x or y. Sums in float are the last
/// resort: only the best one of each number, if it needs less workspace than those.
void addSums(const Asking& asking, std::vector<KernelOffer>& offers) {
  const Problem& problem = asking.problem;
  if (!copiesXOrY(offers, problem) || cutToSum(problem, 2).empty()) return;
  const std::size_t copy = std::min(problem.xBytes(), problem.yBytes());
  std::size_t least = offers.front().workspaceBytes;
  for (const KernelOffer& offer : offers)
    if (offer.workspaceBytes >= copy) least = std::min(least, offer.workspaceBytes);
  const auto isDeterministic = [](const KernelOffer& offer) { return offer.deterministic; };
  for (const EngineConfiguration& split : splitsOf(problem))
    addEngines(asking, split, kKeptSplit, offers, isDeterministic);
  EngineConfiguration kind;
  for (kind.sums = kFewestSums; !cutToSum(problem, kind.sums).empty(); kind.sums *= 2) {
    const std::size_t before = offers.size();
    addEngines(asking, kind, 1, offers, isDeterministic);
    if (offers.size() > before && offers.back().workspaceBytes >= least) offers.pop_back();
  }
}

/// Adds the first few engines for each number of pixels.
void addBlocked(const Asking& asking, std::vector<KernelOffer>& offers) {
  for (const EngineConfiguration& kind : blocksOf(asking.problem)) {
    const auto any = [](const KernelOffer&) { return true; };
    addEngines(asking, kind, kKeptBlocked, offers, any);
  }
}

/// Adds the first few engines for each number of bands, or of tiles of groups; with channels last
/// only where engines copy tensors. Bands whose columns are folded, if there are any, replace the
/// others, which are slower unless one side has channels enough: an H200's best bands of nnU-Net's
/// data gradient of 64 to 32 channels are not folded
/// (misc/results/one_sample_layers_folds_h200.json).
void addBanded(const Asking& asking, std::vector<KernelOffer>& offers) {
  const bool isFew = hasFewSamples(asking.problem);
  bool hasBands = false;
  const auto add = [&](const std::vector<EngineConfiguration>& kinds) {
    for (const EngineConfiguration& kind : kinds) {
      const std::size_t before = offers.size();
      const auto any = [](const KernelOffer&) { return true; };
      const std::size_t most = isFew ? kKeptBanded : kKeptBlocked;  // for each of many batch sizes
      if (isFew || kind.bands == 1) addEngines(asking, kind, most, offers, any);
      hasBands = hasBands || (kind.bands > 1 && offers.size() > before);
    }
  };
  add(foldedParts(asking.problem));
  const Problem& problem = asking.problem;
  const bool copyTensors = isCopiedLast(problem) || copiesXOrY(offers, problem);
  if (isFew && copyTensors && (!hasBands || hasManyOnOneSide(problem))) add(partsOfSample(problem));
}

/// Adds the first few engines for each number of parts, at most two variants of one engine: cuDNN's
/// first may be slow in parts.
void addLarge(const Asking& asking, std::vector<KernelOffer>& offers) {
  for (const EngineConfiguration& kind : partsOfLarge(asking.problem)) {
    std::map<std::int64_t, int> kept;
    addEngines(asking, kind, kKeptLarge, offers, [&](const KernelOffer& offer) {
      return ++kept[engineConfigurationOf(offer.kernel.id).engine] <= kKeptOfOneEngine;
    });
  }
}

}  // namespace

std::vector<KernelOffer> engineOffers(const EngineDevice& device,
                                      const Problem& problem,
                                      int* failures,
                                      Calls calls) {
  std::vector<KernelOffer> kept;
  if (!hasEngines(problem)) return kept;
  const Asking asking{device, problem, calls, failures};
  try {
    if (problem.isLarge()) {
      addLarge(asking, kept);
      return kept;
    }
    const auto graphs = makeGraphs(device, EnginePart(problem, {}), calls);
    for (const EngineConfiguration& value :
         engineProposals(device, problem, graphs.front(), calls)) {
      ConfiguredEngine engine(device, graphs, value);
      const auto offer = offerOf(problem, engine, calls, failures, kept);
      if (offer) kept.push_back(*offer);
    }
    addTiled(asking, kept);
    addFolded(asking, kept);
    addSums(asking, kept);
    addBlocked(asking, kept);
    copyLast(asking, kept);
    addBanded(asking, kept);
  } catch (const Error& error) {
    if (failures != nullptr && !isRefusal(error.status())) ++*failures;
  }
  return kept;
}

}  // namespace ucudnn

#endif
