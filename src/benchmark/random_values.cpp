#include "benchmark/random_values.hpp"

#include <cudnn.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "cuda/error.hpp"
#include "problem/numbers.hpp"

namespace ucudnn {
namespace {

// 1 MiB: larger than a tile, and made in a millisecond. One word less is a prime, so that no two
// samples hold the same numbers.
constexpr std::size_t kWords = (1 << 17) - 1;

std::size_t firstWord(RandomTensor tensor) noexcept {
  return static_cast<std::size_t>(tensor) * (kWords / 3);
}

struct Format {
  int bits, mantissaBits, bias;
};

Format formatOf(std::int32_t dataType) noexcept {
  switch (dataType) {
    case CUDNN_DATA_DOUBLE:
      return {64, 52, 1023};
    case CUDNN_DATA_HALF:
      return {16, 10, 15};
    case CUDNN_DATA_BFLOAT16:
      return {16, 7, 127};
    default:
      return {32, 23, 127};
  }
}

/// Random sign and mantissa, one of five exponents below 1.
std::vector<std::uint64_t> makeBlock(Format format) {
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

/// Made once for each format and never destroyed: copies may still read it. Two threads may make
/// one at the same time; the first counts. With a function's static they would wait; in a child
/// that was forked meanwhile, making it would never end.
const std::vector<std::uint64_t>& randomBlock(std::int32_t dataType) {
  using Block = std::vector<std::uint64_t>;
  static std::atomic<const Block*> doubles{nullptr}, halfs{nullptr}, bfloat16s{nullptr},
      floats{nullptr};
  std::atomic<const Block*>& place = dataType == CUDNN_DATA_DOUBLE     ? doubles
                                     : dataType == CUDNN_DATA_HALF     ? halfs
                                     : dataType == CUDNN_DATA_BFLOAT16 ? bfloat16s
                                                                       : floats;
  const Block* known = place.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto made = std::make_unique<const Block>(makeBlock(formatOf(dataType)));
  if (!place.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return *known;
  return *made.release();
}

}  // namespace

void fillRandom(void* memory,
                std::size_t bytes,
                RandomTensor tensor,
                std::int32_t dataType,
                cudaStream_t stream) {
  const std::vector<std::uint64_t>& block = randomBlock(dataType);
  char* const begin = static_cast<char*>(memory);
  std::size_t filled = 0;
  const auto copy = [&](std::size_t first, std::size_t end) {
    const std::size_t more = std::min(bytes - filled, (end - first) * sizeof(block[0]));
    if (more == 0) return;
    UCUDNN_CHECK_CUDA(cudaMemcpyAsync(
        begin + filled, block.data() + first, more, cudaMemcpyHostToDevice, stream));
    filled += more;
  };
  copy(firstWord(tensor), block.size());
  copy(0, firstWord(tensor));
  while (filled < bytes) {  // doubles what is there already
    const std::size_t more = std::min(filled, bytes - filled);
    UCUDNN_CHECK_CUDA(
        cudaMemcpyAsync(begin + filled, begin, more, cudaMemcpyDeviceToDevice, stream));
    filled += more;
  }
}

const void* randomNumbers(RandomTensor tensor, std::int32_t dataType) {
  static_assert(kRandomBytes <= kWords / 3 * sizeof(std::uint64_t), "the last third has as many");
  return randomBlock(dataType).data() + firstWord(tensor);
}

bool areRandom(const char* bytes,
               std::size_t offset,
               std::size_t count,
               RandomTensor tensor,
               std::int32_t dataType) {
  const std::vector<std::uint64_t>& block = randomBlock(dataType);
  const auto* const numbers = reinterpret_cast<const char*>(block.data());
  const std::size_t size = block.size() * sizeof(block[0]);
  std::size_t at = (firstWord(tensor) * sizeof(block[0]) + offset) % size;
  for (std::size_t i = 0; i < count; ++i, at = at + 1 == size ? 0 : at + 1)
    if (bytes[i] != numbers[at]) return false;
  return true;
}

std::vector<double> randomValues(RandomTensor tensor, std::int32_t dataType) {
  std::vector<std::uint64_t> block = randomBlock(dataType);
  std::rotate(
      block.begin(), block.begin() + static_cast<std::ptrdiff_t>(firstWord(tensor)), block.end());
  const std::size_t bits = block.size() * sizeof(block[0]) * 8;
  return toDoubles(
      block.data(), bits / static_cast<std::size_t>(formatOf(dataType).bits), dataType);
}

}  // namespace ucudnn
