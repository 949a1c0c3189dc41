#include "kernels/built_engine.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>

#include "kernels/factor.hpp"
#include "kernels/graph_operations.hpp"

namespace ucudnn {
namespace {

bool isFused(const Problem& problem) noexcept {
  return problem.operation == Operation::kBiasActivationForward;
}

Tiling tilingOf(const Problem& problem, int tiles) {
  if (!Tiling::exists(problem, tiles, kEngineAlignment))
    throw Error(CUDNN_STATUS_NOT_SUPPORTED, "the filters can't be cut into so many tiles");
  return {problem, tiles};
}

std::optional<Folding> foldingOf(const Problem& problem, int columns) {
  if (columns == 1) return std::nullopt;
  if (!Folding::exists(problem, columns))
    throw Error(CUDNN_STATUS_NOT_SUPPORTED, "so many columns can't be folded");
  return Folding(problem);
}

class BuiltEngine final : public BuiltKernel {
 public:
  BuiltEngine(const EngineDevice& device, const EnginePart& part, ConfiguredEngine& engine)
      : tiling_(part.tiling), folding_(part.folding) {
    for (std::size_t i = 0; i < engine.graphs(); ++i) {
      engineBytes_ = std::max(engineBytes_, workspaceOf(engine.at(i)));
      plans_.push_back(makeExecutionPlan(device, engine.at(i)));
    }
    workspaceBytes_ = part.workspaceBytes(engineBytes_);
  }

  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation* fused) const noexcept override {
    if (!areFactorsForEngines(tiling_.tile, pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    if (isFused(tiling_.tile)) return execute(handle, plans_[0].get(), pointers, *fused);
    if (folding_) return enqueueFolded(handle, pointers);
    const std::int32_t type = tiling_.tile.xType;
    ConvolutionPointers tile = pointers;
    for (int i = 0; i < tiling_.tiles; ++i) {
      const bool adds = valueOf(tile.beta, type) != 0;
      const cudnnStatus_t status = execute(handle, plans_[adds ? 1 : 0].get(), tile, {});
      // What has been added can't be added again, whoever runs the call instead.
      if (status != CUDNN_STATUS_SUCCESS)
        return i > 0 && valueOf(pointers.beta, type) != 0 ? CUDNN_STATUS_EXECUTION_FAILED : status;
      tiling_.next(tile);
    }
    return CUDNN_STATUS_SUCCESS;
  }

  cudnnStatus_t workspaceSize(cudnnHandle_t, std::size_t* bytes) const noexcept override {
    *bytes = workspaceBytes_;
    return CUDNN_STATUS_SUCCESS;
  }

 private:
  /// In the wide gradient, from which the caller's is copied; to add, the caller's is copied there
  /// first.
  cudnnStatus_t enqueueFolded(cudnnHandle_t handle,
                              const ConvolutionPointers& pointers) const noexcept {
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = cudnn().getStream(handle, &stream);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    ConvolutionPointers wide = pointers;
    wide.w = advance(pointers.workspace, EnginePart::foldedOffset(engineBytes_));
    const bool adds = valueOf(pointers.beta, tiling_.tile.xType) != 0;
    if (adds && folding_->fromCallers(pointers.w, wide.w, stream) != cudaSuccess)
      return CUDNN_STATUS_EXECUTION_FAILED;
    status = execute(handle, plans_[adds ? 1 : 0].get(), wide, {});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return folding_->toCallers(wide.w, pointers.w, stream) == cudaSuccess
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_EXECUTION_FAILED;
  }

  /// A variant pack must not be shared between handles.
  cudnnStatus_t execute(cudnnHandle_t handle,
                        cudnnBackendDescriptor_t plan,
                        const ConvolutionPointers& pointers,
                        const BiasActivation& fused) const noexcept {
    static constexpr std::int64_t kIds[] = {kTensorX, kTensorW, kTensorY, kTensorBias, kTensorZ};
    const void* const data[] = {pointers.x, pointers.w, pointers.y, fused.bias, fused.z};
    const std::int64_t tensors = !isFused(tiling_.tile) ? 3 : tiling_.tile.addsZ == 0 ? 4 : 5;
    cudnnBackendDescriptor_t made = nullptr;
    cudnnStatus_t status =
        cudnn().backendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &made);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const BackendDescriptor pack(made);
    const auto set = [&](cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type,
                         std::int64_t count,
                         const void* values) {
      if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn().backendSetAttribute(made, name, type, count, values);
    };
    set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors, kIds);
    set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors, data);
    set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &pointers.workspace);
    if (status == CUDNN_STATUS_SUCCESS) status = cudnn().backendFinalize(made);
    return status == CUDNN_STATUS_SUCCESS ? cudnn().backendExecute(handle, plan, made) : status;
  }

  Tiling tiling_;
  std::optional<Folding> folding_;
  std::size_t engineBytes_ = 0;
  std::size_t workspaceBytes_ = 0;
  std::vector<BackendDescriptor> plans_;  ///< of the part's graphs
};

}  // namespace

EnginePart::EnginePart(const Problem& whole, const EngineConfiguration& value)
    : tiling(tilingOf(whole, value.tiles)), folding(foldingOf(whole, value.folds)) {}

const BackendDescriptor& ConfiguredEngine::at(std::size_t graph) {
  while (configured_.size() <= graph)
    configured_.push_back(graphs_[configured_.size()].configuration(device_, value_));
  return configured_[graph];
}

std::shared_ptr<const BuiltKernel> buildEngine(const EngineDevice& device,
                                               const EnginePart& part,
                                               ConfiguredEngine& engine) {
  return std::make_shared<const BuiltEngine>(device, part, engine);
}

}  // namespace ucudnn

#endif
