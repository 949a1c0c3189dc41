#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kGib = std::size_t{1} << 30;

std::size_t residentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * 4096;  // x86-64's pages
}

TEST(SimulatedMemoryTest, IsAlignedAndPoisoned) {
  const DeviceBuffer first(100);
  const DeviceBuffer second(5000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.get()) % 512, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.get()) % 512, 0U);
  float value = 0;
  ASSERT_CUDA(cudaMemcpy(&value, second.get() + 4096, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT_TRUE(std::isnan(value));
}

TEST(SimulatedMemoryTest, EmptyAllocationIsNull) {
  void* pointer = &pointer;
  ASSERT_CUDA(cudaMalloc(&pointer, 0));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_CUDA(cudaFree(nullptr));
}

TEST(SimulatedMemoryTest, IsLimited) {
  std::size_t all = 0;
  std::size_t total = 0;
  ASSERT_CUDA(cudaMemGetInfo(&all, &total));
  const std::size_t before = liveBytes();
  setMemory(0, 4096);
  std::size_t free = 0;
  ASSERT_CUDA(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(free, 4096U);
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, 4097), cudaErrorMemoryAllocation);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  {
    const DeviceBuffer whole(4096);
    EXPECT_EQ(liveBytes(), before + 4096);
    EXPECT_EQ(cudaMalloc(&pointer, 1), cudaErrorMemoryAllocation);
  }
  EXPECT_CUDA(cudaMalloc(&pointer, 1));
  EXPECT_CUDA(cudaFree(pointer));
  setMemory(0, SIZE_MAX);
  ASSERT_CUDA(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(free, all);
}

TEST(SimulatedMemoryTest, PeakIsTheMostAtOnce) {
  startPeak();
  const std::size_t before = liveBytes();
  EXPECT_EQ(before, peakBytes());
  {
    const DeviceBuffer first(512);
    const DeviceBuffer second(1024);
  }
  const DeviceBuffer third(1024);
  EXPECT_EQ(before + 1536, peakBytes());
  EXPECT_EQ(before + 1024, liveBytes());
  startPeak();
  EXPECT_EQ(before + 1024, peakBytes());
}

TEST(SimulatedMemoryTest, SizesThatOverflowAreRefused) {
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, SIZE_MAX), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMallocHost(&pointer, SIZE_MAX), cudaErrorMemoryAllocation);
}

TEST(SimulatedMemoryTest, LargeBlocksTakeNoHostMemory) {
  setArithmetic(Arithmetic::kOff);
  const std::size_t before = residentBytes();
  const DeviceBuffer buffer(64 * kGib);
  EXPECT_CUDA(cudaMemset(buffer.get(), 1, 64 * kGib));
  EXPECT_CUDA(
      cudaMemcpy(buffer.get(), buffer.get() + 32 * kGib, 32 * kGib, cudaMemcpyDeviceToDevice));
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_LT(residentBytes(), before + kGib / 64);
  setArithmetic(Arithmetic::kFull);
}

TEST(SimulatedMemoryTest, FreesOnlyWhatIsLive) {
  void* pointer = nullptr;
  void* host = nullptr;
  ASSERT_CUDA(cudaMalloc(&pointer, 64));
  ASSERT_CUDA(cudaMallocHost(&host, 64));
  EXPECT_EQ(cudaFree(static_cast<char*>(pointer) + 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(pointer), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFree(pointer));
  EXPECT_CUDA(cudaFreeHost(host));
  EXPECT_EQ(cudaFree(pointer), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(pointer, 0, 1), cudaErrorInvalidValue);
}

struct GuardCase {
  const char* name;
  int offset;  // from the start of a block of 100 bytes
  std::int64_t violations;
};

TEST(SimulatedMemoryTest, GuardZonesAreChecked) {
  const GuardCase cases[] = {
      {"last byte", 99, 0},
      {"first byte after", 100, 1},
      {"in the padding", 511, 1},
      {"after the padding", 520, 1},
      {"first byte before", -1, 1},
      {"first byte", 0, 0},
  };
  for (const GuardCase& guard : cases) {
    SCOPED_TRACE(guard.name);
    const std::int64_t before = violationCount();
    void* pointer = nullptr;
    ASSERT_CUDA(cudaMalloc(&pointer, 100));
    static_cast<char*>(pointer)[guard.offset] = 1;
    EXPECT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(violationCount(), before + guard.violations);
    EXPECT_CUDA(cudaFree(pointer));  // found already: not said twice
    EXPECT_EQ(violationCount(), before + guard.violations);
  }
}

TEST(SimulatedMemoryTest, GuardZonesAreCheckedWhenFreedAsynchronously) {
  const std::int64_t before = violationCount();
  const ScopedStream stream;
  void* pointer = nullptr;
  ASSERT_CUDA(cudaMallocAsync(&pointer, 100, stream));
  static_cast<char*>(pointer)[100] = 1;
  ASSERT_CUDA(cudaFreeAsync(pointer, stream));
  EXPECT_EQ(violationCount(), before + 1);
}

struct CopyCase {
  const char* name;
  bool targetOnDevice;
  bool sourceOnDevice;
  cudaMemcpyKind kind;
  cudaError_t expected;
};

TEST(SimulatedMemoryTest, CopiesCheckTheirDirection) {
  const CopyCase cases[] = {
      {"up", true, false, cudaMemcpyHostToDevice, cudaSuccess},
      {"down", false, true, cudaMemcpyDeviceToHost, cudaSuccess},
      {"across", true, true, cudaMemcpyDeviceToDevice, cudaSuccess},
      {"host", false, false, cudaMemcpyHostToHost, cudaSuccess},
      {"default", true, false, cudaMemcpyDefault, cudaSuccess},
      {"up, wrong", false, true, cudaMemcpyHostToDevice, cudaErrorInvalidValue},
      {"down, wrong", true, false, cudaMemcpyDeviceToHost, cudaErrorInvalidValue},
      {"across, wrong", true, false, cudaMemcpyDeviceToDevice, cudaErrorInvalidValue},
      {"no direction",
       true,
       false,
       static_cast<cudaMemcpyKind>(7),
       cudaErrorInvalidMemcpyDirection},
  };
  const DeviceBuffer a(64);
  const DeviceBuffer b(64);
  std::vector<char> c(64, 'c');
  std::vector<char> d(64, 'd');
  for (const CopyCase& test : cases) {
    SCOPED_TRACE(test.name);
    ASSERT_CUDA(cudaMemset(b.get(), 'b', 64));
    std::fill(d.begin(), d.end(), 'd');
    char* const target = test.targetOnDevice ? a.get() : c.data();
    const char* const source = test.sourceOnDevice ? b.get() : d.data();
    EXPECT_EQ(cudaMemcpy(target, source, 64, test.kind), test.expected);
    if (test.expected == cudaSuccess) {
      EXPECT_EQ(std::memcmp(target, source, 64), 0);
    }
  }
}

TEST(SimulatedMemoryTest, RangesBeyondTheirBlockAreViolations) {
  const DeviceBuffer buffer(64);
  std::vector<char> host(128);
  const std::int64_t before = violationCount();
  EXPECT_EQ(cudaMemset(buffer.get() + 32, 0, 33), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), buffer.get(), 65, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_EQ(violationCount(), before + 2);
}

TEST(SimulatedMemoryTest, CopiesRows) {
  const DeviceBuffer buffer(6);
  const char source[] = "abc.def.";
  char target[6] = {};
  ASSERT_CUDA(cudaMemcpy2D(buffer.get(), 3, source, 4, 3, 2, cudaMemcpyHostToDevice));
  ASSERT_CUDA(cudaMemcpy(target, buffer.get(), 6, cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::string(target, 6), "abcdef");
  EXPECT_EQ(cudaMemcpy2D(buffer.get(), 2, source, 4, 3, 2, cudaMemcpyHostToDevice),
            cudaErrorInvalidPitchValue);
}

TEST(SimulatedMemoryTest, PointersHaveAttributes) {
  const DeviceBuffer buffer(64);
  void* pinned = nullptr;
  ASSERT_CUDA(cudaHostAlloc(&pinned, 64, cudaHostAllocPortable));
  std::vector<char> plain(64);
  std::vector<char> registered(64);
  ASSERT_CUDA(cudaHostRegister(registered.data(), 64, cudaHostRegisterDefault));
  EXPECT_EQ(cudaHostRegister(registered.data(), 64, cudaHostRegisterDefault),
            cudaErrorHostMemoryAlreadyRegistered);
  const auto typeOf = [](const void* pointer) {
    cudaPointerAttributes attributes;
    EXPECT_CUDA(cudaPointerGetAttributes(&attributes, pointer));
    return attributes.type;
  };
  EXPECT_EQ(typeOf(buffer.get() + 63), cudaMemoryTypeDevice);
  EXPECT_EQ(typeOf(pinned), cudaMemoryTypeHost);
  EXPECT_EQ(typeOf(registered.data()), cudaMemoryTypeHost);
  EXPECT_EQ(typeOf(plain.data()), cudaMemoryTypeUnregistered);
  EXPECT_CUDA(cudaHostUnregister(registered.data()));
  EXPECT_EQ(cudaHostUnregister(registered.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_CUDA(cudaFreeHost(pinned));
}

}  // namespace
}  // namespace ucudnn::test
