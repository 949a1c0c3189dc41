// Which kernels a problem has, as its transform allows: on the simulator, and on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"
#include "support/device.hpp"
#include "support/operations.hpp"
#include "support/problems.hpp"
#include "support/simulator.hpp"

namespace ucudnn {
namespace {

bool isOf(const std::string& text, const char* name) {
  return text.rfind(name, 0) == 0;
}

/// Those that need the legacy algorithms' workspaces on an H200 (misc/profiles), with cuDNN 9.19.
bool isFourierEngine(Operation operation, const std::string& text) {
  return operation == Operation::kForward        ? isOf(text, "eng3_")
         : operation == Operation::kBackwardData ? text == "eng50"
                                                 : isOf(text, "eng18_");
}
bool isWinogradEngine(Operation operation, const std::string& text) {
  return operation == Operation::kBackwardFilter && isOf(text, "eng17_");
}

class TransformsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::hasDevice()) GTEST_SKIP() << "no device";
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  }

  /// The second layer of ResNet-18, of which an H200 has all of them (misc/profiles).
  static Problem problemOf(Operation operation, Transform transform) {
    constexpr int kBatch = 128, kChannels = 64, kSize = 56;
    Problem problem = test::sampleProblem(operation, kBatch, kChannels);
    problem.xSizes = problem.ySizes = {kBatch, kChannels, kSize, kSize};
    problem.xStrides = problem.yStrides = {kChannels * kSize * kSize, kSize * kSize, kSize, 1};
    problem.transform = transform;
    return problem;
  }

  std::vector<std::string> offered(const Problem& problem) const {
    return textsOf(problem,
                   offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true));
  }
  std::vector<std::string> ranked(const Problem& problem) const {
    return textsOf(problem,
                   rankedAlgorithms(handle_.get(), problem, ProblemDescriptors(problem).get()));
  }

  template <typename Is>
  static bool has(const std::vector<std::string>& texts, Is is) {
    return std::any_of(texts.begin(), texts.end(), is);
  }
  static bool hasFourier(const std::vector<std::string>& texts) {
    return has(texts, [](const std::string& text) { return isOf(text, "FFT"); });
  }
  static bool hasWinograd(const std::vector<std::string>& texts) {
    return has(texts, [](const std::string& text) { return isOf(text, "WINOGRAD"); });
  }

 private:
  static std::vector<std::string> textsOf(const Problem& problem,
                                          const std::vector<KernelOffer>& offers) {
    std::vector<std::string> texts;
    texts.reserve(offers.size());
    for (const KernelOffer& offer : offers)
      texts.push_back(toText(problem.operation, offer.kernel));
    return texts;
  }

  CudnnHandle handle_;
};

TEST_F(TransformsTest, AlgorithmsAreThoseThatAreAllowed) {
  for (const Operation operation : kOperations)
    for (const Transform least : {Transform::kWinograd, Transform::kFourier, Transform::kNone}) {
      const Problem problem = problemOf(operation, least);
      SCOPED_TRACE(problem.text());
      for (const auto& texts : {offered(problem), ranked(problem)}) {
        EXPECT_EQ(hasWinograd(texts), problem.allows(Transform::kWinograd));
        EXPECT_EQ(hasFourier(texts), problem.allows(Transform::kFourier));
        EXPECT_FALSE(texts.empty());
      }
    }
}

// cuDNN gives notes of these engines only where the device is.
TEST_F(TransformsTest, EnginesAreThoseThatAreAllowed) {
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  const bool isH200 = std::string(properties.name).find("H200") != std::string::npos;
  if (!isH200 || (!test::onSimulator() && cudnnGetVersion() != 91900))
    GTEST_SKIP() << "engines of another device, or of another cuDNN";
  for (const Operation operation : kOperations)
    for (const Transform least : {Transform::kWinograd, Transform::kFourier, Transform::kNone}) {
      const Problem problem = problemOf(operation, least);
      SCOPED_TRACE(problem.text());
      const auto texts = offered(problem);
      const auto isFourier = [&](const auto& text) { return isFourierEngine(operation, text); };
      const auto isWinograd = [&](const auto& text) { return isWinogradEngine(operation, text); };
      EXPECT_EQ(has(texts, isFourier), problem.allows(Transform::kFourier));
      EXPECT_EQ(has(texts, isWinograd),
                problem.allows(Transform::kWinograd) && operation == Operation::kBackwardFilter);
      EXPECT_TRUE(has(texts, [&](const std::string& text) {
        return isOf(text, "eng") && !isFourier(text) && !isWinograd(text);
      }));
    }
}

}  // namespace
}  // namespace ucudnn
