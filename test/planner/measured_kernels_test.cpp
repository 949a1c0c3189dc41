#include "planner/measured_kernels.hpp"

#include <gtest/gtest.h>

#include "planner/planner_requests.hpp"
#include "support/measured.hpp"

namespace ucudnn {
namespace {

using test::kFft;
using test::kGemm;
using test::kWinograd;
using test::measured;
using test::withError;

void expectEqual(const Measurements& a, const Measurements& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [batch, size] : a) {
    ASSERT_EQ(b.count(batch), 1u);
    const SizeMeasurements& other = b.at(batch);
    ASSERT_EQ(size.kernels.size(), other.kernels.size());
    for (std::size_t i = 0; i < size.kernels.size(); ++i) {
      EXPECT_EQ(size.kernels[i].kernel, other.kernels[i].kernel);
      EXPECT_EQ(size.kernels[i].timeMs, other.kernels[i].timeMs);
      EXPECT_EQ(size.kernels[i].workspaceBytes, other.kernels[i].workspaceBytes);
      EXPECT_EQ(size.kernels[i].deterministic, other.kernels[i].deterministic);
      EXPECT_EQ(size.kernels[i].deviceMs, other.kernels[i].deviceMs);
    }
  }
}

TEST(MeasuredKernelsTest, AKnownErrorStaysWhereOnlyTimesAreMeasuredAgain) {
  SizeMeasurements to{{withError(measured(kGemm, 1, 10), 1e-7)}};
  addMeasurements(to, {{measured(kGemm, 2, 10)}});
  EXPECT_EQ(2, to.kernels[0].timeMs);
  EXPECT_EQ(1e-7, to.kernels[0].error);
  addMeasurements(to, {{withError(measured(kGemm, 3, 10), 2e-7)}});
  EXPECT_EQ(2e-7, to.kernels[0].error);
}

TEST(MeasuredKernelsTest, AddedMeasurementsReplaceTheirKernelsOnly) {
  SizeMeasurements to{{measured(kGemm, 1, 10, true), measured(kFft, 2, 20, true)}};
  addMeasurements(to, {{measured(kFft, 3, 25, false), measured(kWinograd, 4, 40, true)}});
  expectEqual({{1, to}},
              {{1,
                {{measured(kGemm, 1, 10, true),
                  measured(kFft, 3, 25, false),
                  measured(kWinograd, 4, 40, true)}}}});
}

}  // namespace
}  // namespace ucudnn
