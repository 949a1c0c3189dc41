// The engines that run, or are timed, before a problem is measured: the first of cuDNN's
// heuristics.
#include "kernels/engines.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>
#include <climits>
#include <cstddef>
#include <utility>

#include "kernels/blocks.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/engine_configuration.hpp"
#include "kernels/engine_offers.hpp"
#include "kernels/offered_parts.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t kFirstAsked = 8;  // the others are mostly slow
constexpr int kVariants = 3;            // so many of the first are often of one engine

/// Adds the first engines that need not be compiled: one for each kind of blocks, because kinds
/// differ more than engines do, and a few in the fewest folded bands that fit.
void addFirstCopied(const Asking& asking,
                    std::size_t limitBytes,
                    std::size_t most,
                    std::vector<KernelOffer>& offers) {
  const auto isFirst = [&](const KernelOffer& offer) {
    return !offer.compiled && offer.workspaceBytes <= limitBytes;
  };
  const auto add = [&](const EngineConfiguration& kind, std::size_t count) {
    if (EnginePart(asking.problem, kind).ownBytes <= limitBytes)
      addEngines(asking, kind, count, offers, isFirst);
  };
  for (const EngineConfiguration& kind : blocksOf(asking.problem)) add(kind, 1);
  const std::size_t before = offers.size();
  for (const EngineConfiguration& kind : foldedParts(asking.problem)) {
    add(kind, most);
    if (offers.size() > before) return;
  }
}

/// The first engine, in the first of the kinds, within the bounds. Leaves out engines that cuDNN
/// compiles: compiling takes longer than the calls that this serves. Where the first engine needs
/// too much workspace, or the first few of bands and of a sample, parts of another kind are
/// smaller. `slower` gets the first other engine that fits, for a caller without smaller parts;
/// null: it has some. Throws Error.
std::optional<KernelOffer> firstWithin(const Asking& asking,
                                       std::vector<EngineConfiguration> kinds,
                                       const OfferBounds& bounds,
                                       std::optional<KernelOffer>* slower) {
  for (EngineConfiguration& kind : kinds) {
    const EnginePart part(asking.problem, kind);
    if (part.ownBytes > bounds.limitBytes) continue;
    if (kind.sums > 1 && slower != nullptr && *slower) break;  // those copy x and y to float
    const bool isSample = kind.readsCallersTensors() && asking.problem.batch() == 1;
    const int mostTooLarge = asking.problem.isLarge()     ? INT_MAX
                             : isSample || kind.bands > 1 ? kVariants
                                                          : 1;
    int tooLarge = 0;
    const auto graphs = makeGraphs(asking.device, part, asking.calls);
    for (EngineConfiguration& value : graphs.front().proposals(asking.device, CUDNN_HEUR_MODE_A)) {
      kind.engine = value.engine;
      kind.knobs = std::move(value.knobs);
      ConfiguredEngine engine(asking.device, graphs, kind);
      const auto offer = offerOf(asking.problem, engine, asking.calls, asking.failures);
      if (!offer || offer->compiled) continue;
      if (bounds.admit(*offer)) {
        if (tooLarge < mostTooLarge) return offer;
        if (slower != nullptr && !*slower) *slower = offer;
        break;
      }
      if (offer->workspaceBytes <= bounds.limitBytes ||
          (bounds.deterministic && !offer->deterministic))
        continue;
      if (++tooLarge >= mostTooLarge && (slower == nullptr || *slower)) break;
    }
  }
  return std::nullopt;
}

/// Whether the first engine on blocks is faster than cuDNN's own on parts of the batch, without
/// being measured. On an H200 and tensor cores, within 64 and 256 MiB, it mostly takes 0.2 to 0.9
/// of the time (misc/results/first_layers_h200.json at 8674ede9). Channels last float takes up to
/// 3.2 and forward up to 2.3 times as long. Float's data gradients first in a network, and fused
/// calls, were not measured.
bool gainsByBlocks(const Problem& problem) {
  if (problem.mathType == CUDNN_FMA_MATH) return false;
  switch (problem.operation) {
    case Operation::kForward:
      return problem.xStrides[1] != 1;
    case Operation::kBackwardData:
      return isRounded(problem.xType);
    case Operation::kBackwardFilter:
      return isRounded(problem.xType) || isCopiedLast(problem);
    default:
      return false;
  }
}

/// Forward in 16 bits the smallest blocks, if we copy y; else the largest. In float forward without
/// a copy of y, which took AlexNet's 8 % longer; a filter's gradient only with one. Where few
/// numbers are in a block, that is of blocks of y, too: the smallest were no faster than cuDNN's
/// own. A ResNet's first takes 1.08 to 1.21 of plain's time within 64 MiB so, and by the own kernel
/// 1.17 to 1.32 (misc/results/first_layers_64mib_h200.json, first_layers_h200.json).
std::vector<EngineConfiguration> firstBlocksOf(const Problem& problem) {
  const int smallest = Blocking::pixelsOf(problem);
  if (smallest <= 1 || !gainsByBlocks(problem)) return {};
  std::vector<EngineConfiguration> kinds = blocksOf(problem);
  const bool isForward = problem.operation == Operation::kForward;
  if (isForward && isRounded(problem.xType) && !kinds.empty() && kinds.front().last != 0)
    return {kinds.front()};
  const auto isUnwanted = [&](const EngineConfiguration& kind) {
    if (isForward) return kind.last != 0;
    if (isRounded(problem.xType)) return false;
    return hasFewInBlock(problem) ? kind.blocks == smallest : kind.last == 0;
  };
  kinds.erase(std::remove_if(kinds.begin(), kinds.end(), isUnwanted), kinds.end());
  return kinds.empty() ? kinds : std::vector<EngineConfiguration>{kinds.back()};
}

/// Whether our copies are of the caller's problem: they drop no pixels.
bool areOfWhole(const Problem& problem, const EnginePart& copied) {
  return copied.problem.strides == problem.strides;
}

/// Whether the engine copies our copies: on the caller's tensors it needs less workspace.
bool copiesAgain(const Asking& asking,
                 Kernel own,
                 const EnginePart& copied,
                 std::size_t workspaceBytes,
                 const AskKernel& ask) {
  if (workspaceBytes < copied.ownBytes + copied.problem.xBytes() + copied.problem.yBytes())
    return false;
  if (!areOfWhole(asking.problem, copied)) return true;
  // Partial sums and transforms may need as much, in small batches.
  const int failures = *asking.failures;
  const auto offer = ask(own, asking.failures);
  if (*asking.failures > failures)
    throw Error(CUDNN_STATUS_INTERNAL_ERROR, "cuDNN does not say what the engine needs");
  return offer && isMoreByACopy(workspaceBytes, offer->workspaceBytes);
}

/// The client's own engine on copies channels last; or the first engine of cuDNN's heuristics where
/// the own one copies them again (TF32 engines that round what they copy), and where the copies are
/// of another problem. On an H200 within 64 MiB filter gradients that are copied again take 0.3 to
/// 0.6 of the time so, and 1x1 filters with a step, whose copies drop pixels, 0.5 to 1.0. Elsewhere
/// the first engine is as often slower. Forward, the own engine runs on such copies, too, if it
/// fits: it is a little slower, but to ask for the first one makes cuBLASLt load its tables in a
/// program's first pass. Throws Error.
std::optional<KernelOffer> onChannelsLast(const Asking& asking,
                                          Kernel own,
                                          const OfferBounds& bounds,
                                          const AskKernel& ask) {
  EngineConfiguration last;
  last.blocks = 1;
  const Problem& problem = asking.problem;
  const EnginePart part(problem, last);
  if (part.ownBytes > bounds.limitBytes) return std::nullopt;
  std::vector<EngineConfiguration> kinds{last};
  const bool isWhole = areOfWhole(problem, part);
  const bool isGradient = problem.operation == Operation::kBackwardData ||
                          problem.operation == Operation::kBackwardFilter;
  if (isWhole || !isGradient) {
    EngineConfiguration value = engineConfigurationOf(own.id);
    value.blocks = 1;
    const auto offer = ask({idOf(value), problem.mathType, kEngines}, asking.failures);
    if (!offer && isWhole)
      throw Error(CUDNN_STATUS_NOT_SUPPORTED, "the engine does not run channels last");
    const bool mayRun = offer && !copiesAgain(asking, own, part, offer->workspaceBytes, ask);
    if (mayRun && isWhole) return bounds.admit(*offer) ? offer : std::nullopt;
    // To compile it for the other problem would take longer than to ask for another.
    if (mayRun && !offer->compiled && bounds.admit(*offer)) return offer;
  }
  if (isWhole) {
    auto folded = foldedParts(problem);
    if (!hasFewSamples(problem) && folded.size() > 1)
      folded.erase(folded.begin() + 1, folded.end());
    if (!folded.empty()) kinds = std::move(folded);
  }
  return firstWithin(asking, std::move(kinds), bounds, nullptr);
}

/// The parts of a problem that is not large, in the order in which they are asked about: the
/// largest folded bands or tiles of groups, other bands, the fewest splits, the fewest sums. Where
/// both sides have channels enough, forward and data gradients are faster without folds. Bands
/// copy x with its few channels filled, and multiply those, too. Where the pixels that the filter
/// steps over have more numbers than a block may have, splits come first: within 64 MiB an H200
/// takes 1.36 of plain's time for a ViT's first filter gradient in bfloat16 in splits, and 2.25 in
/// bands; for a ConvNeXt's, MobileNet's and ResNet's 1.25 to 1.37 and 0.68 to 0.97
/// (misc/results/first_layers_h200.json at 1cfc4aab and 743f4563).
std::vector<EngineConfiguration> partsInOrder(const Problem& problem) {
  std::vector<EngineConfiguration> kinds;
  const auto add = [&](std::vector<EngineConfiguration> more) {
    for (EngineConfiguration& kind : more) kinds.push_back(std::move(kind));
  };
  const bool areLargePatches = numbersInBlock(problem) > kMostInBlock;
  const bool foldsGain =
      problem.operation == Operation::kBackwardFilter || !hasManyOnOneSide(problem);
  const bool splitsFirst = areLargePatches || !isCopiedLast(problem);
  if (splitsFirst) add(splitsOf(problem));
  if (foldsGain) add(foldedParts(problem));
  add(partsOfSample(problem));
  if (!foldsGain) add(foldedParts(problem));
  if (!splitsFirst) add(splitsOf(problem));
  add(sumsOf(problem));
  return kinds;
}

}  // namespace

std::vector<KernelOffer> firstEngines(const EngineDevice& device,
                                      const Problem& problem,
                                      std::size_t limitBytes,
                                      std::size_t most,
                                      Calls calls,
                                      int* failures) {
  std::vector<KernelOffer> first;
  if (!hasEngines(problem) || problem.isLarge()) return first;
  try {
    const Asking asking{device, problem, calls, failures};
    const auto graphs = makeGraphs(device, EnginePart(problem, {}), calls);
    std::vector<EngineConfiguration> values = graphs.front().proposals(device, CUDNN_HEUR_MODE_A);
    if (values.size() > kFirstAsked) values.resize(kFirstAsked);
    for (const EngineConfiguration& value : values) {
      if (first.size() == most) break;
      ConfiguredEngine engine(device, graphs, value);
      const auto offer = offerOf(problem, engine, calls, failures);
      if (offer && offer->workspaceBytes <= limitBytes && !offer->compiled) first.push_back(*offer);
    }
    std::vector<KernelOffer> copied = first;
    copyLast(asking, copied);
    for (std::size_t i = 0; i < most && i < copied.size(); ++i)
      if (!(copied[i].kernel == first[i].kernel) && copied[i].workspaceBytes <= limitBytes)
        first.push_back(copied[i]);
    addFirstCopied(asking, limitBytes, most, first);
  } catch (const Error& error) {
    if (failures != nullptr && !isRefusal(error.status())) ++*failures;
  }
  return first;
}

std::optional<KernelOffer> engineInBands(const EngineDevice& device,
                                         const Problem& problem,
                                         const OfferBounds& bounds,
                                         int* failures) {
  if (!hasEngines(problem)) return std::nullopt;
  try {
    std::vector<EngineConfiguration> kinds =
        problem.isLarge() ? partsOfLarge(problem) : partsInOrder(problem);
    std::optional<KernelOffer> slower;
    const Asking asking{device, problem, bounds.calls, failures};
    const auto first = firstWithin(asking, std::move(kinds), bounds, &slower);
    return first ? first : slower;
  } catch (const Error& error) {
    if (failures != nullptr && !isRefusal(error.status())) ++*failures;
  }
  return std::nullopt;
}

std::optional<KernelOffer> firstEngine(const EngineDevice& device,
                                       const Problem& problem,
                                       const OfferBounds& bounds,
                                       bool orNext,
                                       int* failures) {
  if (!hasEngines(problem) || problem.isLarge()) return std::nullopt;
  try {
    std::optional<KernelOffer> next;
    const Asking asking{device, problem, bounds.calls, failures};
    const auto first =
        firstWithin(asking, {EngineConfiguration()}, bounds, orNext ? &next : nullptr);
    return first ? first : next;
  } catch (const Error& error) {
    if (failures != nullptr && !isRefusal(error.status())) ++*failures;
  }
  return std::nullopt;
}

std::optional<KernelOffer> engineOnCopies(const EngineDevice& device,
                                          const Problem& problem,
                                          std::optional<Kernel> own,
                                          const OfferBounds& bounds,
                                          const AskKernel& ask) {
  if (!hasEngines(problem) || problem.isLarge()) return std::nullopt;
  int failures = 0;
  std::optional<KernelOffer> found;
  const Asking asking{device, problem, bounds.calls, &failures};
  auto blocks = firstBlocksOf(problem);
  if (blocks.empty() && (!own || !mayCopyLast(problem)))
    throw Error(CUDNN_STATUS_NOT_SUPPORTED, "copies gain nothing");
  try {
    found = blocks.empty() ? onChannelsLast(asking, *own, bounds, ask)
                           : firstWithin(asking, std::move(blocks), bounds, nullptr);
  } catch (const Error& error) {
    if (failures == 0) throw;
  }
  if (!found && failures > 0)
    throw Error(CUDNN_STATUS_INTERNAL_ERROR, "cuDNN does not say what runs");
  return found;
}

}  // namespace ucudnn

#endif
