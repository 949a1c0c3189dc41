#include "kernels/built_engine.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>
#include <array>
#include <atomic>

#include "kernels/engine_calls.hpp"
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

std::optional<Summation> summationOf(const Problem& problem, int parts) {
  if (parts == 1) return std::nullopt;
  if (!Summation::exists(problem, parts))
    throw Error(CUDNN_STATUS_NOT_SUPPORTED, "the batch can't be summed in so many parts");
  return Summation(problem, parts);
}

/// What a call of an engine's plan is given. Of x, w, y, the bias and z a graph has the first few.
struct PackContents {
  std::array<const void*, 5> data{};
  const void* workspace = nullptr;
  cudnnHandle_t handle = nullptr;  ///< a variant pack must not be shared between handles
  cudnnBackendDescriptor_t plan = nullptr;

  bool operator==(const PackContents& other) const noexcept {
    return data == other.data && workspace == other.workspace && handle == other.handle &&
           plan == other.plan;
  }
  /// Buffers that change roles give other numbers.
  std::size_t hash() const noexcept {
    auto mixed = reinterpret_cast<std::uintptr_t>(workspace);
    for (const void* const each : data) mixed = mixed * 3 + reinterpret_cast<std::uintptr_t>(each);
    return static_cast<std::size_t>(mixed * 0x9E3779B97F4A7C15u >> 32);
  }
};

cudnnStatus_t makePack(const PackContents& contents,
                       std::int64_t tensors,
                       BackendDescriptor& pack) noexcept {
  static constexpr std::int64_t kIds[] = {kTensorX, kTensorW, kTensorY, kTensorBias, kTensorZ};
  cudnnBackendDescriptor_t made = nullptr;
  cudnnStatus_t status =
      cudnn().backendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &made);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  pack.reset(made);
  const auto set = [&](cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type,
                       std::int64_t count,
                       const void* values) {
    if (status == CUDNN_STATUS_SUCCESS)
      status = cudnn().backendSetAttribute(made, name, type, count, values);
  };
  set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors, kIds);
  set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors, contents.data.data());
  set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &contents.workspace);
  return status == CUDNN_STATUS_SUCCESS ? cudnn().backendFinalize(made) : status;
}

/// The variant packs of an engine's last calls. To make one takes cuDNN 9.19 a quarter of a
/// microsecond, and a program that repeats brings the same memory. A finalized pack is never
/// changed: other contents are another pack. Thread-safe: a pack that is in use is not waited for.
class KeptPacks {
 public:
  cudnnStatus_t execute(const PackContents& contents, std::int64_t tensors) noexcept {
    Place& place = places_[contents.hash() % places_.size()];
    if (place.isTaken.exchange(true, std::memory_order_acquire)) {
      Place own;
      return executeIn(own, contents, tensors);
    }
    const cudnnStatus_t status = executeIn(place, contents, tensors);
    place.isTaken.store(false, std::memory_order_release);
    return status;
  }

 private:
  struct Place {
    std::atomic<bool> isTaken{false};
    PackContents contents;
    BackendDescriptor pack;  ///< null: none, or it has failed
  };

  static cudnnStatus_t executeIn(Place& place,
                                 const PackContents& contents,
                                 std::int64_t tensors) noexcept {
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (place.pack == nullptr || !(place.contents == contents)) {
      place.contents = contents;
      status = makePack(contents, tensors, place.pack);
    }
    if (status == CUDNN_STATUS_SUCCESS)
      status = cudnn().backendExecute(contents.handle, contents.plan, place.pack.get());
    if (status != CUDNN_STATUS_SUCCESS) place.pack.reset();
    return status;
  }

  // A network has a convolution several times over, each with memory of its own: a ResNet-50 six
  // times.
  std::array<Place, 16> places_;
};

/// A failure is taken off the runtime's last-error slot: the call may yet succeed another way.
cudnnStatus_t statusOf(cudaError_t error) noexcept {
  if (error == cudaSuccess) return CUDNN_STATUS_SUCCESS;
  static_cast<void>(cudaGetLastError());
  return CUDNN_STATUS_EXECUTION_FAILED;
}

/// What all have: an engine's plans, of each of its graphs.
class BuiltEngine : public BuiltKernel {
 public:
  BuiltEngine(const EngineDevice& device, const EnginePart& part, ConfiguredEngine& engine)
      : whole_(part.tiling.tile) {
    for (std::size_t i = 0; i < engine.graphs(); ++i) {
      engineBytes_ = std::max(engineBytes_, workspaceOf(engine.at(i)));
      plans_.push_back(makeExecutionPlan(device, engine.at(i)));
    }
    workspaceBytes_ = part.workspaceBytes(engineBytes_);
  }

  cudnnStatus_t workspaceSize(cudnnHandle_t, std::size_t* bytes) const noexcept final {
    *bytes = workspaceBytes_;
    return CUDNN_STATUS_SUCCESS;
  }

 protected:
  const Problem& whole() const noexcept { return whole_; }
  bool adds(const ConvolutionPointers& pointers) const noexcept {
    return valueOf(pointers.beta, whole_.xType) != 0;
  }
  cudnnStatus_t execute(cudnnHandle_t handle,
                        bool adds,
                        const ConvolutionPointers& pointers,
                        const BiasActivation& fused = {},
                        std::int64_t tensors = 3) const noexcept {
    return packs_.execute({{pointers.x, pointers.w, pointers.y, fused.bias, fused.z},
                           pointers.workspace,
                           handle,
                           plans_[adds ? 1 : 0].get()},
                          tensors);
  }
  /// Of the workspace, behind the engine's.
  const void* ownMemory(const ConvolutionPointers& pointers) const noexcept {
    return advance(pointers.workspace, roundUpToAlignment(engineBytes_));
  }

 private:
  Problem whole_;  ///< or a tile
  std::size_t engineBytes_ = 0;
  std::size_t workspaceBytes_ = 0;
  std::vector<BackendDescriptor> plans_;  ///< of the part's graphs
  mutable KeptPacks packs_;
};

/// Of tiles, mostly one.
class BuiltTiles final : public BuiltEngine {
 public:
  BuiltTiles(const EngineDevice& device, const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(device, part, engine), tiling_(part.tiling) {}

  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation* fused) const noexcept override {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    if (isFused(whole()))
      return execute(handle, false, pointers, *fused, whole().addsZ == 0 ? 4 : 5);
    ConvolutionPointers tile = pointers;
    for (int i = 0; i < tiling_.tiles; ++i) {
      const cudnnStatus_t status = execute(handle, adds(tile), tile);
      // What has been added can't be added again, whoever runs the call instead.
      if (status != CUDNN_STATUS_SUCCESS)
        return i > 0 && adds(pointers) ? CUDNN_STATUS_EXECUTION_FAILED : status;
      tiling_.next(tile);
    }
    return CUDNN_STATUS_SUCCESS;
  }

 private:
  Tiling tiling_;
};

class BuiltFolded final : public BuiltEngine {
 public:
  BuiltFolded(const EngineDevice& device, const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(device, part, engine), folding_(*part.folding) {}

  /// In the wide gradient, from which the caller's is copied; to add, the caller's is copied there
  /// first.
  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation*) const noexcept override {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = cudnn().getStream(handle, &stream);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    ConvolutionPointers wide = pointers;
    wide.w = ownMemory(pointers);
    if (adds(pointers)) status = statusOf(folding_.fromCallers(pointers.w, wide.w, stream));
    if (status == CUDNN_STATUS_SUCCESS) status = execute(handle, adds(pointers), wide);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return statusOf(folding_.toCallers(wide.w, pointers.w, stream));
  }

 private:
  Folding folding_;
};

class BuiltSums final : public BuiltEngine {
 public:
  BuiltSums(const EngineDevice& device, const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(device, part, engine), sums_(*part.sums), conversions_(whole(), sums_) {}

  /// The client's gradient is written last: until then nothing is lost.
  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation*) const noexcept override {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    ConvolutionPointers wide = pointers;
    wide.w = ownMemory(pointers);
    wide.x = advance(wide.w, sums_.xPlace());
    wide.y = advance(wide.w, sums_.yPlace());
    for (int i = 0; i < sums_.parts; ++i) {
      const auto part = static_cast<std::size_t>(i);
      cudnnStatus_t status =
          conversions_.widenX(handle, advance(pointers.x, part * sums_.xStep), wide.x);
      if (status == CUDNN_STATUS_SUCCESS)
        status = conversions_.widenY(handle, advance(pointers.y, part * sums_.yStep), wide.y);
      if (status == CUDNN_STATUS_SUCCESS) status = execute(handle, i > 0, wide);
      if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    return conversions_.roundW(handle, wide.w, pointers.beta, pointers.w);
  }

 private:
  Summation sums_;
  Conversions conversions_;
};

}  // namespace

EnginePart::EnginePart(const Problem& whole, const EngineConfiguration& value)
    : tiling(tilingOf(whole, value.tiles)),
      folding(foldingOf(whole, value.folds)),
      sums(summationOf(whole, value.sums)) {}

const BackendDescriptor& ConfiguredEngine::at(std::size_t graph) {
  while (configured_.size() <= graph)
    configured_.push_back(graphs_[configured_.size()].configuration(device_, value_));
  return configured_[graph];
}

std::shared_ptr<const BuiltKernel> buildEngine(const EngineDevice& device,
                                               const EnginePart& part,
                                               ConfiguredEngine& engine) {
  if (part.folding) return std::make_shared<const BuiltFolded>(device, part, engine);
  if (part.sums) return std::make_shared<const BuiltSums>(device, part, engine);
  return std::make_shared<const BuiltTiles>(device, part, engine);
}

}  // namespace ucudnn

#endif
