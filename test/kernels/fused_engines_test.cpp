// Engines for bias_activation_forward: which calls suit them, and what this cuDNN has.
#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "cuda/owners.hpp"
#include "engines_fixture.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/factor.hpp"
#include "problem/activation.hpp"

namespace ucudnn {
namespace {

using namespace test;

constexpr std::int16_t kActivations[] = {
    CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY, kReluKeepingNans};

/// 4 samples of 3 channels of 2 x 2: y has 48 elements.
Problem smallFused(bool addsZ, std::int16_t activation) {
  Problem problem = convolution(Operation::kBiasActivationForward, 4, 3, 3, 2, 1);
  problem.addsZ = addsZ ? 1 : 0;
  problem.activation = activation;
  return problem;
}

/// A call with descriptors of its own, which suits engines as it is.
class FusedCall {
 public:
  explicit FusedCall(const Problem& problem) : problem_(problem) {
    setBias(CUDNN_DATA_FLOAT, {1, 3, 1, 1}, {3, 1, 1, 1});
    setNan(nansOf(problem));
    pointers.alpha = Factor::one(problem).get();
    pointers.beta = (problem.addsZ != 0 ? Factor::one(problem) : Factor::zero(problem)).get();
    pointers.x = &memory[0];
    pointers.w = &memory[64];
    pointers.y = y();
    fused = {nullptr, y() + 48, bias_.get(), &memory[240], activation_.get()};
  }

  float* y() { return &memory[128]; }
  void setBias(cudnnDataType_t type, std::array<int, 4> sizes, std::array<int, 4> strides) {
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetTensorNdDescriptor(bias_.get(), type, 4, sizes.data(), strides.data()));
  }
  void setNan(cudnnNanPropagation_t nan) {
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetActivationDescriptor(activation_.get(), modeOf(problem_), nan, 6));
  }
  void setOtherNan() {
    setNan(isOfGraphs(problem_) ? CUDNN_NOT_PROPAGATE_NAN : CUDNN_PROPAGATE_NAN);
  }
  bool suits() const { return suitsEngines(problem_, pointers, &fused); }

  ConvolutionPointers pointers;
  BiasActivation fused;

 private:
  Problem problem_;
  alignas(16) std::array<float, 256> memory{};
  TensorDescriptor bias_ = makeOwned<TensorDescriptor>(cudnnCreateTensorDescriptor);
  ActivationDescriptor activation_ =
      makeOwned<ActivationDescriptor>(cudnnCreateActivationDescriptor);
};

TEST(SuitsFusedEnginesTest, CallsThatAGraphHas) {
  enum Suits { kAlways, kNever, kWithoutZ, kWithoutActivation };
  struct Row {
    const char* name;
    Suits suits;
    std::function<void(FusedCall&)> change;
  };
  const float half = 0.5F;
  const auto bias = [](cudnnDataType_t type, std::array<int, 4> sizes, std::array<int, 4> strides) {
    return [=](FusedCall& c) { c.setBias(type, sizes, strides); };
  };
  const auto zAt = [](int place) { return [=](FusedCall& c) { c.fused.z = c.y() + place; }; };
  const Row rows[] = {
      {"as it is", kAlways, [](FusedCall&) {}},
      {"bias aligned as a float", kAlways, [](FusedCall& c) { c.fused.bias = c.y() - 1; }},
      {"no bias", kNever, [](FusedCall& c) { c.fused.bias = nullptr; }},
      {"bias of doubles", kNever, bias(CUDNN_DATA_DOUBLE, {1, 3, 1, 1}, {3, 1, 1, 1})},
      {"bias with gaps", kNever, bias(CUDNN_DATA_FLOAT, {1, 3, 1, 1}, {6, 2, 1, 1})},
      {"bias for each pixel", kNever, bias(CUDNN_DATA_FLOAT, {1, 3, 2, 2}, {12, 1, 6, 3})},
      {"bias with channels last", kAlways, bias(CUDNN_DATA_FLOAT, {1, 3, 1, 1}, {3, 1, 3, 3})},
      {"another alpha", kNever, [&](FusedCall& c) { c.pointers.alpha = &half; }},
      {"another alpha2", kNever, [&](FusedCall& c) { c.pointers.beta = &half; }},
      {"other NaNs", kWithoutActivation, [](FusedCall& c) { c.setOtherNan(); }},
      {"z in place", kWithoutZ, zAt(0)},
      {"z begins in y", kWithoutZ, zAt(44)},
      {"z ends in y", kWithoutZ, zAt(-44)},
      {"z right before y", kAlways, zAt(-48)},
      {"z that is not aligned", kWithoutZ, zAt(49)},
      {"no z", kWithoutZ, [](FusedCall& c) { c.fused.z = nullptr; }},
  };
  for (const bool addsZ : {false, true})
    for (const std::int16_t activation : kActivations)
      for (const Row& row : rows) {
        FusedCall call(smallFused(addsZ, activation));
        row.change(call);
        const bool isExpected =
            row.suits == kAlways || (row.suits == kWithoutZ && !addsZ) ||
            (row.suits == kWithoutActivation && activation == CUDNN_ACTIVATION_IDENTITY);
        EXPECT_EQ(isExpected, call.suits())
            << row.name << ", adds z " << addsZ << ", activation " << activation;
      }
}

// As cuDNN's manual has it of its fused call.
TEST(FusedAlgorithmsTest, NoneMayRunForActivationsOfGraphs) {
  for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++algorithm) {
    EXPECT_TRUE(mayRun(smallFused(false, CUDNN_ACTIVATION_RELU), algorithm)) << algorithm;
    for (const std::int16_t activation : {kReluKeepingNans, kClippedRelu, kElu, kLeakyRelu})
      EXPECT_FALSE(mayRun(smallFused(false, activation), algorithm)) << algorithm;
  }
}

class FusedEnginesTest : public EnginesTest {
 protected:
  /// Calls check(problem) with and without z and activation.
  template <typename Check>
  static void forEachVariant(Problem problem, Check check) {
    problem.operation = Operation::kBiasActivationForward;
    for (problem.addsZ = 0; problem.addsZ < 2; ++problem.addsZ)
      for (const std::int16_t activation : kActivations) {
        problem.activation = activation;
        SCOPED_TRACE(problem.text());
        check(problem);
      }
  }

  void expectSomeThatCanBeBuilt(const Problem& problem, std::size_t atLeast) {
    forEachVariant(problem, [&](const Problem& variant) {
      const auto found = offers(variant);
      EXPECT_GE(found.size(), atLeast);
      for (const KernelOffer& offer : found) EXPECT_FALSE(offer.anyCall);
      expectBuilt(variant, found);
    });
  }
};

Problem large() {
  return convolution(Operation::kForward, 64, 64, 192, 27, 5);
}

void layOutNhwc(Problem& problem) {
  const auto strides = [](const Problem::Sizes& sizes) {
    const std::int64_t pixel = sizes[1], row = pixel * sizes[3];
    return Problem::Strides{row * sizes[2], 1, row, pixel};
  };
  problem.wFormat = CUDNN_TENSOR_NHWC;
  problem.xStrides = strides(problem.xSizes);
  problem.yStrides = strides(problem.ySizes);
}

TEST_F(FusedEnginesTest, FloatHasSeveral) {
  Problem problem = large();
  expectSomeThatCanBeBuilt(problem, 6);
  layOutNhwc(problem);
  expectSomeThatCanBeBuilt(problem, 6);
}

/// So a call under the smallest limit has one, too.
TEST_F(FusedEnginesTest, OneNeedsNoWorkspace) {
  forEachVariant(large(), [&](const Problem& problem) {
    const auto found = offers(problem);
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const KernelOffer& offer) {
      return offer.workspaceBytes == 0;
    }));
  });
}

TEST_F(FusedEnginesTest, HalfAndBfloat16HaveSomeInBothLayoutsAndDoubleToo) {
  for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE}) {
    Problem problem = large();
    problem.xType = problem.wType = problem.yType = type;
    if (type == CUDNN_DATA_DOUBLE) problem.computeType = type;
    expectSomeThatCanBeBuilt(problem, 1);
    if (type == CUDNN_DATA_DOUBLE) continue;
    layOutNhwc(problem);
    expectSomeThatCanBeBuilt(problem, 1);
  }
}

TEST_F(FusedEnginesTest, OddSamplesStridesGroupsDilationsAndThreeDimensionsHaveSome) {
  Problem odd = convolution(Operation::kForward, 5, 3, 8, 13, 3);
  Problem strided = convolution(Operation::kForward, 8, 16, 16, 17, 3);
  strided.strides = {2, 2};
  strided.ySizes = {8, 16, 9, 9};
  strided.yStrides = {16 * 81, 81, 9, 1};
  Problem grouped = convolution(Operation::kForward, 8, 32, 32, 14, 3);
  grouped.groups = 4;
  grouped.wSizes[1] = 8;
  Problem dilated = convolution(Operation::kForward, 8, 16, 16, 14, 3);
  dilated.dilations = dilated.pads = {2, 2};
  Problem volume = convolution(Operation::kForward, 2, 16, 16, 12, 3);
  volume.dimensions = 5;
  volume.xSizes = volume.ySizes = {2, 16, 12, 12, 12};
  volume.xStrides = volume.yStrides = {16 * 1728, 1728, 144, 12, 1};
  volume.wSizes = {16, 16, 3, 3, 3};
  volume.pads = volume.strides = volume.dilations = {1, 1, 1};
  for (const Problem& problem : {odd, strided, grouped, dilated, volume})
    expectSomeThatCanBeBuilt(problem, 1);
}

/// Its tensor core engines compute in TF32, which FMA does not allow.
TEST_F(FusedEnginesTest, FmaHasThoseWithoutTensorCores) {
  Problem fma = large();
  fma.mathType = CUDNN_FMA_MATH;
  expectSomeThatCanBeBuilt(fma, 1);
  forEachVariant(fma, [&](Problem problem) {
    const OperationGraph graph(device_, problem, 0, kEngineAlignment);
    const auto found = offers(problem);
    for (const KernelOffer& offer : found)
      EXPECT_FALSE(notesOf(graph.configuration(device_, engineConfigurationOf(offer.kernel.id)))
                       .has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
    problem.mathType = CUDNN_DEFAULT_MATH;
    EXPECT_LT(found.size(), offers(problem).size());
  });
}

/// XLA's. Without a GPU cuDNN 9.19 names no engine for leaky ones.
TEST_F(FusedEnginesTest, ActivationsOfGraphsHaveSome) {
  const std::pair<std::int16_t, float> activations[] = {
      {kClippedRelu, 6.0F}, {kElu, 1.0F}, {kLeakyRelu, 0.2F}};
  for (const auto& [activation, value] : activations)
    for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF}) {
      Problem problem = large();
      problem.operation = Operation::kBiasActivationForward;
      problem.xType = problem.wType = problem.yType = type;
      problem.activation = activation;
      setActivationValue(problem, value);
      layOutNhwc(problem);
      SCOPED_TRACE(problem.text());
      const auto found = offers(problem);
      EXPECT_TRUE(!found.empty() || activation == kLeakyRelu);
      expectBuilt(problem, found);
    }
}

/// Engines don't compute what cuDNN's own call refuses. Sums in half would be rounded before the
/// bias.
TEST_F(FusedEnginesTest, OtherActivationsAndSumsInHalfHaveNone) {
  Problem problem = large();
  problem.operation = Operation::kBiasActivationForward;
  for (const auto activation : {CUDNN_ACTIVATION_SIGMOID,
                                CUDNN_ACTIVATION_TANH,
                                CUDNN_ACTIVATION_CLIPPED_RELU,
                                CUDNN_ACTIVATION_ELU}) {
    problem.activation = static_cast<std::int16_t>(activation);
    EXPECT_TRUE(offers(problem).empty()) << activation;
  }
  problem.activation = CUDNN_ACTIVATION_IDENTITY;
  problem.xType = problem.wType = problem.yType = problem.computeType = CUDNN_DATA_HALF;
  layOutNhwc(problem);
  EXPECT_TRUE(offers(problem).empty());
}

}  // namespace
}  // namespace ucudnn
