#include "executor/distance.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cuda/owners.hpp"
#include "support/device.hpp"

namespace ucudnn {
namespace {

/// A C++ type, and cuDNN's name for it.
template <typename T, cudnnDataType_t kTypeOf>
struct Element {
  using Type = T;
  static constexpr cudnnDataType_t kType = kTypeOf;
};

template <typename ElementType>
class DistanceTest : public ::testing::Test {
 protected:
  using T = typename ElementType::Type;

  void SetUp() override {
    if (!test::hasDevice()) GTEST_SKIP() << "no GPU";
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  }

  /// `value(i)` for each element; values that every type holds exactly keep the test exact.
  template <typename Value>
  static DeviceBuffer upload(std::size_t elements, Value value) {
    std::vector<T> host(elements);
    for (std::size_t i = 0; i < elements; ++i) host[i] = T(static_cast<float>(value(i)));
    DeviceBuffer buffer(elements * sizeof(T));
    UCUDNN_CHECK_CUDA(
        cudaMemcpy(buffer.get(), host.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    return buffer;
  }

  double distance(const DeviceBuffer& a, const DeviceBuffer& b, std::size_t elements) const {
    return normalizedDistance(handle_.get(), ElementType::kType, a.get(), b.get(), elements);
  }

  CudnnHandle handle_;
};

using Elements = ::testing::Types<Element<float, CUDNN_DATA_FLOAT>,
                                  Element<__half, CUDNN_DATA_HALF>,
                                  Element<__nv_bfloat16, CUDNN_DATA_BFLOAT16>,
                                  Element<double, CUDNN_DATA_DOUBLE>>;

struct ElementName {
  template <typename ElementType>
  static std::string GetName(int) {
    switch (ElementType::kType) {
      case CUDNN_DATA_HALF:
        return "half";
      case CUDNN_DATA_BFLOAT16:
        return "bfloat16";
      case CUDNN_DATA_DOUBLE:
        return "double";
      default:
        return "float";
    }
  }
};
TYPED_TEST_SUITE(DistanceTest, Elements, ElementName);

constexpr double kTolerance = 1e-12;  // sums of squares in double

double pattern(std::size_t i) {
  return i % 3 == 0 ? 2 : -1;
}

TYPED_TEST(DistanceTest, EqualArraysHaveNone) {
  const DeviceBuffer a = this->upload(1000, pattern);
  const DeviceBuffer b = this->upload(1000, pattern);
  EXPECT_EQ(this->distance(a, b, 1000), 0);
}

TYPED_TEST(DistanceTest, ItIsTheNormOfTheDifferenceOverTheReferences) {
  // Differences of 0.5 everywhere against twos and minus ones, 4 + 1 + 1 squared in three.
  const DeviceBuffer a = this->upload(999, [](std::size_t i) { return pattern(i) + 0.5; });
  const DeviceBuffer b = this->upload(999, pattern);
  EXPECT_NEAR(this->distance(a, b, 999), std::sqrt(0.25 / 2), kTolerance);
  // The other way round the reference is the other one: 2.5, -0.5 and -0.5.
  EXPECT_NEAR(this->distance(b, a, 999), std::sqrt(0.75 / (6.25 + 0.25 + 0.25)), kTolerance);
}

TYPED_TEST(DistanceTest, NothingAgainstSomethingIsOne) {
  const DeviceBuffer a = this->upload(64, [](std::size_t) { return 0; });
  const DeviceBuffer b = this->upload(64, pattern);
  EXPECT_NEAR(this->distance(a, b, 64), 1, kTolerance);
}

TYPED_TEST(DistanceTest, AllZeroArraysAreEqual) {
  const DeviceBuffer zeros = this->upload(64, [](std::size_t) { return 0; });
  EXPECT_EQ(this->distance(zeros, zeros, 64), 0);
}

TYPED_TEST(DistanceTest, SomethingAgainstNothingIsInfinitelyFar) {
  const DeviceBuffer a = this->upload(64, pattern);
  const DeviceBuffer b = this->upload(64, [](std::size_t) { return 0; });
  EXPECT_EQ(this->distance(a, b, 64), std::numeric_limits<double>::infinity());
}

TYPED_TEST(DistanceTest, ANanIsNotOverlooked) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const DeviceBuffer a = this->upload(64, [&](std::size_t i) { return i == 63 ? nan : 1; });
  const DeviceBuffer b = this->upload(64, [](std::size_t) { return 1; });
  EXPECT_TRUE(std::isnan(this->distance(a, b, 64)));
}

TYPED_TEST(DistanceTest, BothArraysStayAsTheyAre) {
  const DeviceBuffer a = this->upload(64, pattern);
  const DeviceBuffer b = this->upload(64, [](std::size_t) { return 1; });
  const double first = this->distance(a, b, 64);
  EXPECT_EQ(this->distance(a, b, 64), first);
}

// One element that differs, at either end of the chunks that the array is worked through in.
TYPED_TEST(DistanceTest, EveryElementCountsAroundTheChunksBorder) {
  constexpr std::size_t kLongest = kDistanceChunk + 1;
  // Ones, so that ||b|| is sqrt(elements); the one that differs does so by 2047.
  const DeviceBuffer b = this->upload(kLongest, [](std::size_t) { return 1; });
  for (const std::size_t different : {std::size_t{0}, kDistanceChunk - 1, kDistanceChunk}) {
    const DeviceBuffer a =
        this->upload(kLongest, [&](std::size_t i) { return i == different ? 2048 : 1; });
    for (const std::size_t elements : {kDistanceChunk - 1, kDistanceChunk, kLongest}) {
      const double value = static_cast<double>(typename TypeParam::Type(2048.0f));
      const double expected = (value - 1) / std::sqrt(static_cast<double>(elements));
      EXPECT_NEAR(this->distance(a, b, elements), different < elements ? expected : 0, kTolerance)
          << different << " of " << elements;
    }
  }
}

}  // namespace
}  // namespace ucudnn
