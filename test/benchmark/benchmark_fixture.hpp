// A question about AlexNet's second convolution, on the simulator.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "benchmark/question.hpp"
#include "kernels/source.hpp"
#include "support/block_copies.hpp"
#include "support/problems.hpp"
#include "support/simulator.hpp"

namespace ucudnn::test {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kLimit = 64 * kMebibyte;

/// Its fast algorithms need workspace: the fastest 55.5 MiB for 32 samples, 31.7 MiB for 16.
inline Problem conv2(int batch, Operation operation = Operation::kForward) {
  constexpr int kImage = 27 * 27;
  Problem problem = sampleProblem(operation, batch, 64);
  problem.xSizes = {batch, 64, 27, 27, 0};
  problem.xStrides = {64 * kImage, kImage, 27, 1, 0};
  problem.ySizes = {batch, 192, 27, 27, 0};
  problem.yStrides = {192 * kImage, kImage, 27, 1, 0};
  problem.wSizes = {192, 64, 5, 5, 0};
  problem.pads = {2, 2, 0};
  return problem;
}

inline std::vector<int> powersUpTo(int batch) {
  std::vector<int> sizes;
  for (int size = 1; size < batch; size *= 2) sizes.push_back(size);
  sizes.push_back(batch);
  return sizes;
}

inline std::vector<int> allUpTo(int batch) {
  std::vector<int> sizes;
  for (int size = 1; size <= batch; ++size) sizes.push_back(size);
  return sizes;
}

/// Batch sizes and algorithms.
using KernelsFound = std::set<std::pair<int, int>>;

inline KernelsFound kernelsOf(const Measurements& measurements) {
  KernelsFound kernels;
  for (const auto& [batch, size] : measurements)
    for (const Measurement& m : size.kernels) kernels.emplace(batch, m.kernel.id);
  return kernels;
}

inline bool includes(const KernelsFound& all, const KernelsFound& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

inline void addTo(Measurements& known, const Measurements& more) {
  for (const auto& [batch, size] : more) {
    auto& kernels = known[batch].kernels;
    kernels.insert(kernels.end(), size.kernels.begin(), size.kernels.end());
  }
}

/// The device has not been touched since.
class Untouched {
 public:
  void expect() const {
    for (std::size_t i = 0; i < std::size(kCalls); ++i)
      EXPECT_EQ(before_[i], callCount(kCalls[i])) << kCalls[i];
  }

 private:
  static constexpr const char* kCalls[] = {"cudaMalloc",
                                           "cudaFree",
                                           "cudaEventCreate",
                                           "cudaEventRecord",
                                           "cudaEventSynchronize",
                                           "cudaStreamSynchronize",
                                           "cudaMemcpyAsync",
                                           "cudnnConvolutionForward"};
  std::vector<std::int64_t> before_ = [] {
    std::vector<std::int64_t> counts;
    for (const char* call : kCalls) counts.push_back(callCount(call));
    return counts;
  }();
};

class BenchmarkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onSimulator()) GTEST_SKIP() << "needs the simulator's virtual time";
    setArithmetic(arithmetic_);
    if (arithmetic_ == Arithmetic::kOff) expectNoBlockCopies();
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  }
  void TearDown() override {
    setArithmetic(Arithmetic::kFull);
    for (const int device : {0, 1}) setMemory(device, SIZE_MAX);
  }

  static BenchmarkRequest question(int batch, std::size_t limitBytes) {
    BenchmarkRequest request;
    request.problem = conv2(batch);
    request.sizes = powersUpTo(batch);
    request.room.limitBytes = limitBytes;
    return request;
  }

  BenchmarkResult run(const BenchmarkRequest& request) {
    return benchmarkKernels(handle_.get(), request);
  }

  /// About which cuDNN has been asked.
  Question questionOf(const BenchmarkRequest& request) {
    Question asked(request);
    while (asked.askNext(handle_.get())) {
    }
    return asked;
  }

  /// Nothing is left to be measured, and the device is not touched.
  BenchmarkResult runUntouched(const BenchmarkRequest& request) {
    const Untouched untouched;
    BenchmarkResult result = run(request);
    untouched.expect();
    EXPECT_EQ(0, result.kernelsMeasured);
    return result;
  }

  /// Every kernel that cuDNN offers at a size within a limit.
  KernelsFound offered(int batch, std::size_t limitBytes) {
    const ProblemDescriptors descriptors(conv2(batch));
    KernelsFound kernels;
    for (const auto& offer : offeredKernels(handle_.get(), conv2(batch), descriptors.get(), false))
      if (offer.workspaceBytes <= limitBytes) kernels.emplace(batch, offer.kernel.id);
    return kernels;
  }

  Arithmetic arithmetic_ = Arithmetic::kOff;
  CudnnHandle handle_;
};

}  // namespace ucudnn::test
