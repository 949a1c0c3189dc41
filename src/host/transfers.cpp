#include "host/transfers.hpp"

namespace ucudnn {
namespace {

void copyRows(char* to,
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

}  // namespace

void Transfers::note(EventOf kind, std::size_t slot, cudaStream_t stream) {
  UCUDNN_CHECK_CUDA(cudaEventRecord(event(kind, slot), stream));
}

void Transfers::await(EventOf kind, std::size_t slot, cudaStream_t stream) {
  UCUDNN_CHECK_CUDA(cudaStreamWaitEvent(stream, event(kind, slot), 0));
}

void Transfers::order(cudaStream_t stream, cudaStream_t behind) {
  UCUDNN_CHECK_CUDA(cudaEventRecord(lane_.event(0), stream));
  UCUDNN_CHECK_CUDA(cudaStreamWaitEvent(behind, lane_.event(0), 0));
}

void Transfers::begin() {
  lane_.waitForLastUse(stream_);
  order(stream_, reading());
  order(stream_, writing());
}

/// Both copy streams end in the caller's.
void Transfers::end() {
  order(reading(), stream_);
  order(writing(), stream_);
  lane_.noteUse(stream_);
}

void Transfers::abandon() noexcept {
  staging_.bounceOut().forget();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    try {
      return end();
    } catch (const std::exception&) {  // a capture can't end while streams are apart
    }
  }
  // Nothing may run beside what comes next.
  for (const cudaStream_t stream : {reading(), writing(), stream_})
    static_cast<void>(cudaStreamSynchronize(stream));
}

void Transfers::copyIn(const Rows& rows, const char* tensor, Place place) {
  if (place == Place::kPageable)
    return staging_.bounceIn().toDevice(arena(), tensor, rows, reading());
  copyRows(arena() + rows.slot,
           rows.slotPitch,
           tensor + rows.tensor,
           rows.tensorPitch,
           rows,
           place == Place::kDevice ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice,
           reading());
}

void Transfers::copyOut(const Rows& rows, char* tensor, Place place) {
  if (place == Place::kPageable)
    return staging_.bounceOut().toHost(tensor, arena(), rows, writing());
  copyRows(tensor + rows.tensor,
           rows.tensorPitch,
           arena() + rows.slot,
           rows.slotPitch,
           rows,
           place == Place::kDevice ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost,
           writing());
}

void Transfers::copyWithin(const Rows& rows) {
  copyRows(arena() + rows.slot,
           rows.slotPitch,
           arena() + rows.tensor,
           rows.tensorPitch,
           rows,
           cudaMemcpyDeviceToDevice,
           stream_);
}

}  // namespace ucudnn
