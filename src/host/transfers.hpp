// The copies of one call between host and device, and the order of its three streams.
#pragma once

#include "host/staging.hpp"

namespace ucudnn {

/// Copies to the device on a stream of the lane, copies to the host on another, kernels on the
/// caller's. REQUIRES: the staging's lock is held, and it is prepared.
class Transfers {
 public:
  Transfers(Staging& staging, Lane& lane, cudaStream_t stream)
      : staging_(staging), lane_(lane), stream_(stream) {}

  /// Runs `enqueue`, which returns a status, between the work that `stream` has and what it gets
  /// next. With `waits`, because memory is pageable, the host waits for both. Throws Error.
  template <typename Enqueue>
  cudnnStatus_t run(bool waits, Enqueue enqueue) {
    const RelaxedCapture relaxed;
    if (waits) UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));  // earlier work may write there
    try {
      begin();
      const cudnnStatus_t status = enqueue();
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

  char* arena() const noexcept { return lane_.arena(); }
  cudaStream_t stream() const noexcept { return stream_; }
  cudaStream_t reading() const noexcept { return lane_.reading(); }
  cudaStream_t writing() const noexcept { return lane_.writing(); }

  /// What happens to a slot. `slot` is any number that the caller gives to it.
  enum EventOf : std::size_t { kFilled, kUsed, kDrained, kEventKinds };
  /// Throw Error.
  void note(EventOf kind, std::size_t slot, cudaStream_t stream);
  void await(EventOf kind, std::size_t slot, cudaStream_t stream);
  /// What comes next in `behind` waits for what `stream` has.
  void order(cudaStream_t stream, cudaStream_t behind);

  /// From the caller's tensor to a slot, and back. Throw Error.
  void copyIn(const Rows& rows, const char* tensor, Place place);
  void copyOut(const Rows& rows, char* tensor, Place place);
  /// Rows from slot to slot, on the caller's stream. Throws Error.
  void copyWithin(const Rows& rows);

 private:
  /// Event 0 orders streams, the others are of slots.
  cudaEvent_t event(EventOf kind, std::size_t slot) {
    return lane_.event(1 + slot * kEventKinds + kind);
  }
  void begin();
  void end();
  void abandon() noexcept;

  static constexpr int kAttempts = 2;

  Staging& staging_;
  Lane& lane_;
  const cudaStream_t stream_;
};

/// Runs the steps of a call: `load`, `compute`, which returns a status, and `store` enqueue one
/// each. A part is written back behind the next step's kernels, so that a host that moves pageable
/// memory has enqueued them before it waits; but before them if `needsSlotOf(former, step)`. Ends
/// with the first status that is no success.
template <typename Steps, typename Load, typename Compute, typename Store, typename NeedsSlotOf>
cudnnStatus_t runSteps(
    const Steps& steps, Load load, Compute compute, Store store, NeedsSlotOf needsSlotOf) {
  const typename Steps::value_type* unwritten = nullptr;
  for (const auto& step : steps) {
    if (unwritten != nullptr && needsSlotOf(*unwritten, step)) {
      store(*unwritten);
      unwritten = nullptr;
    }
    load(step);
    const cudnnStatus_t status = compute(step);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (unwritten != nullptr) store(*unwritten);
    unwritten = &step;
  }
  if (unwritten != nullptr) store(*unwritten);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace ucudnn
