#include <string>

#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

// The tests' environment has UCUDNN_SIMULATOR_DEVICES=H200,P100-SXM2.
struct DeviceCase {
  int device;
  const char* name;
  int major;
  int minor;
  int multiprocessors;
};

TEST(SimulatedDeviceTest, DevicesAreThoseOfTheEnvironment) {
  int count = 0;
  ASSERT_CUDA(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 2);
  const DeviceCase cases[] = {{0, "NVIDIA H200 (simulated)", 9, 0, 132},
                              {1, "NVIDIA P100-SXM2 (simulated)", 6, 0, 56}};
  for (const DeviceCase& test : cases) {
    cudaDeviceProp properties;
    ASSERT_CUDA(cudaGetDeviceProperties(&properties, test.device));
    EXPECT_STREQ(properties.name, test.name);
    EXPECT_EQ(properties.major, test.major);
    EXPECT_EQ(properties.minor, test.minor);
    EXPECT_EQ(properties.multiProcessorCount, test.multiprocessors);
    int value = 0;
    EXPECT_CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, test.device));
    EXPECT_EQ(value, test.multiprocessors);
  }
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  int version = 0;
  EXPECT_CUDA(cudaDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
}

TEST(SimulatedDeviceTest, HandlesBelongToTheirDevice) {
  const ScopedEvent event;
  ASSERT_CUDA(cudaSetDevice(1));
  const ScopedStream stream;
  int device = -1;
  EXPECT_CUDA(cudaStreamGetDevice(stream, &device));
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  {
    const DeviceBuffer buffer(1024);
    EXPECT_EQ(liveBytes(1), 1024U);
  }
  ASSERT_CUDA(cudaSetDevice(0));
}

TEST(SimulatedDeviceTest, ResetGivesEverythingBack) {
  ASSERT_CUDA(cudaSetDevice(1));
  void* pointer = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_CUDA(cudaMalloc(&pointer, 64));
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDA(cudaEventCreate(&event));
  ASSERT_CUDA(cudaDeviceReset());
  EXPECT_EQ(liveBytes(1), 0U);
  EXPECT_EQ(liveHandles("stream"), 0);
  EXPECT_EQ(liveHandles("event"), 0);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  ASSERT_CUDA(cudaSetDevice(0));
}

TEST(SimulatedDeviceTest, ErrorsHaveNames) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

}  // namespace
}  // namespace ucudnn::test
