// Host memory that runs out in the midst of a call: nothing ends the program. The library is built
// into this program, so that its allocations alone fail, and not cuDNN's.
#include <cstdlib>
#include <functional>
#include <new>

#include "../support/simulator.hpp"
#include "fixture.hpp"
#include "fused.hpp"
#include "host_tensors.hpp"
#include "small_tensors.hpp"

namespace {

/// Which of this thread's allocations from here on fails; 0: none.
thread_local long failing = 0;
thread_local bool hasFailed = false;

void* allocate(std::size_t bytes) {
  if (failing > 0 && --failing == 0) {
    hasFailed = true;
    throw std::bad_alloc();
  }
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Hidden by the linker: shared libraries keep their own.
void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace ucudnn::test {
namespace {

class HostMemoryTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (!onSimulator()) GTEST_SKIP() << "so many calls take too long";
    setArithmetic(Arithmetic::kOff);
  }

  /// Makes one allocation of a call after the other fail, each on its own handle. The call may
  /// return any status.
  static void failEach(const std::function<void(UcudnnHandle_t)>& set,
                       const std::function<void(UcudnnHandle_t)>& call) {
    constexpr long kMost = 20000;  // no call allocates as often
    long n = 1;
    do {
      UcudnnHandle_t handle;
      ASSERT_CUDNN(cudnnCreate(&handle));
      set(handle);
      hasFailed = false;
      failing = n;
      call(handle);
      failing = 0;
      call(handle);  // what is half done is done now
      ASSERT_CUDNN(cudnnDestroy(handle));
    } while (hasFailed && ++n < kMost);
    EXPECT_LT(1, n) << "nothing is allocated";
    EXPECT_LT(n, kMost);
  }
};

constexpr std::size_t kCap = std::size_t{64} << 10;

// cuDNN refuses it as it is, and it is divided, unmeasured.
TEST_F(HostMemoryTest, AFusedCallInLittleWorkspace) {
  const EnvironmentGuard setting("UCUDNN_BENCHMARK_SHARE", "0");
  Convolution convolution(fftCase(71));
  Fused fused(convolution, CUDNN_ACTIVATION_IDENTITY);
  const DeviceBuffer workspace(kCap);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1024}, kCap})
    failEach([&](UcudnnHandle_t handle) { handle.setWorkspaceLimit(kCap); },
             [&](UcudnnHandle_t handle) {
               static_cast<void>(fused.run(handle,
                                           CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                           {workspace.get(), bytes},
                                           1,
                                           0,
                                           false));
             });
}

TEST_F(HostMemoryTest, CallsOfOneWorkspaceAndOfATotal) {
  Convolution convolution(fftCase(72));
  const DeviceBuffer workspace(kCap);
  for (const std::size_t totalBytes : {std::size_t{0}, std::size_t{1} << 20})
    for (const ucudnnOperation_t operation : kOperations)
      failEach([&](UcudnnHandle_t handle) { handle.setTotalWorkspaceSize(totalBytes); },
               [&](UcudnnHandle_t handle) {
                 static_cast<void>(convolution.run(handle, operation, 1, {workspace.get(), kCap}));
               });
}

TEST_F(HostMemoryTest, LayersOnTensorsInHostMemory) {
  const std::map<std::string, std::string> settings = {{"UCUDNN_BENCHMARK_SHARE", "0"},
                                                       {"UCUDNN_LOG_LEVEL", "off"}};
  const EnvironmentGuard setting(settings);
  Convolution convolution(planeCase());
  PlacedCall tensors(convolution, kPinnedAll);
  ucudnnFusedLayer_t layer{};
  layer.size = sizeof layer;
  layer.x = convolution.xDesc();
  layer.w = convolution.wDesc();
  layer.convolution = convolution.convDesc();
  layer.y = convolution.yDesc();
  const Factors factors(CUDNN_DATA_FLOAT, 1, 1);
  failEach([&](UcudnnHandle_t handle) { handle.setDeviceMemory(kBudget); },
           [&](UcudnnHandle_t handle) {
             static_cast<void>(ucudnnFusedForward(handle,
                                                  &layer,
                                                  tensors.x().get(),
                                                  tensors.w().get(),
                                                  nullptr,
                                                  tensors.y().get(),
                                                  nullptr));
             static_cast<void>(cudnnAddTensor(handle,
                                              factors.alpha(),
                                              layer.x,
                                              tensors.x().get(),
                                              factors.beta(),
                                              layer.y,
                                              tensors.y().get()));
           });
}

}  // namespace
}  // namespace ucudnn::test
