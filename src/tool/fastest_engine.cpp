#include "tool/fastest_engine.hpp"

#include <algorithm>
#include <vector>

#include "kernels/engine_calls.hpp"
#include "kernels/engine_proposals.hpp"
#include "kernels/engines.hpp"
#include "tool/convolution.hpp"
#include "tool/failure.hpp"
#include "tool/timing.hpp"

namespace ucudnn::tool {
namespace {

#if UCUDNN_HAS_ENGINES
/// The engines that can be built and need no more workspace, as cuDNN ranks them.
std::vector<Engine> enginesOf(cudnnHandle_t handle,
                              const Convolution& convolution,
                              std::size_t workspaceBytes) {
  const auto operation = static_cast<Operation>(convolution.operation());
  Problem problem;
  if (!readProblem(operation,
                   {convolution.x(), convolution.w(), convolution.convolution(), convolution.y()},
                   problem) ||
      !hasEngines(problem))
    return {};
  const EngineDevice device{handle};
  const auto source = makeEngineSource();
  std::vector<Engine> engines;
  const auto add = [&](const EngineConfiguration& value) {
    const Kernel kernel{idOf(value), problem.mathType, kEngines};
    const auto prepared = source->prepare(handle, problem, nullptr, kernel);
    const auto offer = prepared->offerToOverwrite(nullptr);
    if (!offer || offer->workspaceBytes > workspaceBytes) return;
    engines.push_back(
        {source->text(operation, kernel), offer->workspaceBytes, prepared->buildToOverwrite()});
  };
  // An engine that is refused is left out; others may run.
  try {
    const OperationGraph graph(device, problem, 0, kEngineAlignment);
    for (const EngineConfiguration& value :
         engineProposals(device, problem, graph, Calls::kOverwriting)) {
      try {
        add(value);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
  return engines;
}
#endif

}  // namespace

void run(cudnnHandle_t handle,
         const Engine& engine,
         const Convolution& convolution,
         const Tensors& tensors,
         void* workspace) {
  static constexpr double kDoubles[] = {1, 0};
  static constexpr float kFloats[] = {1, 0};
  const bool isDouble = convolution.numerics().dataType == CUDNN_DATA_DOUBLE;
  ConvolutionPointers pointers;
  pointers.alpha = isDouble ? static_cast<const void*>(&kDoubles[0]) : &kFloats[0];
  pointers.beta = isDouble ? static_cast<const void*>(&kDoubles[1]) : &kFloats[1];
  pointers.x = tensors.x.get();
  pointers.w = tensors.w.get();
  pointers.y = tensors.y.get();
  pointers.workspace = workspace;
  pointers.workspaceBytes = engine.workspaceBytes;
  check(engine.kernel->enqueue(handle, pointers, nullptr), engine.name.c_str());
}

#if UCUDNN_HAS_ENGINES
std::optional<Engine> fastestEngine(cudnnHandle_t handle,
                                    cudaStream_t stream,
                                    const Convolution& convolution,
                                    const Tensors& tensors,
                                    std::size_t workspaceBytes) {
  // The first call may load kernels. An engine that takes kHopeless times as long as another even
  // so is not the fastest.
  constexpr double kLoadingMs = 50;
  constexpr double kHopeless = 2;
  std::vector<Engine> engines = enginesOf(handle, convolution, workspaceBytes);
  std::size_t most = 0;
  for (const Engine& engine : engines) most = std::max(most, engine.workspaceBytes);
  const DeviceBuffer workspace(most);
  const Engine* fastest = nullptr;
  double bestMs = 0;
  for (const Engine& engine : engines) {
    const auto enqueue = [&] { run(handle, engine, convolution, tensors, workspace.get()); };
    try {
      const double firstMs = timeOnceMs(stream, enqueue);
      if (fastest != nullptr && firstMs > kLoadingMs + kHopeless * bestMs) continue;
      std::vector<Contestant> alone = {{enqueue}};
      timeBackToBack(stream, 1, alone);
      if (fastest != nullptr && alone.front().timeMs >= bestMs) continue;
      bestMs = alone.front().timeMs;
      fastest = &engine;
    } catch (const DeviceError&) {
      // The engine does not run here.
    }
  }
  return fastest == nullptr ? std::nullopt : std::optional(*fastest);
}
#else
std::optional<Engine> fastestEngine(
    cudnnHandle_t, cudaStream_t, const Convolution&, const Tensors&, std::size_t) {
  return std::nullopt;
}
#endif

}  // namespace ucudnn::tool
