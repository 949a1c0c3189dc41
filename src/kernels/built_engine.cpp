#include "kernels/built_engine.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>
#include <optional>

#include "kernels/engine_calls.hpp"
#include "kernels/folds.hpp"
#include "kernels/gradient_sum.hpp"
#include "kernels/graph_operations.hpp"
#include "kernels/kept_packs.hpp"
#include "kernels/pixel_copies.hpp"
#include "kernels/slices.hpp"
#include "kernels/sums.hpp"

namespace ucudnn {
namespace {

bool isFused(const Problem& problem) noexcept {
  return problem.operation == Operation::kBiasActivationForward;
}

/// The base of all built engines: an engine's plans, one for each of its graphs.
class BuiltEngine : public BuiltKernel {
 public:
  BuiltEngine(const EnginePart& part, ConfiguredEngine& engine) : whole_(part.whole) {
    for (std::size_t i = 0; i < engine.graphs(); ++i) {
      plans_.push_back(engine.takePlan(i));
      engineBytes_ = std::max(engineBytes_, workspaceOfPlan(plans_.back()));
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
  /// The stream of a call whose factors engines take.
  cudnnStatus_t findStream(cudnnHandle_t handle,
                           const ConvolutionPointers& pointers,
                           cudaStream_t* stream) const noexcept {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    return cudnn().getStream(handle, stream);
  }
  /// The workspace behind the engine's.
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

/// Runs tiles, mostly a single one.
class BuiltTiles final : public BuiltEngine {
 public:
  BuiltTiles(const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(part, engine), parts_(part.parts) {}

  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation* fused) const noexcept override {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    if (isFused(whole())) return executeFused(handle, pointers, *fused);
    for (const Part& part : parts_) {
      const ConvolutionPointers tile = pointersOf(part.offsets, whole(), pointers);
      const cudnnStatus_t status = execute(handle, adds(tile), tile);
      // Earlier tiles have been added to the output. If another kernel ran the call now, it would
      // add them a second time.
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
  BuiltFolded(const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(part, engine), folding_(part.whole) {}

  /// Computes the wide gradient and copies the caller's from it. To add, it first copies the
  /// caller's gradient into the wide one.
  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation*) const noexcept override {
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = findStream(handle, pointers, &stream);
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
  BuiltSums(const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(part, engine),
        parts_(part.parts),
        copies_(part.problem),
        inputs_(parts_.front().problem),
        gradient_(parts_.front().problem) {}

  /// The client's gradient is written last: until then nothing is lost.
  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation*) const noexcept override {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    const ConvolutionPointers wide = copies_.in(ownMemory(pointers), pointers);
    for (const Part& part : parts_) {
      cudnnStatus_t status =
          inputs_.copy(handle, pointersOf(part.offsets, whole(), pointers), wide);
      if (status == CUDNN_STATUS_SUCCESS) status = execute(handle, part.offsets.adds, wide);
      if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    return gradient_.round(handle, wide.w, pointers.beta, pointers.w);
  }

 private:
  std::vector<Part> parts_;
  CopiedTensors copies_;
  WideInputs inputs_;
  WideFilter gradient_;
};

/// Computes parts of the batch in the caller's type, each in the place of the last.
class BuiltSplits final : public BuiltEngine {
 public:
  BuiltSplits(const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(part, engine),
        parts_(part.parts),
        sum_(part.problem.wBytes(), part.problem),
        gradient_(part.problem) {}

  /// The client's gradient is written last: until then nothing is lost.
  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation*) const noexcept override {
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = findStream(handle, pointers, &stream);
    const void* const memory = ownMemory(pointers);
    for (const Part& part : parts_) {
      ConvolutionPointers own = pointersOf(part.offsets, whole(), pointers);
      own.w = memory;
      if (status == CUDNN_STATUS_SUCCESS) status = execute(handle, false, own);
      if (status != CUDNN_STATUS_SUCCESS) return status;
      CopyList added;
      added.add(sum_.of(memory, memory, part.offsets.adds));
      status = statusOf(copyAll(added, stream));
    }
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return gradient_.round(handle, sum_.sums(memory), pointers.beta, pointers.w);
  }

 private:
  std::vector<Part> parts_;
  GradientSum sum_;
  WideFilter gradient_;
};

/// Runs on copies of the call's tensors, one band after another.
class BuiltCopies final : public BuiltEngine {
 public:
  BuiltCopies(const EnginePart& part, ConfiguredEngine& engine)
      : BuiltEngine(part, engine),
        copying_(copyingOf(part.whole, engine.value())),
        engineAdds_(part.engineAdds),
        addsBands_(part.addsUp) {
    if (sumsGradients(part.whole, engine.value()) && isRounded(part.whole.wType))
      sum_.emplace(copying_.copies().bytes(), copying_.problem());
  }

  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation* fused) const noexcept override {
    if (!areFactorsForEngines(whole(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    int enqueued = 0;
    return enqueueAll(
        handle, pointers, fused, 1, [&] { return pointers; }, &enqueued);
  }

  /// The filter is copied once.
  cudnnStatus_t enqueueRun(cudnnHandle_t handle,
                           Slices& slices,
                           int batch,
                           int count,
                           int* enqueued) const noexcept override {
    const ConvolutionPointers pointers = slices.pointers();
    if (count == 1 || isFused(whole()) || sum_ || !areFactorsForEngines(whole(), pointers) ||
        (engineAdds_ && (adds(pointers) || isGradient())))
      return BuiltKernel::enqueueRun(handle, slices, batch, count, enqueued);
    const auto next = [&] {
      slices.next(batch);
      return slices.pointers();
    };
    return enqueueAll(handle, pointers, nullptr, count, next, enqueued);
  }

 private:
  /// Whether the output is the filter.
  bool isGradient() const noexcept { return whole().operation == Operation::kBackwardFilter; }
  bool isOutput(const void* ConvolutionPointers::*tensor) const noexcept {
    return tensor == outputOf(whole().operation);
  }
  /// Whether the engine adds to the call's output, which then is copied for it. Bands that it adds
  /// up are added to the output by a copy.
  bool engineAddsTo(const ConvolutionPointers& pointers) const noexcept {
    return engineAdds_ && !addsBands_ && adds(pointers);
  }
  /// The call's pointers, with those of the copies in its workspace.
  ConvolutionPointers copiesOf(const ConvolutionPointers& pointers) const noexcept {
    const auto output = isGradient() ? nullptr : outputOf(whole().operation);
    return copying_.copies().in(ownMemory(pointers), pointers, output);
  }

  /// Enqueues micro-batches, which `next` steps over. The output of each band is copied, or added
  /// up, along with the inputs of the next, unless an engine adds to it. The client's output is
  /// written last: until then nothing is lost.
  template <typename Next>
  cudnnStatus_t enqueueAll(cudnnHandle_t handle,
                           ConvolutionPointers pointers,
                           const BiasActivation* fused,
                           int count,
                           Next next,
                           int* enqueued) const noexcept {
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = cudnn().getStream(handle, &stream);
    const ConvolutionPointers copies = copiesOf(pointers);
    const bool engineAdds = engineAddsTo(pointers);
    if (status == CUDNN_STATUS_SUCCESS) status = begin(pointers, copies, stream);
    const int bands = copying_.bands();
    for (int i = 0; i < count * bands && status == CUDNN_STATUS_SUCCESS; ++i) {
      const int band = i % bands, nextBand = (i + 1) % bands;
      status = execute(handle, pointers, fused, band);
      if (status != CUDNN_STATUS_SUCCESS) return unlessAdded(status, pointers, band);
      const ConvolutionPointers done = pointers;
      if (nextBand == 0) pointers = next();
      const bool isLast = i + 1 == count * bands;
      CopyList moved;
      if (sum_) moved.add(sum_->of(copies.w, ownMemory(done), band > 0));
      if (!isLast && !engineAdds) take(moved, pointers, copies, nextBand, false);
      if (!isGradient() || nextBand == 0)
        status = give(moved, copies, done, band, stream);
      else
        status = statusOf(copyAll(moved, stream));
      if (status != CUDNN_STATUS_SUCCESS) return unlessAdded(status, done, band);
      if (nextBand == 0) ++*enqueued;
      if (isLast || !engineAdds) continue;
      CopyList inputs;
      take(inputs, pointers, copies, nextBand, true);
      status = statusOf(copyAll(inputs, stream));
      if (status != CUDNN_STATUS_SUCCESS) return unlessAdded(status, pointers, nextBand);
    }
    return status;
  }

  /// EXECUTION_FAILED if earlier bands have been added to the output: they can't be added again,
  /// whoever runs the call instead.
  cudnnStatus_t unlessAdded(cudnnStatus_t status,
                            const ConvolutionPointers& pointers,
                            int band) const noexcept {
    const bool isAdded = band > 0 && !isGradient() && adds(pointers);
    return isAdded ? CUDNN_STATUS_EXECUTION_FAILED : status;
  }

  /// Copies all that the first band reads: also the filter, or its gradient if the engine adds to
  /// it.
  cudnnStatus_t begin(const ConvolutionPointers& from,
                      const ConvolutionPointers& to,
                      cudaStream_t stream) const noexcept {
    const bool engineAdds = engineAddsTo(from), takesFilter = !isGradient() || engineAdds;
    cudaError_t error = cudaSuccess;
    if (takesFilter && copying_.clearedFilterBytes() > 0)
      error = cudaMemsetAsync(const_cast<void*>(to.w), 0, copying_.clearedFilterBytes(), stream);
    CopyList list;
    take(list, from, to, 0, engineAdds);
    if (takesFilter) list.add(copying_.wCopy(from.w, to.w), true);
    return statusOf(error == cudaSuccess ? copyAll(list, stream) : error);
  }

  /// A band's inputs except the filter, and the output if an engine adds to it.
  void take(CopyList& list,
            const ConvolutionPointers& from,
            const ConvolutionPointers& to,
            int band,
            bool engineAdds) const noexcept {
    if (!isOutput(&ConvolutionPointers::x) || engineAdds)
      list.add(copying_.xCopy(band, from.x, to.x), true);
    if (copying_.copies().hasY() && (!isOutput(&ConvolutionPointers::y) || engineAdds))
      list.add(copying_.yCopy(band, from.y, to.y), true);
  }

  cudnnStatus_t execute(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation* fused,
                        int band) const noexcept {
    // If y is not copied, its pointer is into the call's y.
    const ConvolutionPointers copies = copiesOf(pointers);
    if (isFused(whole())) return executeFused(handle, copies, *fused);
    const bool isSum = addsBands_ && band > 0;
    return BuiltEngine::execute(handle, isSum || engineAddsTo(pointers), copies);
  }

  /// Copies the output behind the copies in `list`: if one of those fails, the output has not been
  /// added to.
  cudnnStatus_t give(CopyList list,
                     const ConvolutionPointers& from,
                     const ConvolutionPointers& to,
                     int band,
                     cudaStream_t stream) const noexcept {
    // The copy adds floats, and gradients that are summed in float. For other types it only leaves
    // alone the numbers that no block has.
    const bool isAdded =
        !isFused(whole()) && adds(to) && (isRounded(whole().xType) || !engineAddsTo(to));
    if (isOutput(&ConvolutionPointers::x)) {
      list.add(copying_.xCopy(band, to.x, from.x, isAdded), false);
      if (copying_.clearedBytes() > 0 && !adds(to) && band == 0)
        if (const cudaError_t error =
                cudaMemsetAsync(const_cast<void*>(to.x), 0, copying_.clearedBytes(), stream))
          return statusOf(error);
    } else if (isGradient()) {
      FilterCopy given = copying_.wCopy(to.w, from.w, isAdded);
      if (sum_) {  // the copies in the list make it
        if (const cudaError_t error = copyAll(list, stream)) return statusOf(error);
        list = {};
        given = sum_->rounded(given, ownMemory(to));
      }
      list.add(given, false);
    } else if (copying_.copies().hasY()) {
      list.add(copying_.yCopy(band, to.y, from.y, isAdded), false);
    }
    return statusOf(copyAll(list, stream));
  }

  Copying copying_;
  bool engineAdds_, addsBands_;
  std::optional<GradientSum> sum_;
};

}  // namespace

std::vector<OperationGraph> makeGraphs(const EngineDevice& device,
                                       const EnginePart& part,
                                       Calls calls) {
  const Problem& problem = part.problem;
  const GraphTensors tensors(problem, kEngineAlignment);
  std::vector<OperationGraph> graphs;
  graphs.reserve(2);
  graphs.emplace_back(device, problem, tensors, 0, kEngineAlignment);
  if (part.engineAdds && (calls == Calls::kAll || part.addsUp))
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

std::size_t ConfiguredEngine::workspaceBytes(std::size_t graph) {
  if (tellsWorkspaceBeforePlans()) return workspaceOf(at(graph));
  auto asked = asked_.find(graph);
  if (asked == asked_.end()) {
    auto plan = makeExecutionPlan(device_, at(graph));
    const std::size_t bytes = workspaceOfPlan(plan);
    asked = asked_.emplace(graph, Asked{std::move(plan), bytes}).first;
  }
  return asked->second.bytes;
}

BackendDescriptor ConfiguredEngine::takePlan(std::size_t graph) {
  if (const auto asked = asked_.find(graph); asked != asked_.end() && asked->second.plan)
    return std::move(asked->second.plan);
  return makeExecutionPlan(device_, at(graph));
}

std::shared_ptr<const BuiltKernel> buildEngine(const EnginePart& part, ConfiguredEngine& engine) {
  const EngineConfiguration& value = engine.value();
  if (value.splits != 1) return std::make_shared<const BuiltSplits>(part, engine);
  if (value.sums != 1) return std::make_shared<const BuiltSums>(part, engine);
  if (value.blocks != 0) return std::make_shared<const BuiltCopies>(part, engine);
  if (value.folds != 1) return std::make_shared<const BuiltFolded>(part, engine);
  return std::make_shared<const BuiltTiles>(part, engine);
}

}  // namespace ucudnn

#endif
