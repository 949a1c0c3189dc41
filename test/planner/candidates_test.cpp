// Which kernels are candidates, of all that any question has found.
#include <gtest/gtest.h>

#include "kernels/planes.hpp"
#include "planner/conversion.hpp"
#include "support/measured.hpp"
#include "support/problems.hpp"

namespace ucudnn {
namespace {

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

}  // namespace
}  // namespace ucudnn
