#include "kernels/engines.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/built_engine.hpp"
#include "kernels/channels_last.hpp"
#include "kernels/compiled_engines.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/engine_configuration.hpp"
#include "kernels/engine_offers.hpp"

namespace ucudnn {
namespace {

#if UCUDNN_HAS_ENGINES

// With more bands, one more or fewer changes a band's rows too little.
constexpr int kBandsInAStep = 16;

class PreparedEngine final : public PreparedKernel {
 public:
  PreparedEngine(cudnnHandle_t handle, const Problem& problem, EngineConfiguration value)
      : device_{handle}, problem_(problem), value_(std::move(value)) {}

  std::optional<KernelOffer> offer(int* failures) override { return offer(Calls::kAll, failures); }
  std::shared_ptr<const BuiltKernel> build() override { return build(Calls::kAll); }

  std::optional<KernelOffer> offerToOverwrite(int* failures) override {
    return offer(Calls::kOverwriting, failures);
  }
  std::shared_ptr<const BuiltKernel> buildToOverwrite() override {
    return build(Calls::kOverwriting);
  }

 private:
  std::optional<KernelOffer> offer(Calls calls, int* failures) {
    if (!hasEngines(problem_)) return std::nullopt;
    try {
      return offerOf(problem_, engine(EnginePart(problem_, value_), calls), calls, failures);
    } catch (const Error& error) {
      if (failures != nullptr && !isRefusal(error.status())) ++*failures;
      return std::nullopt;
    }
  }

  std::shared_ptr<const BuiltKernel> build(Calls calls) {
    const EnginePart part(problem_, value_);
    ConfiguredEngine& configured = engine(part, calls);
    const auto build = [&] { return buildEngine(part, configured); };
    if (!notesOf(configured.at(0)).isCompiled) return build();
    return compiledOnce(problem_, value_, calls, build);
  }

  ConfiguredEngine& engine(const EnginePart& part, Calls calls) {
    if (!engine_) {
      graphs_ = makeGraphs(device_, part, calls);
      engine_.emplace(device_, graphs_, value_);
    }
    if (calls == Calls::kAll) completeGraphs(device_, part, graphs_);
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
  std::vector<KernelOffer> offersToOverwrite(cudnnHandle_t handle,
                                             const Problem& problem,
                                             const ConvolutionDescriptors&,
                                             int* failures) const override {
    return engineOffers({handle}, problem, failures, Calls::kOverwriting);
  }

  std::optional<KernelOffer> offerInBands(cudnnHandle_t handle,
                                          const Problem& problem,
                                          const OfferBounds& bounds,
                                          int* failures) const override {
    return engineInBands({handle}, problem, bounds, failures);
  }

  std::optional<KernelOffer> offerFirst(cudnnHandle_t handle,
                                        const Problem& problem,
                                        const OfferBounds& bounds,
                                        bool orNext,
                                        int* failures) const override {
    return firstEngine({handle}, problem, bounds, orNext, failures);
  }

  std::optional<KernelOffer> offerOnCopies(cudnnHandle_t handle,
                                           const Problem& problem,
                                           std::optional<Kernel> own,
                                           const OfferBounds& bounds,
                                           const AskKernel& ask) const override {
    return engineOnCopies({handle}, problem, own, bounds, ask);
  }

  bool copiesTensors(const Problem& problem,
                     Kernel kernel,
                     std::size_t workspaceBytes) const override {
    return workspaceBytes >= problem.xBytes() + problem.yBytes() &&
           engineConfigurationOf(kernel.id).readsCallersTensors();
  }

  std::size_t copiedBytes(const Problem& problem, Kernel kernel) const override {
    return EnginePart(problem, engineConfigurationOf(kernel.id)).ownBytes;
  }
  std::size_t outputCopyBytes(const Problem& problem, Kernel kernel) const override {
    return ucudnn::outputCopyBytes(problem, engineConfigurationOf(kernel.id));
  }

  std::vector<KernelOffer> firstOffers(cudnnHandle_t handle,
                                       const Problem& problem,
                                       std::size_t limitBytes,
                                       std::size_t most,
                                       Calls calls,
                                       int* failures) const override {
    return firstEngines({handle}, problem, limitBytes, most, calls, failures);
  }

  bool divides(const Problem& problem, Kernel kernel) const override {
    try {
      return !EnginePart(problem, engineConfigurationOf(kernel.id)).problem.isLarge();
    } catch (const Error&) {  // there are no such parts
      return false;
    }
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
    value.bands = std::min(value.bands, 2);
    return idOf(value);
  }

  /// cuDNN's name of the configuration: "eng46_k2=0_k5=2_k14=3".
  std::string text(Operation, Kernel kernel) const override {
    return toText(engineConfigurationOf(kernel.id));
  }

  /// The traits are unknown until cuDNN is asked.
  std::optional<KernelOffer> parse(const Problem& problem, std::string_view text) const override {
    const auto id = idFromText(text);
    if (!id) return std::nullopt;
    return KernelOffer{{0, true, true, false}, {*id, problem.mathType, kEngines}};
  }
};

}  // namespace

#if UCUDNN_HAS_ENGINES
namespace {

/// Some more and some fewer bands, each with another number of rows: the device's last wave of
/// thread blocks is fuller with some than with others, which depends on the engine's tiles.
/// REQUIRES: value.bands > 1. Throws Error.
std::vector<EngineConfiguration> withOtherBands(const Problem& problem,
                                                const EngineConfiguration& value) {
  std::vector<EngineConfiguration> all;
  const int step = std::max(1, value.bands / kBandsInAStep);
  std::vector<Problem> tried{ChannelsLast(problem, value.bands, value.folds).problem()};
  for (const int steps : {1, -1, 2, -2, 3}) {
    EngineConfiguration other = value;
    other.bands += steps * step;
    if (other.bands < 2 || !ChannelsLast::exists(problem, other.bands, other.folds)) continue;
    const Problem band = ChannelsLast(problem, other.bands, other.folds).problem();
    if (band.isLarge() || std::find(tried.begin(), tried.end(), band) != tried.end()) continue;
    tried.push_back(band);
    all.push_back(other);
  }
  return all;
}

}  // namespace

std::vector<std::vector<Kernel>> engineVariants(const EngineDevice& device,
                                                const Problem& problem,
                                                Kernel kernel) {
  std::vector<std::vector<Kernel>> all;
  try {
    const EngineConfiguration value = engineConfigurationOf(kernel.id);
    const EnginePart part(problem, value);
    const OperationGraph graph(device, part.problem, 0, kEngineAlignment);
    auto choices = withOtherKnobs(value, graph.knobs(device, value.engine));
    if (value.bands > 1) choices.push_back(withOtherBands(problem, value));
    for (const auto& choice : choices) {
      all.emplace_back();
      for (const EngineConfiguration& other : choice)
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
