// Calls that fail, threads that can't be made.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

#include "benchmark_fixture.hpp"
#include "cuda/error.hpp"

namespace {
std::atomic<bool> noMoreThreads{false};
std::atomic<int> refusedThreads{0};
}  // namespace

/// Stands before libc's: as if the process had as many threads as it may.
extern "C" int pthread_create(pthread_t* thread,
                              const pthread_attr_t* attributes,
                              void* (*function)(void*),
                              void* argument) {
  if (noMoreThreads) {
    ++refusedThreads;
    return EAGAIN;
  }
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, function, argument);
}

namespace ucudnn::test {
namespace {

class BenchmarkFailureTest : public BenchmarkTest {
 protected:
  /// The n-th CUDA or cuDNN call fails.
  BenchmarkResult runWithFailure(const BenchmarkRequest& request, std::int64_t n) {
    struct Cleanup {
      ~Cleanup() {
        failCall(0);
        EXPECT_EQ(0U, liveBytes());
        static_cast<void>(cudaGetLastError());  // of what was given back when it failed
      }
    };
    const Cleanup cleanup;
    failCall(n);
    return run(request);
  }
};

/// Each call of a benchmark in turn: no kernel is lost without a word.
TEST_F(BenchmarkFailureTest, AFailureIsNotTakenForAKernelThatIsNotOffered) {
  BenchmarkRequest request = question(8, kLimit);
  const BenchmarkResult expected = run(request);
  const auto before = callCount();
  run(request);
  const auto calls = callCount() - before;
  int reported = 0, thrown = 0;
  for (std::int64_t n = 1; n <= calls; ++n) {
    try {
      const BenchmarkResult result = runWithFailure(request, n);
      EXPECT_TRUE(result.refused.empty()) << n;
      const bool isComplete = result.failures == 0 && result.untried == Untried::kNone;
      if (!isComplete) {
        ++reported;
        continue;
      }
      EXPECT_TRUE(includes(kernelsOf(result.measurements), offered(8, kLimit))) << n;
      EXPECT_TRUE(result.undividedMeasured) << n;
    } catch (const Error&) {
      ++thrown;
    }
  }
  EXPECT_LT(static_cast<int>(kernelsOf(expected.measurements).size()), reported);
  EXPECT_LT(thrown, calls / 4);
}

TEST_F(BenchmarkFailureTest, ATensorThatIsNotHandedOverSaysNothingOfTheKernels) {
  BenchmarkRequest request = question(8, kLimit);
  const DeviceBuffer w(request.problem.wBytes()), y(request.problem.yBytes()), workspace(kLimit);
  const TensorBuffers buffers{nullptr, w.get(), y.get(), workspace.get(), kLimit};
  request.buffers = &buffers;
  const BenchmarkResult result = run(request);
  EXPECT_LT(0, result.failures);
  EXPECT_TRUE(result.refused.empty());
  EXPECT_EQ(0, result.kernelsMeasured);
  EXPECT_FALSE(result.undividedMeasured);
}

TEST_F(BenchmarkFailureTest, WithoutAThreadEverythingIsMeasuredHere) {
  BenchmarkRequest request = question(32, kLimit);
  const BenchmarkResult expected = run(request);
  request.devices = {5};  // which has no thread yet
  noMoreThreads = true;
  BenchmarkResult result;
  EXPECT_NO_THROW(result = run(request));
  noMoreThreads = false;
  EXPECT_LT(0, refusedThreads);
  EXPECT_EQ(kernelsOf(expected.measurements), kernelsOf(result.measurements));
  EXPECT_TRUE(result.undividedMeasured);
}

}  // namespace
}  // namespace ucudnn::test
