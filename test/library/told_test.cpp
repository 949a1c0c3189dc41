// The workspace that a client is told for an algorithm is the algorithm's need.
#include <algorithm>
#include <optional>

#include "../support/simulator.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kGranularity = 512;  // misc/docs/CLIENTS.md, "At run time", 12
constexpr std::size_t kAllMemory = std::size_t{64} << 30;
constexpr int kAlgorithms = 8;  // cuDNN has at most 8 of an operation
constexpr std::size_t kMebibyte = std::size_t{1} << 20;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kGranularity - 1) / kGranularity * kGranularity;
}

class ToldTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    setArithmetic(Arithmetic::kOff);
  }
  void TearDown() override {
    setMemory(0, kAllMemory);
    LibraryTest::TearDown();
  }

  /// cuDNN's own, rounded; empty: it does not have the algorithm.
  static std::optional<std::size_t> needOf(const Handles& handles,
                                           const Convolution& convolution,
                                           ucudnnOperation_t operation,
                                           int algorithm) {
    std::size_t bytes = 0;
    if (convolution.workspaceSize(handles.native, operation, algorithm, &bytes) !=
        CUDNN_STATUS_SUCCESS)
      return std::nullopt;
    return rounded(bytes);
  }
  static std::size_t told(const Handles& handles,
                          const Convolution& convolution,
                          ucudnnOperation_t operation,
                          int algorithm) {
    std::size_t bytes = SIZE_MAX;
    EXPECT_CUDNN(convolution.workspaceSize(handles.ours, operation, algorithm, &bytes));
    return bytes;
  }
};

TEST_F(ToldTest, UnmeasuredEachAlgorithmNeedsWhatItNeeds) {
  const EnvironmentGuard never("UCUDNN_BENCHMARK_SHARE", "0");
  const Handles handles;
  for (const std::size_t freeBytes : {kAllMemory, 100 * kMebibyte}) {
    Convolution convolution(largeCase(64), Convolution::Contents::kAny);
    if (onSimulator()) setMemory(0, freeBytes);
    for (const ucudnnOperation_t operation : kOperations) {
      SCOPED_TRACE(toText(operation));
      std::vector<Performance> listed;
      ASSERT_CUDNN(convolution.query(handles.ours, operation, Query::kGet, 8, &listed));
      ASSERT_FALSE(listed.empty());
      for (const Performance& entry : listed)
        EXPECT_EQ(entry.memory, told(handles, convolution, operation, entry.algorithm));
      std::size_t largest = 0;
      for (int algorithm = 0; algorithm < kAlgorithms; ++algorithm)
        if (const auto need = needOf(handles, convolution, operation, algorithm)) {
          EXPECT_EQ(*need, told(handles, convolution, operation, algorithm)) << algorithm;
          largest = std::max(largest, *need);
        }
      EXPECT_LT(0U, largest);
    }
    setMemory(0, kAllMemory);
  }
}

TEST_F(ToldTest, UnmeasuredNoAlgorithmIsToldOfMoreThanACap) {
  const EnvironmentGuard never("UCUDNN_BENCHMARK_SHARE", "0");
  const EnvironmentGuard cap("UCUDNN_WORKSPACE_LIMIT", "8MiB");
  const Handles handles;
  const Convolution convolution(largeCase(64), Convolution::Contents::kAny);
  for (const ucudnnOperation_t operation : kOperations)
    for (int algorithm = 0; algorithm < kAlgorithms; ++algorithm)
      if (const auto need = needOf(handles, convolution, operation, algorithm)) {
        EXPECT_EQ(std::min(*need, 8 * kMebibyte), told(handles, convolution, operation, algorithm))
            << toText(operation) << " " << algorithm;
      }
}

/// The others run, too, where memory is too short for the plan.
TEST_F(ToldTest, MeasuredTheNamedAlgorithmAloneIsToldOfThePlan) {
  const Handles handles;
  Convolution convolution(largeCase(32), Convolution::Contents::kAny);
  bool planNeedsMore = false;
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    std::vector<Performance> listed;
    ASSERT_CUDNN(convolution.query(handles.ours, operation, Query::kGet, 8, &listed));
    ASSERT_FALSE(listed.empty());
    const Performance& named = listed.front();
    EXPECT_EQ(named.memory, told(handles, convolution, operation, named.algorithm));
    for (int algorithm = 0; algorithm < kAlgorithms; ++algorithm) {
      const auto need = needOf(handles, convolution, operation, algorithm);
      if (!need || algorithm == named.algorithm) continue;
      EXPECT_EQ(*need, told(handles, convolution, operation, algorithm)) << algorithm;
      planNeedsMore = planNeedsMore || *need < named.memory;
    }
  }
  if (onSimulator()) {
    EXPECT_TRUE(planNeedsMore) << "nothing is shown by this";
  }
}

}  // namespace
}  // namespace ucudnn::test
