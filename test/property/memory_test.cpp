// Device memory that the library takes beyond the caller's while it measures: none in FindEx, whose
// caller gives buffers; elsewhere at most UCUDNN_BENCHMARK_MEMORY.
#include <gtest/gtest.h>

#include "../library/fixture.hpp"
#include "../support/simulator.hpp"
#include "forked.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{16} << 20;
constexpr int kCalls = 60;  // measuring may come with a later call

ConvolutionCase caseOf(cudnnMathType_t math, int channels, int image) {
  ConvolutionCase c;
  c.math = math;
  c.batch = 128;
  c.channels = channels;
  c.filters = channels;
  c.input = {image, image};
  c.filter = {5, 5};
  c.pad = {2, 2};
  return c;
}
/// Tensors of 26 MB, larger than any setting here.
const ConvolutionCase kLarge = caseOf(CUDNN_FMA_MATH, 64, 28);
/// On tensor cores cuDNN's heuristics choose another algorithm than that of the fastest split may
/// be.
const ConvolutionCase kTensor = caseOf(CUDNN_DEFAULT_MATH, 64, 14);

/// The peak of memory that was taken while `act` ran, beside what was taken before.
std::size_t extraBytes(const ConvolutionCase& parameters,
                       const std::map<std::string, std::string>& environment,
                       const std::function<void(Convolution&, const Handles&, Workspace)>& act) {
  const EnvironmentGuard guard(environment);
  const ForkResult result = runForked(
      [&](const Answer& answer) {
        setArithmetic(Arithmetic::kOff);
        const Handles handles;
        Convolution convolution(parameters, Convolution::Contents::kAny);
        const DeviceBuffer workspace(kLimit);
        const std::size_t before = liveBytes();
        startPeak();
        act(convolution, handles, {workspace.get(), workspace.bytes()});
        answer.write(std::to_string(peakBytes() - before));
      },
      60);
  EXPECT_EQ("", result.output);
  EXPECT_EQ(0, result.status) << result.answer;
  return result.status == 0 ? std::stoull(result.answer) : 0;
}

class MemoryTest : public ::testing::TestWithParam<ucudnnOperation_t> {
 protected:
  void SetUp() override {
    if (!onSimulator()) GTEST_SKIP() << "only the simulator says what was taken";
  }
};

TEST_P(MemoryTest, FindExTakesNone) {
  for (const char* policy : {"undivided", "powerOfTwo", "all"})
    for (const ConvolutionCase& parameters : {kLarge, kTensor})
      for (const char* times : {"0", "1", "2", "3"})
        for (const std::size_t limit : {0, 1 << 20, 4 << 20, 16 << 20}) {
          const auto find = [&](Convolution& convolution, const Handles& handles, Workspace held) {
            std::vector<Performance> found;
            held.bytes = limit;
            EXPECT_CUDNN(
                convolution.query(handles.ours, GetParam(), Query::kFindEx, 8, &found, held));
          };
          EXPECT_EQ(0U,
                    extraBytes(parameters,
                               {{"UCUDNN_BATCH_SIZE_POLICY", policy},
                                {"UCUDNN_SIMULATOR_RANDOM_TIMES", times}},
                               find))
              << policy << ", \"" << parameters.serialized() << "\" within " << limit
              << ", random times " << times;
        }
}

TEST_P(MemoryTest, QueriesAndCallsTakeNoMoreThanTheSetting) {
  for (const char* policy : {"powerOfTwo", "all"})
    for (const std::size_t most : {0, 1 << 20, 16 << 20})
      for (const bool asks : {false, true}) {
        const auto use = [&](Convolution& convolution, const Handles& handles, Workspace held) {
          int algorithm = 0;
          if (asks) {
            EXPECT_CUDNN(
                convolution.queryPreferred(handles.ours, GetParam(), 2, kLimit, &algorithm));
          }
          for (int i = 0; i < kCalls; ++i)
            EXPECT_CUDNN(convolution.run(handles.ours, GetParam(), algorithm, held));
        };
        EXPECT_GE(most,
                  extraBytes(kLarge,
                             {{"UCUDNN_BATCH_SIZE_POLICY", policy},
                              {"UCUDNN_BENCHMARK_MEMORY", std::to_string(most)}},
                             use))
            << policy << (asks ? ", asked" : ", not asked");
      }
}

INSTANTIATE_TEST_SUITE_P(Operations, MemoryTest, ::testing::ValuesIn(kOperations));

}  // namespace
}  // namespace ucudnn::test
