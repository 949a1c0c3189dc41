#include "context/speed_check.hpp"

#include <cstddef>
#include <exception>

#include "cuda/error.hpp"

namespace ucudnn {

SpeedCheck::Next SpeedCheck::next() noexcept {
  if (failed_ || isOver_) return Next::kOver;
  const std::size_t calls = events_.size() / 2;
  if (calls < std::size_t{2} * kCalls) return calls % 2 == 0 ? Next::kPlan : Next::kOwn;
  if (cudaPeekAtLastError() != cudaSuccess) return Next::kWait;  // an error for the client to find
  const cudaError_t error = cudaEventQuery(events_.back().get());
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  if (error == cudaErrorNotReady) return Next::kWait;
  if (error == cudaSuccess)
    addUp();
  else
    failed_ = true;
  return Next::kOver;
}

bool SpeedCheck::record(cudaStream_t stream) noexcept {
  try {
    events_.push_back(makeEvent());
    failed_ = cudaEventRecord(events_.back().get(), stream) != cudaSuccess;
  } catch (const std::exception&) {
    failed_ = true;
  }
  return !failed_;
}

void SpeedCheck::addUp() noexcept {
  isOver_ = true;
  for (std::size_t call = 0; 2 * call + 1 < events_.size(); ++call) {
    float ms = 0;
    if (cudaEventElapsedTime(&ms, events_[2 * call].get(), events_[2 * call + 1].get()) !=
        cudaSuccess) {
      failed_ = true;
      return;
    }
    (call % 2 == 0 ? planMs_ : ownMs_) += static_cast<double>(ms);
  }
}

}  // namespace ucudnn
