#include "benchmark/random_values.hpp"

#include <cudnn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda/error.hpp"

namespace ucudnn {
namespace {

// 1 MiB: larger than a tile, and made in a millisecond. One word less is a prime, so that no two
// samples hold the same numbers.
constexpr std::size_t kWords = kRandomBlockBytes / sizeof(std::uint64_t);

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
template <typename Block, typename Make>
const Block& madeOnce(std::int32_t dataType, Make make) {
  static std::atomic<const Block*> doubles{nullptr}, halfs{nullptr}, bfloat16s{nullptr},
      floats{nullptr};
  std::atomic<const Block*>& place = dataType == CUDNN_DATA_DOUBLE     ? doubles
                                     : dataType == CUDNN_DATA_HALF     ? halfs
                                     : dataType == CUDNN_DATA_BFLOAT16 ? bfloat16s
                                                                       : floats;
  const Block* known = place.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto made = std::make_unique<const Block>(make(formatOf(dataType)));
  if (!place.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return *known;
  return *made.release();
}

const std::vector<std::uint64_t>& randomBlock(std::int32_t dataType) {
  return madeOnce<std::vector<std::uint64_t>>(dataType, makeBlock);
}

/// The block's numbers. toDoubles, which also reads infinities and denormals, takes 50 times as
/// long.
std::vector<double> makeValues(const std::vector<std::uint64_t>& block, Format format) {
  constexpr int kDoubleBias = 1023, kDoubleMantissaBits = 52;
  const std::uint64_t ones = ~std::uint64_t{0} >> (64 - format.bits);
  const std::uint64_t magnitudes = ones >> 1;
  const auto rebias = static_cast<std::uint64_t>(kDoubleBias - format.bias) << kDoubleMantissaBits;
  std::vector<double> values;
  values.reserve(block.size() * static_cast<std::size_t>(64 / format.bits));
  for (const std::uint64_t word : block)
    for (int shift = 0; shift < 64; shift += format.bits) {
      const std::uint64_t bits = word >> shift & ones;
      const std::uint64_t sign = bits >> (format.bits - 1) << 63;
      const std::uint64_t value =
          sign | (((bits & magnitudes) << (kDoubleMantissaBits - format.mantissaBits)) + rebias);
      std::memcpy(&values.emplace_back(), &value, sizeof(value));
    }
  return values;
}

}  // namespace

void fillRandom(void* memory,
                std::size_t bytes,
                RandomTensor tensor,
                std::int32_t dataType,
                cudaStream_t stream,
                const void* copyOfBlock) {
  const auto kind = copyOfBlock != nullptr ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  const auto* const block =
      static_cast<const char*>(copyOfBlock != nullptr ? copyOfBlock : randomBlock(dataType).data());
  char* const begin = static_cast<char*>(memory);
  std::size_t filled = 0;
  const auto copy = [&](const char* from, std::size_t most, cudaMemcpyKind how) {
    const std::size_t more = std::min(bytes - filled, most);
    if (more == 0) return;
    UCUDNN_CHECK_CUDA(cudaMemcpyAsync(begin + filled, from, more, how, stream));
    filled += more;
  };
  const std::size_t first = firstWord(tensor) * sizeof(std::uint64_t);
  copy(block + first, kRandomBlockBytes - first, kind);
  copy(block, first, kind);
  while (filled < bytes) copy(begin, filled, cudaMemcpyDeviceToDevice);  // doubles what is there
}

const void* randomBlockOf(std::int32_t dataType) {
  return randomBlock(dataType).data();
}

std::size_t firstRandomByte(RandomTensor tensor) noexcept {
  return firstWord(tensor) * sizeof(std::uint64_t);
}

bool areRandom(const char* bytes,
               std::size_t offset,
               std::size_t count,
               RandomTensor tensor,
               std::int32_t dataType) {
  const auto* const numbers = static_cast<const char*>(randomBlockOf(dataType));
  std::size_t at = (firstRandomByte(tensor) + offset) % kRandomBlockBytes;
  for (std::size_t i = 0; i < count; ++i, at = at + 1 == kRandomBlockBytes ? 0 : at + 1)
    if (bytes[i] != numbers[at]) return false;
  return true;
}

RandomValues::RandomValues(RandomTensor tensor, std::int32_t dataType)
    : values_(madeOnce<std::vector<double>>(
          dataType, [&](Format format) { return makeValues(randomBlock(dataType), format); })),
      first_(firstWord(tensor) * static_cast<std::size_t>(64 / formatOf(dataType).bits)) {}

}  // namespace ucudnn
