#include "benchmark/buffers.hpp"

#include <algorithm>

#include "benchmark/random_values.hpp"
#include "kernels/native.hpp"
#include "support/alignment.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

std::size_t biasBytes(const Problem& problem) noexcept {
  return static_cast<std::size_t>(problem.ySizes[1]) * elementBytes(problem.yType);
}

std::size_t freeBytes() {
  std::size_t free = 0, total = 0;
  UCUDNN_CHECK_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

/// A block of `wantedBytes`, or as much as the bound and the device allow, but at least
/// `leastBytes`; else an empty one.
DeviceBuffer allocate(std::size_t leastBytes, std::size_t wantedBytes, const ScratchBound& bound) {
  std::size_t bytes = roundDownToAlignment(std::min(wantedBytes, bound.bytes()));
  for (;;) {
    if (bytes < leastBytes) return {};
    try {
      return DeviceBuffer(bytes);
    } catch (const OutOfMemory&) {
      // The free memory may be fragmented.
      const std::size_t most = freeBytes() / bound.partsOfFree;
      bytes = roundDownToAlignment(std::min(bytes - bytes / 4, most));
    }
  }
}

}  // namespace

std::size_t ScratchBound::bytes(std::size_t heldBytes) const {
  if (partsOfFree == 1) return mostBytes;
  return std::min(mostBytes, (freeBytes() + heldBytes) / partsOfFree);
}

std::size_t tensorBytesOf(const Problem& problem, bool besideY) noexcept {
  return roundUpToAlignment(problem.wBytes()) + roundUpToAlignment(biasBytes(problem)) +
         roundUpToAlignment(problem.xBytes()) +
         roundUpToAlignment(problem.yBytes()) * (besideY ? 2 : 1);
}

std::size_t scratchBytesOf(const Problem& problem, std::size_t workspaceBytes, bool besideY) {
  return tensorBytesOf(problem, besideY) + roundUpToAlignment(workspaceBytes) + kSpareBytes;
}

TimingMemory::TimingMemory(const Problem& problem,
                           const TensorBuffers& buffers,
                           std::size_t borrowedSampleBytes)
    : problem_(problem),
      callers_(buffers),
      callersRoom_{buffers.workspace != nullptr ? buffers.workspaceBytes : 0, borrowedSampleBytes} {
}

TimingMemory::TimingMemory(const Problem& problem,
                           std::size_t workspaceBytes,
                           const ScratchBound& bound,
                           bool besideY,
                           cudaStream_t stream)
    : problem_(problem), besideY_(besideY), stream_(stream) {
  const std::size_t wanted = scratchBytesOf(problem, workspaceBytes, besideY);
  block_ = allocate(scratchBytesOf(problem.withBatch(1), 0, besideY), wanted, bound);
  if (block_.bytes() > 0) usedBytes_ = block_.bytes() - kSpareBytes;
  if (block_.bytes() < wanted)
    logInfo("{} N={}: kernels are timed in {} bytes of device memory, of {} wanted",
            problem.text(),
            problem.batch(),
            block_.bytes(),
            wanted);
}

/// The most samples, up to the mini-batch, whose tensors fit beside a workspace; 0: none.
int TimingMemory::samplesBeside(std::size_t workspaceBytes) const {
  if (roundUpToAlignment(workspaceBytes) > usedBytes_) return 0;
  const std::size_t left = usedBytes_ - roundUpToAlignment(workspaceBytes);
  if (tensorBytes(problem_.batch()) <= left) return problem_.batch();
  int fits = 0;
  for (int beyond = problem_.batch(); beyond - fits > 1;) {
    const int middle = fits + (beyond - fits) / 2;
    (tensorBytes(middle) <= left ? fits : beyond) = middle;
  }
  return fits;
}

/// Puts the tensors at the block's beginning, and the workspace at the end of the part that is
/// used.
Placement TimingMemory::layOut(int samples, std::size_t workspaceBytes) const {
  const Problem part = problem_.withBatch(samples);
  char* const w = static_cast<char*>(block_.get());
  char* const bias = w + roundUpToAlignment(part.wBytes());
  char* const x = bias + roundUpToAlignment(biasBytes(part));
  char* const y = x + roundUpToAlignment(part.xBytes());
  char* const z = besideY_ ? y + roundUpToAlignment(part.yBytes()) : y;
  char* const end = w + usedBytes_;
  void* const workspace = workspaceBytes > 0 ? end - roundUpToAlignment(workspaceBytes) : nullptr;
  return {{x, w, y, workspace, workspaceBytes}, bias, z, samples};
}

void TimingMemory::fill(int samples) {
  const Placement place = layOut(samples, 0);
  const Problem part = problem_.withBatch(samples);
  const std::size_t xBytes = roundUpToAlignment(part.xBytes());
  const std::size_t wBytes = roundUpToAlignment(part.wBytes());
  const TensorBuffers& to = place.buffers;
  fillRandom(to.x, xBytes, RandomTensor::kX, problem_.xType, stream_);
  fillRandom(to.w, wBytes, RandomTensor::kW, problem_.wType, stream_);
  fillRandom(to.y, part.yBytes(), RandomTensor::kY, problem_.yType, stream_);
  if (besideY_)
    fillRandom(
        const_cast<void*>(place.z), part.yBytes(), RandomTensor::kY, problem_.yType, stream_);
  UCUDNN_CHECK_CUDA(
      cudaMemsetAsync(const_cast<void*>(place.bias), 0, biasBytes(problem_), stream_));
  filledSamples_ = samples;
  dirtyFrom_ = usedBytes_;
}

bool TimingMemory::fits(int batch, std::size_t workspaceBytes) const {
  if (callers_) return workspaceBytes <= callersRoom_.at(problem_.batch() - batch);
  return samplesBeside(workspaceBytes) >= batch;
}

/// Puts a workspace that borrows where a plan puts it. Micro-batches walk only over the part of the
/// output before it.
Placement TimingMemory::placeInCallers(std::size_t workspaceBytes) const {
  Placement placement{*callers_, callers_->w, callers_->y, problem_.batch()};
  if (workspaceBytes <= callersRoom_.limitBytes) return placement;
  const bool isX = problem_.operation == Operation::kBackwardData;
  const std::size_t sampleBytes = callersRoom_.sampleBytes;
  const std::size_t outputBytes = sampleBytes * static_cast<std::size_t>(problem_.batch());
  const void* const output = isX ? callers_->x : callers_->y;
  placement.buffers.workspace = borrowedPlace(advance(output, outputBytes), workspaceBytes);
  placement.buffers.workspaceBytes = workspaceBytes;
  placement.samples =
      static_cast<int>((outputBytes - workspaceBytes - kMemoryAlignment) / sampleBytes);
  return placement;
}

std::optional<Placement> TimingMemory::place(int batch, std::size_t workspaceBytes) {
  if (!fits(batch, workspaceBytes)) return std::nullopt;
  if (callers_) return placeInCallers(workspaceBytes);
  const int samples = samplesBeside(workspaceBytes);
  if (samples != filledSamples_ || tensorBytes(samples) > dirtyFrom_) fill(samples);
  dirtyFrom_ = std::min(dirtyFrom_, usedBytes_ - roundUpToAlignment(workspaceBytes));
  return layOut(samples, workspaceBytes);
}

}  // namespace ucudnn
