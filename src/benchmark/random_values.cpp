#include "benchmark/random_values.hpp"

#include <cudnn.h>

#include <algorithm>
#include <vector>

#include "cuda/error.hpp"

namespace ucudnn {
namespace {

struct Format {
  int bits, mantissaBits, bias;
};

/// Random sign and mantissa, one of five exponents below 1.
std::vector<std::uint64_t> makeBlock(Format format) {
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

/// Made once for each format and never destroyed: copies may still read it.
const std::vector<std::uint64_t>& randomBlock(std::int32_t dataType) {
  using Block = std::vector<std::uint64_t>;
  switch (dataType) {
    case CUDNN_DATA_DOUBLE: {
      static const Block& block = *new Block(makeBlock({64, 52, 1023}));
      return block;
    }
    case CUDNN_DATA_HALF: {
      static const Block& block = *new Block(makeBlock({16, 10, 15}));
      return block;
    }
    case CUDNN_DATA_BFLOAT16: {
      static const Block& block = *new Block(makeBlock({16, 7, 127}));
      return block;
    }
    default: {
      static const Block& block = *new Block(makeBlock({32, 23, 127}));
      return block;
    }
  }
}

}  // namespace

void fillRandom(void* memory, std::size_t bytes, std::int32_t dataType, cudaStream_t stream) {
  if (bytes == 0) return;
  const std::vector<std::uint64_t>& block = randomBlock(dataType);
  char* const begin = static_cast<char*>(memory);
  std::size_t filled = std::min(bytes, block.size() * sizeof(block[0]));
  UCUDNN_CHECK_CUDA(cudaMemcpyAsync(begin, block.data(), filled, cudaMemcpyHostToDevice, stream));
  while (filled < bytes) {  // doubles what is there already
    const std::size_t more = std::min(filled, bytes - filled);
    UCUDNN_CHECK_CUDA(
        cudaMemcpyAsync(begin + filled, begin, more, cudaMemcpyDeviceToDevice, stream));
    filled += more;
  }
}

}  // namespace ucudnn
