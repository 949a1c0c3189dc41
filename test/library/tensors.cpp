// Host tensors of the whole-library tests: values, distances, and a convolution by its definition.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <random>

#include "fixture.hpp"

namespace ucudnn::test {
namespace {

std::size_t elementBytes(cudnnDataType_t type) {
  if (type == CUDNN_DATA_DOUBLE) return 8;
  return type == CUDNN_DATA_FLOAT ? 4 : 2;
}

template <typename Element>
Element load(const char* from) {
  Element value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double toDouble(cudnnDataType_t type, const char* from) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return load<double>(from);
    case CUDNN_DATA_HALF:
      return static_cast<double>(__half2float(load<__half>(from)));
    case CUDNN_DATA_BFLOAT16:
      return static_cast<double>(__bfloat162float(load<__nv_bfloat16>(from)));
    default:
      return static_cast<double>(load<float>(from));
  }
}

template <typename Element>
void store(Element value, char* to) {
  std::memcpy(to, &value, sizeof value);
}

void fromDouble(cudnnDataType_t type, double value, char* to) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return store(value, to);
    case CUDNN_DATA_HALF:
      return store(__float2half(static_cast<float>(value)), to);
    case CUDNN_DATA_BFLOAT16:
      return store(__float2bfloat16(static_cast<float>(value)), to);
    default:
      return store(static_cast<float>(value), to);
  }
}

/// Calls `visit` with each index within `sizes`.
template <typename Visitor>
void forEachIndex(const std::vector<int>& sizes, Visitor visit) {
  std::vector<int> index(sizes.size(), 0);
  for (;;) {
    visit(index);
    std::size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

std::size_t byteOffset(const Geometry& geometry, int part, const std::vector<int>& index) {
  std::size_t offset = static_cast<std::size_t>(part) * geometry.partStride;
  for (std::size_t d = 0; d < index.size(); ++d)
    offset += static_cast<std::size_t>(index[d]) * static_cast<std::size_t>(geometry.strides[d]);
  return offset * elementBytes(geometry.type);
}

}  // namespace

std::size_t Geometry::partStrideBytes() const {
  return partStride * elementBytes(type);
}

std::size_t Geometry::bytes() const {
  std::vector<int> last;
  for (const int size : sizes) last.push_back(size - 1);
  return byteOffset(*this, parts - 1, last) + elementBytes(type);
}

std::vector<char> randomValues(const Geometry& geometry, unsigned seed) {
  std::vector<char> values(geometry.bytes());
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> between(-1, 1);
  const std::size_t step = elementBytes(geometry.type);
  for (std::size_t at = 0; at < values.size(); at += step)
    fromDouble(geometry.type, between(engine), values.data() + at);
  return values;
}

double distance(const Geometry& geometry, const std::vector<char>& a, const std::vector<char>& b) {
  double difference = 0;
  double reference = 0;
  for (int part = 0; part < geometry.parts; ++part)
    forEachIndex(geometry.sizes, [&](const std::vector<int>& index) {
      const std::size_t at = byteOffset(geometry, part, index);
      const double left = toDouble(geometry.type, a.data() + at);
      const double right = toDouble(geometry.type, b.data() + at);
      difference += (left - right) * (left - right);
      reference += right * right;
    });
  return difference == 0 ? 0 : std::sqrt(difference / reference);
}

std::vector<double> toDoubles(cudnnDataType_t type, const std::vector<char>& values) {
  std::vector<double> numbers;
  for (std::size_t at = 0; at < values.size(); at += elementBytes(type))
    numbers.push_back(toDouble(type, values.data() + at));
  return numbers;
}

std::vector<double> Convolution::sumsOnHost(ucudnnOperation_t operation, bool magnitudes) const {
  const Geometry& out = geometry(operation);
  const std::vector<char> x = x_->read();
  const std::vector<char> w = w_->read();
  const std::vector<char> y = y_->read();
  std::vector<double> sums(out.bytes() / elementBytes(out.type), 0.0);
  const std::size_t spatial = case_.input.size();
  const int filtersPerGroup = case_.filters / case_.groups;
  const int channelsPerGroup = case_.channels / case_.groups;
  for (int part = 0; part < case_.parts; ++part)
    forEachIndex(yGeometry_.sizes, [&](const std::vector<int>& yIndex) {
      std::vector<int> taps{channelsPerGroup};
      taps.insert(taps.end(), case_.filter.begin(), case_.filter.end());
      forEachIndex(taps, [&](const std::vector<int>& tap) {
        std::vector<int> wIndex{yIndex[1]};
        wIndex.insert(wIndex.end(), tap.begin(), tap.end());
        std::vector<int> xIndex{yIndex[0], yIndex[1] / filtersPerGroup * channelsPerGroup + tap[0]};
        for (std::size_t d = 0; d < spatial; ++d) {
          const int place = tap[d + 1];
          const int at =
              case_.mode == CUDNN_CROSS_CORRELATION ? place : case_.filter[d] - 1 - place;
          xIndex.push_back(yIndex[d + 2] * case_.stride[d] - case_.pad[d] + at * case_.dilation[d]);
          if (xIndex.back() < 0 || xIndex.back() >= case_.input[d]) return;
        }
        const std::size_t xAt = byteOffset(xGeometry_, part, xIndex);
        const std::size_t wAt = byteOffset(wGeometry_, part, wIndex);
        const std::size_t yAt = byteOffset(yGeometry_, part, yIndex);
        const auto value = [&](const std::vector<char>& values, std::size_t offset) {
          const double number = toDouble(case_.type, values.data() + offset);
          return magnitudes ? std::abs(number) : number;
        };
        const std::size_t size = elementBytes(case_.type);
        if (operation == UCUDNN_FORWARD)
          sums[yAt / size] += value(x, xAt) * value(w, wAt);
        else if (operation == UCUDNN_BACKWARD_DATA)
          sums[xAt / size] += value(y, yAt) * value(w, wAt);
        else
          sums[wAt / size] += value(x, xAt) * value(y, yAt);
      });
    });
  return sums;
}

std::vector<char> Convolution::computedOnHost(ucudnnOperation_t operation) const {
  const Geometry& out = geometry(operation);
  const std::vector<double> sums = sumsOnHost(operation);
  std::vector<char> result(out.bytes());
  for (std::size_t i = 0; i < sums.size(); ++i)
    fromDouble(out.type, sums[i], result.data() + i * elementBytes(out.type));
  return result;
}

}  // namespace ucudnn::test
