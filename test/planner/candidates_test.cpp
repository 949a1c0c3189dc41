// Which kernels are candidates, of all that any question has found.
#include "planner/candidates.hpp"

#include <gtest/gtest.h>

#include "benchmark/timing_limits.hpp"
#include "kernels/engines.hpp"
#include "kernels/planes.hpp"
#include "planner/planner_requests.hpp"
#include "support/measured.hpp"

namespace ucudnn {
namespace {

using test::kFft;
using test::kGemm;
using test::kWinograd;
using test::measured;
using test::wanted;
using test::withError;

std::size_t candidatesOf(Kernels kernels, int channels, cudnnMathType_t mathType) {
  Settings settings;
  settings.kernels = kernels;
  PlanRequest request;
  request.problem = test::sampleProblem(Operation::kForward, 8, channels);
  request.problem.mathType = mathType;
  request.settings = &settings;
  const Kernel gemm{CUDNN_CONVOLUTION_FWD_ALGO_GEMM, mathType};
  const Kernel planes{CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, mathType, kPlanes};
  const Measurements known = {
      {8, {{test::measured(gemm, 2, 0, true), test::measured(planes, 1, 0, true)}}}};
  return candidates(request, known, 0, Pace::kHost).at(8).size();
}

// Where engines of blocks are faster, planes are offered without engines only. An answer must not
// depend on whether such a question came before.
TEST(CandidatesTest, PlanesAreOnlyWhereTheyAreOffered) {
  EXPECT_EQ(candidatesOf(Kernels::kLegacy, 4, CUDNN_DEFAULT_MATH), 2u);
  EXPECT_EQ(candidatesOf(Kernels::kAll, 4, CUDNN_DEFAULT_MATH), 1u);
  EXPECT_EQ(candidatesOf(Kernels::kAll, 4, CUDNN_FMA_MATH), 2u);
  EXPECT_EQ(candidatesOf(Kernels::kAll, 5, CUDNN_DEFAULT_MATH), 2u);
  EXPECT_EQ(candidatesOf(Kernels::kEngines, 5, CUDNN_DEFAULT_MATH), 0u);
}

TEST(CandidatesTest, AreNumberedByTheirPlaceInTheSize) {
  const Measurements measurements = {{2,
                                      {{measured(kGemm, 1, 10, true),
                                        measured(kFft, 2, 20, false),
                                        measured(kWinograd, 3, 30, true)}}},
                                     {4, {{measured(kFft, 4, 40, false)}}},
                                     {8, {{}}}};
  const CandidateTable all = candidates(wanted(100), measurements, 0, Pace::kHost);
  ASSERT_EQ(all.at(2).size(), 3u);
  EXPECT_EQ(all.at(2)[1].kernel, 1);
  EXPECT_EQ(all.at(2)[1].timeMs, 2);
  EXPECT_EQ(all.at(2)[1].workspaceBytes, 20u);
  EXPECT_EQ(all.at(4).size(), 1u);
  EXPECT_TRUE(all.at(8).empty());

  const CandidateTable deterministic = candidates(wanted(100, true), measurements, 0, Pace::kHost);
  ASSERT_EQ(deterministic.at(2).size(), 2u);
  EXPECT_EQ(deterministic.at(2)[1].kernel, 2) << "the place in the size, not among the candidates";
  EXPECT_TRUE(deterministic.at(4).empty());
}

TEST(CandidatesTest, BelowTheMiniBatchAreAccurate) {
  const Measurements measurements = {
      {2, {{measured(kGemm, 2, 10, true, false), measured(kFft, 1, 20)}}},
      {4, {{measured(kGemm, 4, 40, true, false)}}}};
  const CandidateTable table = candidates(wanted(100), measurements, 4, Pace::kHost);
  ASSERT_EQ(table.at(2).size(), 1u);
  EXPECT_EQ(table.at(2)[0].kernel, 1);
  EXPECT_EQ(table.at(4).size(), 1u) << "undivided it is what cuDNN runs";
  EXPECT_EQ(candidates(wanted(100), measurements, 0, Pace::kHost).at(2).size(), 2u);
}

// A kernel's error is that of its size, else the largest of any: only a filter gradient's differ.
TEST(CandidatesTest, AreWithinTheLargestError) {
  const Measurements measurements = {
      {1,
       {{withError(measured(kGemm, 1, 0), 1e-7),
         withError(measured(kFft, 1, 0, true, false), 8e-6),
         measured(kWinograd, 1, 0)}}},
      {2, {{measured(kGemm, 2, 0), measured(kFft, 2, 0), measured(kWinograd, 2, 0)}}},
      {4, {{withError(measured(kGemm, 4, 0), 9e-6), measured(kFft, 4, 0)}}}};
  const auto kernelsWithin = [&](double maxError, int batch) {
    Settings settings;
    settings.maxError = maxError;
    PlanRequest request = wanted(100);
    request.settings = &settings;
    const CandidateTable table = candidates(request, measurements, 0, Pace::kHost);
    std::vector<int> kernels;
    for (const Candidate& candidate : table.at(batch)) kernels.push_back(candidate.kernel);
    return kernels;
  };
  using Kernels = std::vector<int>;
  EXPECT_EQ((Kernels{0, 1}), kernelsWithin(1e-2, 1)) << "what is not known may be any";
  EXPECT_EQ((Kernels{0, 1}), kernelsWithin(1e-5, 1)) << "whatever its name";
  EXPECT_EQ((Kernels{0}), kernelsWithin(9e-6, 1)) << "a quarter may come to it";
  EXPECT_EQ((Kernels{}), kernelsWithin(1e-7, 1));
  EXPECT_EQ((Kernels{1}), kernelsWithin(1e-5, 2)) << "the largest at any size";
  EXPECT_EQ((Kernels{0, 1}), kernelsWithin(1.2e-5, 4));
  EXPECT_EQ((Kernels{1}), kernelsWithin(1e-5, 4)) << "its own";
  EXPECT_EQ((Kernels{0, 1, 2}), kernelsWithin(0, 2)) << "none is stated";
}

// An engine's call takes the host a third of an algorithm's.
TEST(CandidatesTest, OfKernelsAboutAsFastHaveTheEngine) {
  const Kernel engine{0, CUDNN_FMA_MATH, kEngines};
  const auto kernelsAt = [&](Measurement algorithm, Measurement other, bool anyCall = false) {
    other.anyCall = false;
    PlanRequest request = wanted(100);
    request.calls = anyCall ? CallKind::kOther : CallKind::kAdding;
    const CandidateTable table = candidates(request, {{8, {{algorithm, other}}}}, 0, Pace::kHost);
    std::vector<Kernel> kernels;
    for (const Candidate& candidate : table.at(8))
      kernels.push_back(candidate.kernel == 0 ? algorithm.kernel : other.kernel);
    return kernels;
  };
  const std::vector<Kernel> both{kFft, engine}, one{engine};
  EXPECT_EQ(one, kernelsAt(measured(kFft, 1, 10), measured(engine, 1.009, 10)));
  EXPECT_EQ(both, kernelsAt(measured(kFft, 1, 10), measured(engine, 1.02, 10)));
  EXPECT_EQ(both, kernelsAt(measured(kFft, 1, 10), measured(engine, 1, 11))) << "needs more";
  EXPECT_EQ(both, kernelsAt(measured(kFft, 1, 10), measured(engine, 1, 10, false)))
      << "what it adds up comes in any order";
  EXPECT_EQ(both, kernelsAt(measured(kFft, 1, 10), measured(engine, 1, 10, true, false)));
  EXPECT_EQ((std::vector<Kernel>{kFft, kGemm}),
            kernelsAt(measured(kFft, 1, 10), measured(kGemm, 1, 10)));
  EXPECT_EQ(std::vector<Kernel>{kFft},
            kernelsAt(measured(kFft, 1, 10), measured(engine, 1, 10), true))
      << "a call that suits no engine";
}

TEST(CandidatesTest, TakeWhatTheDeviceNeedsAtItsPace) {
  const Measurements measurements = {
      {4, {{measured(kGemm, 2, 0, true, true, 1)}}},
      {8, {{measured(kGemm, 3, 0, true, true, 2.9), measured(kFft, 3, 0, true, true, 3)}}}};
  const CandidateTable host = candidates(wanted(100), measurements, 0, Pace::kHost);
  EXPECT_EQ(host.at(4)[0].timeMs, 2);
  EXPECT_EQ(host.at(8)[0].timeMs, 3);
  const CandidateTable device = candidates(wanted(100), measurements, 0, Pace::kDevice);
  EXPECT_EQ(device.at(4)[0].timeMs, 1);
  EXPECT_EQ(device.at(8)[0].timeMs, 2.9 + kReplayMs);
  EXPECT_EQ(device.at(8)[1].timeMs, 3) << "a graph gains nothing";
}

}  // namespace
}  // namespace ucudnn
