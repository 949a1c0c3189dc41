// backend_contract.hpp: graphs of a convolution and what follows it.
#include <cfloat>
#include <optional>

#include "backend_contract.hpp"

namespace ucudnn::simulator::test {
namespace {

class FusedContractTest : public BackendContractTest {
 protected:
  /// The attributes that are set on RELU; empty: not set.
  struct Relu {
    std::optional<cudnnNanPropagation_t> nans;
    std::optional<double> upperClip, lowerClip, slope;

    void set(const Descriptor& kind) const {
      const auto setNumber = [&](cudnnBackendAttributeName_t name, std::optional<double> number) {
        if (number) {
          EXPECT_CUDNN(kind.set(name, CUDNN_TYPE_DOUBLE, std::vector<double>{*number}));
        }
      };
      if (nans) {
        EXPECT_CUDNN(kind.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION,
                              CUDNN_TYPE_NAN_PROPOGATION,
                              std::vector<cudnnNanPropagation_t>{*nans}));
      }
      setNumber(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, upperClip);
      setNumber(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, lowerClip);
      setNumber(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, slope);
    }
  };
  Relu relu;

  static DescriptorPointer virtualTensor(std::int64_t uid) {
    auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const bool isVirtual = true;
    EXPECT_CUDNN(made->setInts(CUDNN_ATTR_TENSOR_DIMENSIONS, kY.dims));
    EXPECT_CUDNN(made->setInts(CUDNN_ATTR_TENSOR_STRIDES, kY.strides));
    EXPECT_CUDNN(made->setInt(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16));
    EXPECT_CUDNN(made->setInt(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid));
    EXPECT_CUDNN(cudnnBackendSetAttribute(
        made->get(), CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &isVirtual));
    EXPECT_CUDNN(made->finalize());
    return made;
  }

  DescriptorPointer pointwise(cudnnPointwiseMode_t mode,
                              const Descriptor& x,
                              const Descriptor* b,
                              const Descriptor& y) const {
    const Descriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    EXPECT_CUDNN(kind.set(CUDNN_ATTR_POINTWISE_MODE,
                          CUDNN_TYPE_POINTWISE_MODE,
                          std::vector<cudnnPointwiseMode_t>{mode}));
    EXPECT_CUDNN(kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC,
                          CUDNN_TYPE_DATA_TYPE,
                          std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT}));
    if (b == nullptr) relu.set(kind);
    EXPECT_CUDNN(kind.finalize());
    auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind));
    EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x));
    if (b != nullptr) {
      EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b));
    }
    EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y));
    EXPECT_CUDNN(made->finalize());
    return made;
  }

  /// A convolution, the bias if there is one, RELU.
  void makeGraph(bool bias) {
    const auto first = virtualTensor(10);
    const auto second = virtualTensor(11);
    std::vector<DescriptorPointer> nodes;
    nodes.push_back(
        operation(tensor(kX).get(), tensor(kW).get(), first.get(), convolution().get()));
    if (bias) {
      const auto values = tensor({{1, 6, 1, 1}, {6, 1, 1, 1}, 16, 4});
      nodes.push_back(pointwise(CUDNN_POINTWISE_ADD, *first, values.get(), *second));
    }
    nodes.push_back(
        pointwise(CUDNN_POINTWISE_RELU_FWD, bias ? *second : *first, nullptr, *tensor(kY)));
    std::vector<cudnnBackendDescriptor_t> handles;
    for (const auto& node : nodes) handles.push_back(node->get());
    graph_ = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    EXPECT_CUDNN(
        graph_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles));
    EXPECT_CUDNN(graph_->finalize());
  }

  std::size_t resultCount(cudnnBackendHeurMode_t mode) const {
    return heuristics(mode)
        ->descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 200)
        .size();
  }
};

TEST_F(FusedContractTest, AGraphWithABiasHasEnginesOfItsOwn) {
  makeGraph(true);
  EXPECT_EQ(
      61,
      graph_->one<std::int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64));
  for (const std::int64_t index : {0, 11, 26, 44, 51}) engine(index);
  engine(38, CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_GT(resultCount(CUDNN_HEUR_MODE_A), 5U);
  EXPECT_EQ(2U, resultCount(CUDNN_HEUR_MODE_FALLBACK));
}

TEST_F(FusedContractTest, AGraphWithoutABiasHasNone) {
  makeGraph(false);
  EXPECT_EQ(0U, resultCount(CUDNN_HEUR_MODE_A));
  EXPECT_EQ(0U, resultCount(CUDNN_HEUR_MODE_FALLBACK));
}

// cudnn-frontend sets all of it on every RELU. No engine is one that minds: what each makes of a
// NaN or an infinity is not known here.
TEST_F(FusedContractTest, AFrontendsReluHasTheEnginesOfAPlainOne) {
  for (const auto nans : {CUDNN_PROPAGATE_NAN, CUDNN_NOT_PROPAGATE_NAN}) {
    for (const double clip : {static_cast<double>(FLT_MAX), DBL_MAX}) {
      relu = {nans, clip, 0.0, 0.0};
      makeGraph(true);
      for (const std::int64_t index : {0, 11, 26, 44, 51}) engine(index);
      EXPECT_GT(resultCount(CUDNN_HEUR_MODE_A), 5U);
      EXPECT_EQ(2U, resultCount(CUDNN_HEUR_MODE_FALLBACK));
    }
  }
}

}  // namespace
}  // namespace ucudnn::simulator::test
