#include "kernels/built_engine.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>

#include "kernels/blocks.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/folds.hpp"
#include "kernels/graph_operations.hpp"
#include "kernels/kept_packs.hpp"
#include "kernels/pixel_copies.hpp"
#include "kernels/slices.hpp"
#include "kernels/sums.hpp"
#include "kernels/tiles.hpp"

namespace ucudnn {
namespace {

bool isFused(const Problem& problem) noexcept {
  return problem.operation == Operation::kBiasActivationForward;
}

void require(bool exists, const char* otherwise) {
  if (!exists) throw Error(CUDNN_STATUS_NOT_SUPPORTED, otherwise);
}

std::vector<Part> partsOf(const Problem& problem, const EngineConfiguration& value) {
  std::vector<Part> parts =
      value.sums == 1 ? cutInTiles(problem, value.tiles) : cutToSum(problem, value.sums);
  require(!parts.empty(), "the problem can't be cut into so many parts");
  return parts;
}

/// What all have: an engine's plans, of each of its graphs.
class BuiltEngine : public BuiltKernel {
 public:
  BuiltEngine(const EngineDevice& device, const EnginePart& part, ConfiguredEngine& engine)
      : whole_(part.whole) {
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
    if (adds && plans_.size() < 2) return CUDNN_STATUS_NOT_SUPPORTED;
    return packs_.execute({{pointers.x, pointers.w, pointers.y, fused.bias, fused.z},
                           pointers.workspace,
                           handle,
                           plans_[adds ? 1 : 0].get()},
                          tensors);
  }
  cudnnStatus_t executeFused(cudnnHandle_t handle,
                             const ConvolutionPointers& pointers,
                             const BiasActivation& fused) const noexcept {
    return execute(handle, false, pointers, fused, whole_.addsZ == 0 ? 4 : 5);
  }
  /// Of the workspace, behind the engine's.
  const void* ownMemory(const ConvolutionPointers& pointers) const noexcept {
    return advance(pointers.workspace, roundUpToAlignment(engineBytes_));
  }

 private:
  Problem whole_;
  std::size_t engineBytes_ = 0;
  std::size_t workspaceBytes_ = 0;
  std::vector<BackendDescriptor> plans_;  ///< of the part's graphs
  mutable KeptPacks packs_;
};

/// Of tiles, mostly one.
class BuiltTiles final : public BuiltEngine {
 public:
  BuiltTiles(const EngineDevice& device, const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(device, part, engine), parts_(part.parts) {}

  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation* fused) const noexcept override {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    if (isFused(whole())) return executeFused(handle, pointers, *fused);
    for (const Part& part : parts_) {
      const ConvolutionPointers tile = pointersOf(part.offsets, whole(), pointers);
      const cudnnStatus_t status = execute(handle, adds(tile), tile);
      // What has been added can't be added again, whoever runs the call instead.
      if (status != CUDNN_STATUS_SUCCESS)
        return &part != &parts_.front() && adds(pointers) ? CUDNN_STATUS_EXECUTION_FAILED : status;
    }
    return CUDNN_STATUS_SUCCESS;
  }

 private:
  std::vector<Part> parts_;
};

class BuiltFolded final : public BuiltEngine {
 public:
  BuiltFolded(const EngineDevice& device, const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(device, part, engine), folding_(part.whole) {}

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
      : BuiltEngine(device, part, engine),
        parts_(part.parts),
        copies_(part.problem),
        conversions_(parts_.front().problem) {}

  /// The client's gradient is written last: until then nothing is lost.
  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation*) const noexcept override {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    const ConvolutionPointers wide = copies_.in(ownMemory(pointers), pointers);
    for (const Part& part : parts_) {
      cudnnStatus_t status =
          conversions_.widen(handle, pointersOf(part.offsets, whole(), pointers), wide);
      if (status == CUDNN_STATUS_SUCCESS) status = execute(handle, part.offsets.adds, wide);
      if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    return conversions_.roundW(handle, wide.w, pointers.beta, pointers.w);
  }

 private:
  std::vector<Part> parts_;
  CopiedTensors copies_;
  Conversions conversions_;
};

class BuiltBlocks final : public BuiltEngine {
 public:
  BuiltBlocks(const EngineDevice& device, const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(device, part, engine),
        blocks_(part.whole, engine.value().blocks),
        engineAdds_(part.engineAdds) {}

  /// The client's output is written last: until then nothing is lost.
  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation* fused) const noexcept override {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = cudnn().getStream(handle, &stream);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const ConvolutionPointers blocked = blockedOf(pointers);
    const bool engineAdds = engineAdds_ && adds(pointers);
    CopyList inputs;
    take(inputs, pointers, blocked, engineAdds ? Taken::kAll : Taken::kInputs);
    status = statusOf(copyAll(inputs, stream));
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (isFused(whole())) return executeFused(handle, blocked, *fused);
    status = execute(handle, engineAdds, blocked);
    return status == CUDNN_STATUS_SUCCESS ? give({}, blocked, pointers, stream) : status;
  }

  /// The filter is copied once. The output of each micro-batch is copied along with the inputs of
  /// the next.
  cudnnStatus_t enqueueRun(cudnnHandle_t handle,
                           Slices& slices,
                           int batch,
                           int count,
                           int* enqueued) const noexcept override {
    ConvolutionPointers pointers = slices.pointers();
    if (count == 1 || isFused(whole()) || !areFactorsForEngines(whole(), pointers) ||
        (engineAdds_ && (adds(pointers) || whole().operation == Operation::kBackwardFilter)))
      return BuiltKernel::enqueueRun(handle, slices, batch, count, enqueued);
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = cudnn().getStream(handle, &stream);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const ConvolutionPointers blocked = blockedOf(pointers);
    CopyList inputs;
    take(inputs, pointers, blocked, Taken::kInputs);
    status = statusOf(copyAll(inputs, stream));
    for (int i = 0; i < count && status == CUDNN_STATUS_SUCCESS; ++i) {
      status = execute(handle, false, blockedOf(pointers));
      if (status != CUDNN_STATUS_SUCCESS) return status;
      slices.next(batch);
      CopyList next;
      if (i + 1 < count) take(next, slices.pointers(), blocked, Taken::kSamples);
      status = give(next, blocked, pointers, stream);
      if (status == CUDNN_STATUS_SUCCESS) ++*enqueued;
      pointers = slices.pointers();
    }
    return status;
  }

 private:
  /// The call's pointers, with those of the blocks in its workspace.
  ConvolutionPointers blockedOf(const ConvolutionPointers& pointers) const noexcept {
    return blocks_.copies().in(ownMemory(pointers), pointers);
  }

  enum class Taken {
    kAll,  ///< the output too, where the engine adds to it
    kInputs,
    kSamples,  ///< the inputs but for the filter
  };
  void take(CopyList& copies,
            const ConvolutionPointers& from,
            const ConvolutionPointers& to,
            Taken taken) const noexcept {
    const auto isTaken = [&](const void* ConvolutionPointers::*tensor) {
      return taken == Taken::kAll || tensor != outputOf(whole().operation);
    };
    if (isTaken(&ConvolutionPointers::x)) copies.add(blocks_.xCopy(from.x, to.x), true);
    if (isTaken(&ConvolutionPointers::w) && taken != Taken::kSamples)
      copies.add(blocks_.wCopy(from.w, to.w), true);
    if (isTaken(&ConvolutionPointers::y) && blocks_.copies().hasY())
      copies.add(blocks_.yCopy(from.y, to.y), true);
  }

  /// The output behind other copies: where one of them fails, it has not been added to.
  cudnnStatus_t give(CopyList copies,
                     const ConvolutionPointers& from,
                     const ConvolutionPointers& to,
                     cudaStream_t stream) const noexcept {
    const bool isSum = adds(to);
    if (whole().operation == Operation::kBackwardData) {
      copies.add(blocks_.xCopy(to.x, from.x, isSum), false);
      if (blocks_.clearedBytes() > 0 && !isSum)
        if (const cudaError_t error =
                cudaMemsetAsync(const_cast<void*>(to.x), 0, blocks_.clearedBytes(), stream))
          return statusOf(error);
    } else if (whole().operation == Operation::kBackwardFilter) {
      copies.add(blocks_.wCopy(to.w, from.w, isSum), false);
    } else if (blocks_.copies().hasY()) {
      copies.add(blocks_.yCopy(to.y, from.y, isSum), false);
    }
    return statusOf(copyAll(copies, stream));
  }

  Blocking blocks_;
  bool engineAdds_;
};

}  // namespace

EnginePart::EnginePart(const Problem& all, const EngineConfiguration& value)
    : whole(all),
      parts(partsOf(all, value)),
      problem(parts.front().problem),
      engineAdds(!isFused(all)) {
  if (value.sums != 1) {
    problem = inFloat(problem);
    ownBytes = CopiedTensors(problem).bytes();
  } else if (value.folds != 1) {
    require(Folding::exists(all, value.folds), "so many columns can't be folded");
    const Folding folding(all);
    problem = folding.folded;
    ownBytes = folding.bytes;
  } else if (value.blocks != 0) {
    require(Blocking::exists(all, value.blocks), "so many pixels are no block");
    const Blocking blocks(all, value.blocks);
    problem = blocks.problem();
    ownBytes = blocks.copies().bytes();
    engineAdds = engineAdds && (isRounded(all.xType) ||
                                (all.operation == Operation::kForward && !blocks.copies().hasY()));
  }
}

std::vector<OperationGraph> makeGraphs(const EngineDevice& device,
                                       const EnginePart& part,
                                       Calls calls) {
  const Problem& problem = part.problem;
  const GraphTensors tensors(problem, kEngineAlignment);
  std::vector<OperationGraph> graphs;
  graphs.reserve(2);
  graphs.emplace_back(device, problem, tensors, 0, kEngineAlignment);
  if (part.engineAdds && (calls == Calls::kAll || part.addsUp()))
    graphs.emplace_back(device, problem, tensors, 1, kEngineAlignment);
  return graphs;
}

void completeGraphs(const EngineDevice& device,
                    const EnginePart& part,
                    std::vector<OperationGraph>& graphs) {
  if (graphs.size() == 1 && part.engineAdds)
    graphs.emplace_back(device, part.problem, 1, kEngineAlignment);
}

const BackendDescriptor& ConfiguredEngine::at(std::size_t graph) {
  if (choices_.size() < value_.knobs.size()) choices_ = knobChoicesOf(value_);
  while (configured_.size() <= graph)
    configured_.push_back(
        graphs_[configured_.size()].configuration(device_, value_.engine, choices_));
  return configured_[graph];
}

std::shared_ptr<const BuiltKernel> buildEngine(const EngineDevice& device,
                                               const EnginePart& part,
                                               ConfiguredEngine& engine) {
  const EngineConfiguration& value = engine.value();
  if (value.folds != 1) return std::make_shared<const BuiltFolded>(device, part, engine);
  if (value.sums != 1) return std::make_shared<const BuiltSums>(device, part, engine);
  if (value.blocks != 0) return std::make_shared<const BuiltBlocks>(device, part, engine);
  return std::make_shared<const BuiltTiles>(device, part, engine);
}

}  // namespace ucudnn

#endif
