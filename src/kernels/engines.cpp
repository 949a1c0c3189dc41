#include "kernels/engines.hpp"

#include <algorithm>
#include <utility>

#include "kernels/algorithms.hpp"
#include "kernels/built_engine.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/engine_configuration.hpp"
#include "kernels/engine_proposals.hpp"

namespace ucudnn {
namespace {

#if UCUDNN_HAS_ENGINES

bool isFused(const Problem& problem) noexcept {
  return problem.operation == Operation::kBiasActivationForward;
}

// cuDNN proposes 30 configurations of a convolution, and times none. The first few are mostly the
// fastest, but want the most workspace. So many are kept: of the 351 problems of
// misc/profiles/h200_engines.csv the fastest left is within 1 % at 0, 8 and 64 MiB and within 3 %
// at any workspace, with 13 of 30 kept.
constexpr std::size_t kFirstKept = 8;
constexpr int kKeptWithinWorkspace = 4;

// Tiles are for filters that take much of a small workspace at any batch size. A smaller share of
// the filter than this saves little of 8 MiB; as soon as x is larger than the filter, a smaller
// batch saves more.
constexpr std::size_t kLeastFilterShare = std::size_t{2} << 20;
// Each costs a question and a timing at each batch size.
constexpr std::size_t kKeptTiled = 3;
// Sums are in float, whose copies are twice as large: of two parts they take as much as x and y.
constexpr int kFewestSums = 4;

/// What the problem's types, math type and transform allow. cuDNN marks its TF32 engines by
/// TENSOR_CORE alone.
bool isAllowed(const Problem& problem, const EngineNotes& notes) {
  if (!problem.allows(transformOf(problem.operation, notes))) return false;
  const bool isFma = problem.mathType == CUDNN_FMA_MATH;
  if (isFma && notes.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return false;
  if (notes.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
      problem.mathType != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
    return false;
  return problem.computeType == CUDNN_DATA_HALF ||
         !notes.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
}

/// A problem's graphs: of the first the output is overwritten, of the second added to.
/// bias_activation_forward has the first only, in which z is.
std::vector<OperationGraph> graphsOf(const EngineDevice& device, const Problem& problem) {
  std::vector<OperationGraph> graphs;
  graphs.emplace_back(device, problem, 0, kEngineAlignment);
  if (!isFused(problem)) graphs.emplace_back(device, problem, 1, kEngineAlignment);
  return graphs;
}

/// Whether so many better ones need no more workspace.
bool isOutranked(const std::vector<KernelOffer>& better, std::size_t workspaceBytes) {
  return better.size() >= kFirstKept &&
         std::count_if(better.begin(), better.end(), [&](const KernelOffer& other) {
           return other.workspaceBytes <= workspaceBytes;
         }) >= kKeptWithinWorkspace;
}

/// Empty: cuDNN does not have the configuration, what it computes is not allowed, or it is
/// outranked by `better`.
std::optional<KernelOffer> offerOf(const Problem& problem,
                                   ConfiguredEngine& engine,
                                   int* failures,
                                   const std::vector<KernelOffer>& better = {}) {
  try {
    const auto notes = notesOf(engine.at(0));
    if (!isAllowed(problem, notes)) return std::nullopt;
    std::size_t workspaceBytes = 0;
    for (std::size_t i = 0; i < engine.graphs(); ++i) {
      workspaceBytes = std::max(workspaceBytes, workspaceOf(engine.at(i)));
      if (isOutranked(better, workspaceBytes)) return std::nullopt;
    }
    return KernelOffer{{EnginePart(problem, engine.value()).workspaceBytes(workspaceBytes),
                        !notes.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC),
                        transformOf(problem.operation, notes) != Transform::kWinograd ||
                            isWinogradAccurate(problem),
                        false},
                       {idOf(engine.value()), problem.mathType, kEngines}};
  } catch (const Error& error) {
    if (failures != nullptr && !isRefusal(error.status())) ++*failures;
    return std::nullopt;
  }
}

/// Whether the best ones copy the filter. Where tensors have the layout that engines like, they
/// don't.
bool copyFilter(const std::vector<KernelOffer>& best, const Problem& problem) {
  const auto end = best.begin() + static_cast<std::ptrdiff_t>(std::min(best.size(), kKeptTiled));
  return std::any_of(best.begin(), end, [&](const KernelOffer& offer) {
    return offer.workspaceBytes >= problem.wBytes();
  });
}

/// Adds the first `most` engines of what `kind` says that are wanted.
template <typename IsWanted>
void addEngines(const EngineDevice& device,
                const Problem& problem,
                EngineConfiguration kind,
                std::size_t most,
                int* failures,
                std::vector<KernelOffer>& offers,
                IsWanted isWanted) {
  const auto graphs = graphsOf(device, EnginePart(problem, kind).problem());
  for (EngineConfiguration& value : graphs.front().proposals(device, CUDNN_HEUR_MODE_A)) {
    if (most == 0) return;
    kind.engine = value.engine;
    kind.knobs = std::move(value.knobs);
    ConfiguredEngine engine(device, graphs, kind);
    const auto offer = offerOf(problem, engine, failures);
    if (!offer || !isWanted(*offer)) continue;
    offers.push_back(*offer);
    --most;
  }
}

/// The workspaces of those that copy the filter, the best first.
std::vector<std::size_t> workspacesWithCopy(const std::vector<KernelOffer>& offers,
                                            const Problem& problem) {
  std::vector<std::size_t> workspaces;
  for (const KernelOffer& offer : offers)
    if (offer.workspaceBytes >= problem.wBytes()) workspaces.push_back(offer.workspaceBytes);
  return workspaces;
}

/// Adds the first few of tiles to what is offered undivided: those that copy the filter, and need
/// less than what copies it whole. One needs less than the best of these, whose tiles may be the
/// fastest; the others need less than all of them. Which there are doesn't depend on a limit: a
/// question that is answered within one is answered within all that are smaller.
void addTiled(const EngineDevice& device,
              const Problem& problem,
              int* failures,
              std::vector<KernelOffer>& offers) {
  if (problem.xBytes() > problem.wBytes() || !copyFilter(offers, problem)) return;
  const auto whole = workspacesWithCopy(offers, problem);
  const std::size_t least = *std::min_element(whole.begin(), whole.end());
  EngineConfiguration kind;
  for (kind.tiles = 2; kind.tiles <= kMostTiles; kind.tiles *= 2) {
    const std::size_t share = problem.wBytes() / static_cast<std::size_t>(kind.tiles);
    if (share < kLeastFilterShare || !Tiling::exists(problem, kind.tiles, kEngineAlignment)) return;
    std::size_t beyond = whole.front();
    const auto savesCopy = [&](const KernelOffer& offer) {
      if (offer.workspaceBytes < share || offer.workspaceBytes >= beyond) return false;
      beyond = least;
      return true;
    };
    addEngines(device, problem, kind, kKeptTiled, failures, offers, savesCopy);
  }
}

/// Adds the first few that read several columns as one, where that makes less to copy.
void addFolded(const EngineDevice& device,
               const Problem& problem,
               int* failures,
               std::vector<KernelOffer>& offers) {
  EngineConfiguration kind;
  kind.folds = Folding::columnsOf(problem);
  if (!Folding::exists(problem, kind.folds) || !Folding::savesCopies(problem)) return;
  const auto any = [](const KernelOffer&) { return true; };
  addEngines(device, problem, kind, kFirstKept, failures, offers, any);
}

/// Adds those that sum parts of the batch in float, where the best ones copy x or y and parts need
/// less: the best one of each number of parts, as they are the last resort.
void addSums(const EngineDevice& device,
             const Problem& problem,
             int* failures,
             std::vector<KernelOffer>& offers) {
  if (offers.empty() || !Summation::exists(problem, kFewestSums)) return;
  const std::size_t copy = std::min(problem.xBytes(), problem.yBytes());
  if (offers.front().workspaceBytes < copy) return;
  std::size_t least = offers.front().workspaceBytes;
  for (const KernelOffer& offer : offers)
    if (offer.workspaceBytes >= copy) least = std::min(least, offer.workspaceBytes);
  const auto isDeterministic = [](const KernelOffer& offer) { return offer.deterministic; };
  EngineConfiguration kind;
  for (kind.sums = kFewestSums; Summation::exists(problem, kind.sums); kind.sums *= 2) {
    const std::size_t before = offers.size();
    addEngines(device, problem, kind, 1, failures, offers, isDeterministic);
    if (offers.size() > before && offers.back().workspaceBytes >= least) offers.pop_back();
  }
}

class PreparedEngine final : public PreparedKernel {
 public:
  PreparedEngine(cudnnHandle_t handle, const Problem& problem, EngineConfiguration value)
      : device_{handle}, problem_(problem), value_(std::move(value)) {}

  std::optional<KernelOffer> offer(int* failures) override {
    if (!hasEngines(problem_)) return std::nullopt;
    try {
      return offerOf(problem_, engine(), failures);
    } catch (const Error& error) {
      if (failures != nullptr && !isRefusal(error.status())) ++*failures;
      return std::nullopt;
    }
  }

  std::shared_ptr<const BuiltKernel> build() override {
    return buildEngine(device_, EnginePart(problem_, value_), engine());
  }

 private:
  ConfiguredEngine& engine() {
    if (!engine_) {
      graphs_ = graphsOf(device_, EnginePart(problem_, value_).problem());
      engine_.emplace(device_, graphs_, value_);
    }
    return *engine_;
  }

  const EngineDevice device_;
  const Problem problem_;
  const EngineConfiguration value_;
  std::vector<OperationGraph> graphs_;
  std::optional<ConfiguredEngine> engine_;
};

#else

class NoEngine final : public PreparedKernel {
 public:
  std::optional<KernelOffer> offer(int*) override { return std::nullopt; }
  std::shared_ptr<const BuiltKernel> build() override {
    throw Error(CUDNN_STATUS_NOT_SUPPORTED, "this cuDNN's engines are not used");
  }
};

#endif

class EngineSource final : public KernelSource {
 public:
#if UCUDNN_HAS_ENGINES
  std::vector<KernelOffer> offers(cudnnHandle_t handle,
                                  const Problem& problem,
                                  const ConvolutionDescriptors&,
                                  int* failures) const override {
    return engineOffers({handle}, problem, failures);
  }

  std::unique_ptr<PreparedKernel> prepare(cudnnHandle_t handle,
                                          const Problem& problem,
                                          std::shared_ptr<const ProblemDescriptors>,
                                          Kernel kernel) const override {
    return std::make_unique<PreparedEngine>(handle, problem, engineConfigurationOf(kernel.id));
  }

  std::vector<std::vector<Kernel>> variants(cudnnHandle_t handle,
                                            const Problem& problem,
                                            Kernel kernel) const override {
    return engineVariants({handle}, problem, kernel);
  }
#else
  std::vector<KernelOffer> offers(cudnnHandle_t,
                                  const Problem&,
                                  const ConvolutionDescriptors&,
                                  int*) const override {
    return {};
  }
  std::unique_ptr<PreparedKernel> prepare(cudnnHandle_t,
                                          const Problem&,
                                          std::shared_ptr<const ProblemDescriptors>,
                                          Kernel) const override {
    return std::make_unique<NoEngine>();
  }
#endif

  std::int32_t kind(Kernel kernel) const override {
    EngineConfiguration value = engineConfigurationOf(kernel.id);
    value.knobs.clear();
    return idOf(value);
  }

  /// cuDNN's name of the configuration: "eng46_k2=0_k5=2_k14=3".
  std::string text(Operation, Kernel kernel) const override {
    return toText(engineConfigurationOf(kernel.id));
  }

  /// What it needs and keeps is known when cuDNN is asked.
  std::optional<KernelOffer> parse(const Problem& problem, std::string_view text) const override {
    const auto id = idFromText(text);
    if (!id) return std::nullopt;
    return KernelOffer{{0, true, true, false}, {*id, problem.mathType, kEngines}};
  }
};

}  // namespace

#if UCUDNN_HAS_ENGINES
std::vector<KernelOffer> engineOffers(const EngineDevice& device,
                                      const Problem& problem,
                                      int* failures) {
  std::vector<KernelOffer> kept;
  if (!hasEngines(problem)) return kept;
  try {
    const auto graphs = graphsOf(device, problem);
    for (const EngineConfiguration& value : engineProposals(device, problem, graphs.front())) {
      ConfiguredEngine engine(device, graphs, value);
      const auto offer = offerOf(problem, engine, failures, kept);
      if (offer) kept.push_back(*offer);
    }
    addTiled(device, problem, failures, kept);
    addFolded(device, problem, failures, kept);
    addSums(device, problem, failures, kept);
  } catch (const Error& error) {
    if (failures != nullptr && !isRefusal(error.status())) ++*failures;
  }
  return kept;
}

std::vector<std::vector<Kernel>> engineVariants(const EngineDevice& device,
                                                const Problem& problem,
                                                Kernel kernel) {
  std::vector<std::vector<Kernel>> all;
  try {
    const EngineConfiguration value = engineConfigurationOf(kernel.id);
    const EnginePart part(problem, value);
    const OperationGraph graph(device, part.problem(), 0, kEngineAlignment);
    for (const auto& knob : withOtherKnobs(value, graph.knobs(device, value.engine))) {
      all.emplace_back();
      for (const EngineConfiguration& other : knob)
        all.back().push_back({idOf(other), kernel.mathType, kEngines});
    }
  } catch (const Error&) {  // this cuDNN does not say
    all.clear();
  }
  return all;
}
#endif

std::unique_ptr<KernelSource> makeEngineSource() {
  return std::make_unique<EngineSource>();
}

}  // namespace ucudnn
