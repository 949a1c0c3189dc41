#include <functional>
#include <vector>

#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

TEST(SimulatedFaultTest, TheChosenCallFailsAndNoOther) {
  const std::function<cudaError_t()> call = [] { return cudaSetDevice(0); };
  for (int chosen = 1; chosen <= 4; ++chosen) {
    failCall(chosen);
    for (int i = 1; i <= 5; ++i) {
      EXPECT_EQ(call(), i == chosen ? cudaErrorUnknown : cudaSuccess);
    }
    EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }
  failCall(1);
  failCall(0);
  EXPECT_CUDA(call());
}

TEST(SimulatedFaultTest, CallsAreCountedByName) {
  const std::int64_t all = callCount();
  const std::int64_t named = callCount("cudaSetDevice");
  EXPECT_CUDA(cudaSetDevice(0));
  int device = 0;
  EXPECT_CUDA(cudaGetDevice(&device));
  cudaGetLastError();
  EXPECT_EQ(callCount(), all + 2);
  EXPECT_EQ(callCount("cudaSetDevice"), named + 1);
}

TEST(SimulatedFaultTest, AllocationsFailForLackOfMemoryAndHaveNoEffect) {
  const std::size_t before = liveBytes();
  void* pointer = &pointer;
  failCall(1);
  EXPECT_EQ(cudaMalloc(&pointer, 64), cudaErrorMemoryAllocation);
  EXPECT_EQ(pointer, &pointer);
  EXPECT_EQ(liveBytes(), before);
}

TEST(SimulatedFaultTest, WhatFailsToBeDestroyedIsDestroyedAllTheSame) {
  const std::int64_t before = liveHandles();
  void* pointer = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_CUDA(cudaMalloc(&pointer, 64));
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDA(cudaEventCreate(&event));
  EXPECT_EQ(liveHandles(), before + 3);
  failCall(1);
  EXPECT_EQ(cudaFree(pointer), cudaErrorUnknown);
  failCall(1);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorUnknown);
  failCall(1);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorUnknown);
  EXPECT_EQ(liveHandles(), before);
}

}  // namespace
}  // namespace ucudnn::test
