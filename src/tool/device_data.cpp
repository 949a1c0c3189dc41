#include "tool/device_data.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tool/failure.hpp"

namespace ucudnn::tool {
namespace {

constexpr std::size_t kBlockElements = 999983;  // the largest prime below a million: 4 MB of float
constexpr std::size_t kChunkBytes = std::size_t{64} << 20;  // enough to keep the bus busy

/// Calls f with a value of the type in question.
template <typename Function>
auto dispatch(cudnnDataType_t type, Function f) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return f(float{});
    case CUDNN_DATA_DOUBLE:
      return f(double{});
    case CUDNN_DATA_HALF:
      return f(__half{});
    case CUDNN_DATA_BFLOAT16:
      return f(__nv_bfloat16{});
    default:
      throw DeviceError("a data type that the tool does not compute with");
  }
}

void assign(float& to, float value) {
  to = value;
}
void assign(double& to, float value) {
  to = value;
}
void assign(__half& to, float value) {
  to = __float2half_rn(value);
}
void assign(__nv_bfloat16& to, float value) {
  to = __float2bfloat16_rn(value);
}

double toDouble(float value) {
  return value;
}
double toDouble(double value) {
  return value;
}
double toDouble(__half value) {
  return __half2float(value);
}
double toDouble(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

}  // namespace

std::size_t elementBytes(cudnnDataType_t type) {
  return dispatch(type, [](auto element) { return sizeof(element); });
}

void fillRandom(const DeviceBuffer& buffer, cudnnDataType_t type, std::uint32_t seed) {
  dispatch(type, [&](auto element) {
    std::vector<decltype(element)> block(
        std::min(kBlockElements, buffer.bytes() / sizeof(element)));
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (auto& number : block) assign(number, uniform(generator));
    const std::size_t blockBytes = block.size() * sizeof(element);
    char* const base = static_cast<char*>(buffer.get());
    check(cudaMemcpy(base, block.data(), blockBytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    // Copies the filled part behind itself, so that there are few copies.
    for (std::size_t done = blockBytes; done < buffer.bytes();) {
      const std::size_t bytes = std::min(done, buffer.bytes() - done);
      check(cudaMemcpy(base + done, base, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy");
      done += bytes;
    }
    return 0;
  });
  // Copies within the device do not wait on the host's side, and the stream is another.
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void DistanceSum::add(const void* a, const void* b, std::size_t bytes) {
  dispatch(type_, [&](auto element) {
    using Element = decltype(element);
    const auto* const left = static_cast<const Element*>(a);
    const auto* const right = static_cast<const Element*>(b);
    for (std::size_t i = 0; i < bytes / sizeof(Element); ++i) {
      const double reference = toDouble(right[i]);
      const double difference = toDouble(left[i]) - reference;
      difference_ += difference * difference;
      norm_ += reference * reference;
    }
    return 0;
  });
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
