#include "tool/device_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "problem/numbers.hpp"
#include "problem/problem.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {
namespace {

constexpr std::size_t kBlockElements = 999983;   // the largest prime below a million: 4 MB of float
constexpr std::size_t kNumbersAtOnce = 1 << 14;  // they stay in the processor's cache
constexpr std::size_t kChunkBytes = std::size_t{64} << 20;  // enough to keep the bus busy

}  // namespace

std::size_t elementBytes(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return ucudnn::elementBytes(type);
    default:
      throw DeviceError("a data type that the tool does not compute with");
  }
}

void fillRandom(const DeviceBuffer& buffer, cudnnDataType_t type, std::uint32_t seed) {
  const std::size_t numberBytes = elementBytes(type);
  std::vector<char> block(std::min(kBlockElements, buffer.bytes() / numberBytes) * numberBytes);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::size_t at = 0; at < block.size(); at += numberBytes) {
    const std::uint64_t bits = bitsOf(uniform(generator), type);
    std::memcpy(&block[at], &bits, numberBytes);  // GPUs and their hosts are little-endian
  }
  char* const base = static_cast<char*>(buffer.get());
  check(cudaMemcpy(base, block.data(), block.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  // Copies the filled part behind itself, so that there are few copies.
  for (std::size_t done = block.size(); done < buffer.bytes();) {
    const std::size_t bytes = std::min(done, buffer.bytes() - done);
    check(cudaMemcpy(base + done, base, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy");
    done += bytes;
  }
  // The host does not wait for copies within the device, and another stream will read these.
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void DistanceSum::add(const void* a, const void* b, std::size_t bytes) {
  const std::size_t numberBytes = elementBytes(type_);
  const std::size_t all = bytes / numberBytes;
  for (std::size_t done = 0; done < all; done += kNumbersAtOnce) {
    const std::size_t count = std::min(kNumbersAtOnce, all - done), offset = done * numberBytes;
    const auto left = toDoubles(static_cast<const char*>(a) + offset, count, type_);
    const auto right = toDoubles(static_cast<const char*>(b) + offset, count, type_);
    for (std::size_t i = 0; i < count; ++i) {
      const double difference = left[i] - right[i];
      difference_ += difference * difference;
      norm_ += right[i] * right[i];
    }
  }
}

double DistanceSum::value() const {
  return difference_ == 0 ? 0 : std::sqrt(difference_ / norm_);
}

double relativeDistance(const void* a, const void* b, std::size_t bytes, cudnnDataType_t type) {
  DistanceSum sum(type);
  const std::size_t chunk = std::min(kChunkBytes, bytes);
  const HostMemory left = makeHostMemory(chunk);
  const HostMemory right = makeHostMemory(chunk);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(chunk, bytes - done);
    check(cudaMemcpy(left.get(), static_cast<const char*>(a) + done, part, cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    check(cudaMemcpy(right.get(), static_cast<const char*>(b) + done, part, cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    sum.add(left.get(), right.get(), part);
    done += part;
  }
  return sum.value();
}

}  // namespace ucudnn::tool
