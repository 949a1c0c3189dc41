// Random device data, and the distance of two results.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>

#include "tool/device.hpp"

namespace ucudnn::tool {

/// Bytes of one number. Throws DeviceError for types that the tool does not compute with.
std::size_t elementBytes(cudnnDataType_t type);

/// Fills the buffer with numbers uniform in [-1, 1): a block is made on the host and copied over
/// and over. The block's length is prime, so that no two samples or channels of usual sizes are
/// alike.
void fillRandom(const DeviceBuffer& buffer, cudnnDataType_t type, std::uint32_t seed);

/// |a - b|| / ||b|| over `bytes` of two device arrays, summed on the host in double. NaN if one of
/// the numbers is NaN; 0 for two arrays of zeros. REQUIRES: the device has finished with both.
double relativeDistance(const void* a, const void* b, std::size_t bytes, cudnnDataType_t type);

/// The same of host arrays.
class DistanceSum {
 public:
  explicit DistanceSum(cudnnDataType_t type) : type_(type) {}
  void add(const void* a, const void* b, std::size_t bytes);
  double value() const;

 private:
  cudnnDataType_t type_;
  double difference_ = 0, norm_ = 0;
};

}  // namespace ucudnn::tool
