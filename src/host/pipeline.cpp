#include "host/pipeline.hpp"

#include <algorithm>

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
        stream_(stream),
        staging_(staging),
        lane_(lane),
        runTile_(runTile),
        output_(outputTensorOf(plan.whole.operation)) {}

  cudnnStatus_t run() {
    const bool waits = plan_.operands.isPageable();
    const RelaxedCapture relaxed;
    if (waits) UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));  // earlier work may write there
    try {
      begin();
      const cudnnStatus_t status = runSteps();
      if (status != CUDNN_STATUS_SUCCESS) {
        abandon();
        return status;
      }
      if (waits) staging_.bounceOut().finish();
      end();
      return status;
    } catch (...) {
      abandon();
      throw;
    }
  }

  void loadFirst() {
    const RelaxedCapture relaxed;
    UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));
    try {
      begin();
      useNoSlot();
      load(plan_.steps.front());
      end();
    } catch (...) {
      abandon();
      throw;
    }
    UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

 private:
  static constexpr int kAttempts = 2;
  enum EventOf : std::size_t { kFilled, kUsed, kDrained, kEventKinds };

  /// Events beyond those of slots order streams.
  cudaEvent_t event(EventOf kind, Tensor tensor, int slot) {
    return lane_.event(1 + (static_cast<std::size_t>(slot) * kTensors + tensor) * kEventKinds +
                       kind);
  }
  void record(cudaEvent_t event, cudaStream_t stream) {
    UCUDNN_CHECK_CUDA(cudaEventRecord(event, stream));
  }
  void wait(cudaStream_t stream, cudaEvent_t event) {
    UCUDNN_CHECK_CUDA(cudaStreamWaitEvent(stream, event, 0));
  }

  void begin() {
    lane_.waitForLastUse(stream_);
    record(lane_.event(0), stream_);
    wait(lane_.reading(), lane_.event(0));
    wait(lane_.writing(), lane_.event(0));
  }

  /// Both copy streams end in the caller's.
  void end() {
    for (const cudaStream_t stream : {lane_.reading(), lane_.writing()}) {
      record(lane_.event(0), stream);
      wait(stream_, lane_.event(0));
    }
    lane_.noteUse(stream_);
  }

  void abandon() noexcept {
    staging_.bounceOut().forget();
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      try {
        return end();
      } catch (const std::exception&) {  // a capture can't end while streams are apart
      }
    }
    // Nothing may run beside what comes next.
    for (const cudaStream_t stream : {lane_.reading(), lane_.writing(), stream_})
      static_cast<void>(cudaStreamSynchronize(stream));
  }

  /// A part is written back behind the next tile's kernels, so that a host that moves pageable
  /// memory has enqueued them before it waits.
  cudnnStatus_t runSteps() {
    useNoSlot();
    loadBias();
    const HostPlan::Step* unwritten = nullptr;
    for (const HostPlan::Step& step : plan_.steps) {
      if (unwritten != nullptr && slotOf(*unwritten, output_) == slotOf(step, output_)) {
        store(*unwritten);
        unwritten = nullptr;
      }
      load(step);
      const cudnnStatus_t status = compute(step);
      if (status != CUDNN_STATUS_SUCCESS) return status;
      if (unwritten != nullptr) store(*unwritten);
      unwritten = step.store.empty() ? nullptr : &step;
    }
    if (unwritten != nullptr) store(*unwritten);
    return CUDNN_STATUS_SUCCESS;
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
    copyIn(rows, static_cast<const char*>(bias_), *plan_.operands.bias);
    bias_ = lane_.arena() + rows.slot;
    record(lane_.event(0), lane_.reading());
    wait(stream_, lane_.event(0));
  }

  void load(const HostPlan::Step& step) {
    for (const HostPlan::Load& load : step.loads) {
      const auto slot = static_cast<std::size_t>(load.slot);
      if (inUse_[load.tensor][slot])
        wait(lane_.reading(),
             event(load.tensor == output_ ? kDrained : kUsed, load.tensor, load.slot));
      for (const Rows& rows : load.rows)
        copyIn(rows, whole(load.tensor, load.isZ), placeOf(load.tensor, load.isZ));
      record(event(kFilled, load.tensor, load.slot), lane_.reading());
    }
  }

  void copyIn(const Rows& rows, const char* tensor, Place place) {
    if (place == Place::kPageable)
      return staging_.bounceIn().toDevice(lane_.arena(), tensor, rows, lane_.reading());
    copy(lane_.arena() + rows.slot,
         rows.slotPitch,
         tensor + rows.tensor,
         rows.tensorPitch,
         rows,
         place == Place::kDevice ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice,
         lane_.reading());
  }

  static void copy(char* to,
                   std::size_t toPitch,
                   const char* from,
                   std::size_t fromPitch,
                   const Rows& rows,
                   cudaMemcpyKind kind,
                   cudaStream_t stream) {
    if (rows.height == 1)
      UCUDNN_CHECK_CUDA(cudaMemcpyAsync(to, from, rows.width, kind, stream));
    else
      UCUDNN_CHECK_CUDA(
          cudaMemcpy2DAsync(to, toPitch, from, fromPitch, rows.width, rows.height, kind, stream));
  }

  cudnnStatus_t compute(const HostPlan::Step& step) {
    copyHalos(step);
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY}) {
      const int slot = slotOf(step, tensor);
      if (!plan_.slots.isStaged(tensor) || !step.visit.uses[tensor].isNew) continue;
      if (tensor == output_ && inUse_[tensor][static_cast<std::size_t>(slot)])
        wait(stream_, event(kDrained, tensor, slot));
      const bool isLoaded = std::any_of(
          step.loads.begin(), step.loads.end(), [&](auto& load) { return load.tensor == tensor; });
      if (isLoaded) wait(stream_, event(kFilled, tensor, slot));
      inUse_[tensor][static_cast<std::size_t>(slot)] = true;
    }
    fillZeros(step);
    const cudnnStatus_t status = runTile_(tileCall(step));
    if (status != CUDNN_STATUS_SUCCESS) return status;
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY})
      if (plan_.slots.isStaged(tensor)) record(event(kUsed, tensor, slotOf(step, tensor)), stream_);
    return status;
  }

  /// Before the stream waits for the rest of the part, so that the neighbour's slot is soon free.
  /// On a stream of copies they would wait for the kernels under way, and copies would wait for
  /// them: within the device multiprocessors copy.
  void copyHalos(const HostPlan::Step& step) {
    char* const arena = lane_.arena();
    for (const HostPlan::Load& load : step.loads) {
      if (load.halo.empty()) continue;
      for (const Rows& rows : load.halo)
        copy(arena + rows.slot,
             rows.slotPitch,
             arena + rows.tensor,
             rows.tensorPitch,
             rows,
             cudaMemcpyDeviceToDevice,
             stream_);
      record(event(kUsed, load.tensor, step.visit.uses[load.tensor].haloSlot), stream_);
    }
  }

  void fillZeros(const HostPlan::Step& step) {
    char* const arena = lane_.arena();
    for (const Rows& rows : step.zeros) {
      if (rows.height == 1)
        UCUDNN_CHECK_CUDA(cudaMemsetAsync(arena + rows.slot, 0, rows.width, stream_));
      else
        UCUDNN_CHECK_CUDA(cudaMemset2DAsync(
            arena + rows.slot, rows.slotPitch, 0, rows.width, rows.height, stream_));
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
    wait(lane_.writing(), event(kUsed, output_, slot));
    for (const Rows& rows : step.store) {
      if (place == Place::kPageable)
        staging_.bounceOut().toHost(tensor, lane_.arena(), rows, lane_.writing());
      else
        copy(tensor + rows.tensor,
             rows.tensorPitch,
             lane_.arena() + rows.slot,
             rows.slotPitch,
             rows,
             place == Place::kDevice ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost,
             lane_.writing());
    }
    record(event(kDrained, output_, slot), lane_.writing());
  }

  const HostPlan& plan_;
  const ConvolutionCall& call_;
  const cudaStream_t stream_;
  Staging& staging_;
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
