#include "benchmark/buffers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>

#include "support/log.hpp"

namespace ucudnn {
namespace {

/// A block of random numbers of a type: random sign and mantissa, one of five exponents below 1.
std::vector<std::uint64_t> randomBlock(std::int32_t dataType) {
  struct Format {
    int bits, mantissaBits, bias;
  };
  const Format format = dataType == CUDNN_DATA_DOUBLE     ? Format{64, 52, 1023}
                        : dataType == CUDNN_DATA_HALF     ? Format{16, 10, 15}
                        : dataType == CUDNN_DATA_BFLOAT16 ? Format{16, 7, 127}
                                                          : Format{32, 23, 127};
  constexpr std::size_t kWords = 1 << 17;  // 1 MiB: larger than a tile, made in a millisecond
  std::vector<std::uint64_t> block(kWords);
  std::uint64_t state = 0x2545F4914F6CDD1Du;
  const auto next = [&state] {  // xorshift64 (Marsaglia 2003)
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  for (std::uint64_t& word : block) {
    word = 0;
    for (int shift = 0; shift < 64; shift += format.bits) {
      const std::uint64_t random = next();
      const std::uint64_t mantissa =
          (random >> 8) & ((std::uint64_t{1} << format.mantissaBits) - 1);
      const std::uint64_t exponent =
          static_cast<std::uint64_t>(format.bias) - 1 - (random & 0xF) % 5;
      const std::uint64_t sign = (random >> 4) & 1;
      word |= (sign << (format.bits - 1) | exponent << format.mantissaBits | mantissa) << shift;
    }
  }
  return block;
}

/// Fills device memory with a block of random numbers, doubling what is there already.
void fillRandom(const DeviceBuffer& buffer, std::int32_t dataType, cudaStream_t stream) {
  if (buffer.bytes() == 0) return;
  const std::vector<std::uint64_t> block = randomBlock(dataType);
  char* const memory = static_cast<char*>(buffer.get());
  std::size_t filled = std::min(buffer.bytes(), block.size() * sizeof(block[0]));
  UCUDNN_CHECK_CUDA(cudaMemcpyAsync(memory, block.data(), filled, cudaMemcpyHostToDevice, stream));
  while (filled < buffer.bytes()) {
    const std::size_t more = std::min(filled, buffer.bytes() - filled);
    UCUDNN_CHECK_CUDA(
        cudaMemcpyAsync(memory + filled, memory, more, cudaMemcpyDeviceToDevice, stream));
    filled += more;
  }
  UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream));  // `block` goes out of scope
}

}  // namespace

ScratchBuffers::ScratchBuffers(const Problem& problem, cudaStream_t stream) {
  w_ = DeviceBuffer(problem.wBytes());
  for (batch_ = problem.batch();; batch_ /= 2) {
    const Problem part = problem.withBatch(batch_);
    try {
      x_ = DeviceBuffer(part.xBytes());
      y_ = DeviceBuffer(part.yBytes());
      break;
    } catch (const OutOfMemory&) {
      x_ = DeviceBuffer();
      if (batch_ == 1) throw;
    }
  }
  if (batch_ < problem.batch())
    logWarn("not enough device memory to time {} samples of {}: sizes up to {} are tried",
            problem.batch(),
            problem.text(),
            batch_);
  fillRandom(x_, problem.xType, stream);
  fillRandom(w_, problem.wType, stream);
  fillRandom(y_, problem.yType, stream);
}

void ScratchBuffers::allocateWorkspace(std::vector<std::size_t> wantedBytes) {
  std::sort(wantedBytes.begin(), wantedBytes.end(), std::greater<>());
  wantedBytes.erase(std::unique(wantedBytes.begin(), wantedBytes.end()), wantedBytes.end());
  for (const std::size_t bytes : wantedBytes) {
    try {
      workspace_ = DeviceBuffer(bytes);
      break;
    } catch (const OutOfMemory&) {
      continue;
    }
  }
  if (!wantedBytes.empty() && workspace_.bytes() < wantedBytes.front())
    logWarn(
        "not enough device memory to time kernels with {} bytes of workspace: up to {} are tried",
        wantedBytes.front(),
        workspace_.bytes());
}

TensorBuffers ScratchBuffers::get() const noexcept {
  return {x_.get(), w_.get(), y_.get(), workspace_.get(), workspace_.bytes()};
}

}  // namespace ucudnn
