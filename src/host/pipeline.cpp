#include "host/pipeline.hpp"

#include <algorithm>

#include "host/transfers.hpp"
#include "support/alignment.hpp"

namespace ucudnn {
namespace {

/// On the device.
ConvolutionPointers pointersOf(const HostPlan& plan,
                               const HostPlan::Step& step,
                               const ConvolutionCall& call,
                               const Lane& lane) noexcept {
  ConvolutionPointers pointers = call.pointers;
  const auto slot = [&](Tensor tensor, const void* whole) {
    return plan.slots.isStaged(tensor)
               ? lane.arena() + plan.slots.offset(tensor, step.visit.uses[tensor].slot)
               : whole;
  };
  pointers.x = slot(kTensorX, pointers.x);
  pointers.w = slot(kTensorW, pointers.w);
  pointers.y = slot(kTensorY, pointers.y);
  pointers.workspace = lane.arena() + plan.division.slotBytes;
  pointers.workspaceBytes = plan.division.workspaceBytes;
  return pointers;
}

/// One call under way.
class HostRun {
 public:
  HostRun(const HostPlan& plan,
          const ConvolutionCall& call,
          cudaStream_t stream,
          Staging& staging,
          Lane& lane,
          const RunTile& runTile)
      : plan_(plan),
        call_(call),
        transfers_(staging, lane, stream),
        lane_(lane),
        runTile_(runTile),
        output_(outputTensorOf(plan.whole.operation)) {}

  cudnnStatus_t run() {
    return transfers_.run(plan_.operands.isPageable(), [&] { return runTiles(); });
  }

  void loadFirst() {
    const RelaxedCapture relaxed;
    const auto wait = [&] { UCUDNN_CHECK_CUDA(cudaStreamSynchronize(transfers_.stream())); };
    wait();
    static_cast<void>(transfers_.run(false, [&] {
      useNoSlot();
      load(plan_.steps.front());
      return CUDNN_STATUS_SUCCESS;
    }));
    wait();
  }

 private:
  static std::size_t numberOf(Tensor tensor, int slot) noexcept {
    return static_cast<std::size_t>(slot) * kTensors + tensor;
  }

  cudnnStatus_t runTiles() {
    useNoSlot();
    loadBias();
    using Step = HostPlan::Step;
    return runSteps(
        plan_.steps,
        [this](const Step& step) { load(step); },
        [this](const Step& step) { return compute(step); },
        [this](const Step& step) {
          if (!step.store.empty()) store(step);
        },
        [this](const Step& former, const Step& step) {
          return slotOf(former, output_) == slotOf(step, output_);
        });
  }

  void useNoSlot() {
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY})
      inUse_[tensor].assign(static_cast<std::size_t>(plan_.tiles.tiling().slots[tensor]), false);
  }

  static int slotOf(const HostPlan::Step& step, Tensor tensor) noexcept {
    return step.visit.uses[tensor].slot;
  }

  /// The caller's tensor.
  const char* whole(Tensor tensor, bool isZ = false) const noexcept {
    const void* const pointer = isZ                  ? call_.fused->z
                                : tensor == kTensorX ? call_.pointers.x
                                : tensor == kTensorW ? call_.pointers.w
                                                     : call_.pointers.y;
    return static_cast<const char*>(pointer);
  }
  Place placeOf(Tensor tensor, bool isZ = false) const noexcept {
    return isZ ? *plan_.operands.z : plan_.operands.places[tensor];
  }

  void loadBias() {
    if (call_.fused == nullptr) return;
    bias_ = call_.fused->bias;
    if (HostPlan::biasBytes(plan_.whole, plan_.operands) == 0) return;
    Rows rows;
    rows.slot = plan_.division.bytes();
    rows.width = static_cast<std::size_t>(plan_.whole.ySizes[1]) * plan_.operands.biasElementBytes;
    transfers_.copyIn(rows, static_cast<const char*>(bias_), *plan_.operands.bias);
    bias_ = lane_.arena() + rows.slot;
    transfers_.order(transfers_.reading(), transfers_.stream());
  }

  void load(const HostPlan::Step& step) {
    for (const HostPlan::Load& load : step.loads) {
      const auto slot = static_cast<std::size_t>(load.slot);
      if (inUse_[load.tensor][slot])
        transfers_.await(load.tensor == output_ ? Transfers::kDrained : Transfers::kUsed,
                         numberOf(load.tensor, load.slot),
                         transfers_.reading());
      for (const Rows& rows : load.rows)
        transfers_.copyIn(rows, whole(load.tensor, load.isZ), placeOf(load.tensor, load.isZ));
      transfers_.note(Transfers::kFilled, numberOf(load.tensor, load.slot), transfers_.reading());
    }
  }

  cudnnStatus_t compute(const HostPlan::Step& step) {
    copyHalos(step);
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY}) {
      const int slot = slotOf(step, tensor);
      if (!plan_.slots.isStaged(tensor) || !step.visit.uses[tensor].isNew) continue;
      if (tensor == output_ && inUse_[tensor][static_cast<std::size_t>(slot)])
        transfers_.await(Transfers::kDrained, numberOf(tensor, slot), transfers_.stream());
      const bool isLoaded = std::any_of(
          step.loads.begin(), step.loads.end(), [&](auto& load) { return load.tensor == tensor; });
      if (isLoaded)
        transfers_.await(Transfers::kFilled, numberOf(tensor, slot), transfers_.stream());
      inUse_[tensor][static_cast<std::size_t>(slot)] = true;
    }
    fillZeros(step);
    const cudnnStatus_t status = runTile_(tileCall(step));
    if (status != CUDNN_STATUS_SUCCESS) return status;
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY})
      if (plan_.slots.isStaged(tensor))
        transfers_.note(
            Transfers::kUsed, numberOf(tensor, slotOf(step, tensor)), transfers_.stream());
    return status;
  }

  /// Copies shared rows from the neighbour's slot. Comes before the stream waits for the rest of
  /// the part, so that the neighbour's slot is soon free. It is on the stream of the kernels:
  /// multiprocessors copy within the device, so on a stream of copies these would wait for the
  /// kernels under way, and other copies would wait for them.
  void copyHalos(const HostPlan::Step& step) {
    for (const HostPlan::Load& load : step.loads) {
      if (load.halo.empty()) continue;
      for (const Rows& rows : load.halo) transfers_.copyWithin(rows);
      transfers_.note(Transfers::kUsed,
                      numberOf(load.tensor, step.visit.uses[load.tensor].haloSlot),
                      transfers_.stream());
    }
  }

  void fillZeros(const HostPlan::Step& step) {
    char* const arena = lane_.arena();
    for (const Rows& rows : step.zeros) {
      if (rows.height == 1)
        UCUDNN_CHECK_CUDA(cudaMemsetAsync(arena + rows.slot, 0, rows.width, transfers_.stream()));
      else
        UCUDNN_CHECK_CUDA(cudaMemset2DAsync(
            arena + rows.slot, rows.slotPitch, 0, rows.width, rows.height, transfers_.stream()));
    }
  }

  ConvolutionCall tileCall(const HostPlan::Step& step) {
    const HostPlan::Shape& shape = plan_.shapes[step.shape];
    ConvolutionCall call = call_;
    call.descriptors = shape.descriptors->get();
    call.pointers = pointersOf(plan_, step, call_, lane_);
    if (step.adds) call.pointers.beta = Factor::one(plan_.whole).get();
    if (call_.fused == nullptr) return call;
    fused_ = *call_.fused;
    if (shape.bias) fused_.biasDescriptor = shape.bias.get();
    fused_.bias = advance(bias_, step.biasOffset * plan_.operands.biasElementBytes);
    fused_.zDescriptor = call.descriptors.y;
    if (!plan_.operands.z) fused_.z = call.pointers.y;  // which is not read
    if (plan_.slots.hasZ())
      fused_.z = lane_.arena() + plan_.slots.offsetOfZ(slotOf(step, kTensorY));
    call.fused = &fused_;
    return call;
  }

  void store(const HostPlan::Step& step) {
    const int slot = slotOf(step, output_);
    char* const tensor = const_cast<char*>(whole(output_));
    const Place place = placeOf(output_);
    transfers_.await(Transfers::kUsed, numberOf(output_, slot), transfers_.writing());
    for (const Rows& rows : step.store) transfers_.copyOut(rows, tensor, place);
    transfers_.note(Transfers::kDrained, numberOf(output_, slot), transfers_.writing());
  }

  const HostPlan& plan_;
  const ConvolutionCall& call_;
  Transfers transfers_;
  Lane& lane_;
  const RunTile& runTile_;
  const Tensor output_;
  std::array<std::vector<bool>, kTensors> inUse_;  ///< slots that this call has used
  const void* bias_ = nullptr;                     ///< on the device
  BiasActivation fused_;                           ///< of the tile under way
};

}  // namespace

void loadFirstTile(const HostPlan& plan,
                   const ConvolutionCall& call,
                   cudaStream_t stream,
                   Staging& staging) {
  const RunTile none;
  HostRun(plan, call, stream, staging, staging.lane(), none).loadFirst();
}

ConvolutionPointers firstTile(const HostPlan& plan,
                              const ConvolutionCall& call,
                              Staging& staging) noexcept {
  return pointersOf(plan, plan.steps.front(), call, staging.lane());
}

cudnnStatus_t runOnHostTensors(const HostPlan& plan,
                               const ConvolutionCall& call,
                               cudaStream_t stream,
                               Staging& staging,
                               Lane& lane,
                               const RunTile& runTile) {
  return HostRun(plan, call, stream, staging, lane, runTile).run();
}

}  // namespace ucudnn
