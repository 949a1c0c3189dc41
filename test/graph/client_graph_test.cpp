// Which of a client's graphs are understood, and as which problem.
#include "graph/client_graph.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <new>
#include <string>

#include "problem/activation.hpp"
#include "problem/part.hpp"

namespace ucudnn {
namespace {

using Numbers = std::vector<std::int64_t>;

TensorValue tensor(std::int64_t id, Numbers sizes, Numbers strides) {
  TensorValue value;
  value.id = id;
  value.sizes = std::move(sizes);
  value.strides = std::move(strides);
  value.isPlain = true;
  return value;
}

/// y[4,6,8,8] of x[4,3,8,8] and w[6,3,5,5], packed.
OperationValue convolution() {
  OperationValue value;
  value.convolution.dilations = value.convolution.strides = {1, 1};
  value.convolution.pads = value.convolution.endPads = {2, 2};
  value.convolution.isPlain = true;
  value.x = tensor(7, {4, 3, 8, 8}, {192, 64, 8, 1});
  value.w = tensor(8, {6, 3, 5, 5}, {75, 25, 5, 1});
  value.y = tensor(9, {4, 6, 8, 8}, {384, 64, 8, 1});
  value.isPlain = true;
  return value;
}

std::shared_ptr<const ClientGraph> read(const OperationValue& operation) {
  return readGraph({{operation}, {}, nullptr, true});
}

TEST(ClientGraph, OfOneConvolutionIsUnderstood) {
  OperationValue operation = convolution();
  operation.operation = Operation::kBackwardFilter;
  operation.alpha = 2;
  operation.beta = 0.5;
  const auto graph = read(operation);
  ASSERT_TRUE(graph->isUnderstood);
  EXPECT_EQ(
      "backward_filter x=float:*,3,8,8/192,64,8,1 w=float:6,3,5,5/nchw y=float:*,6,8,8/384,64,8,1 "
      "pad=2,2 stride=1,1 dilation=1,1 groups=1 cross_correlation compute=float math=default",
      graph->problem.text());
  EXPECT_EQ(4, graph->problem.batch());
  EXPECT_EQ(7, graph->x);
  EXPECT_EQ(8, graph->w);
  EXPECT_EQ(9, graph->y);
  const ClientConvolution run(*graph, {true, true}, 100);
  EXPECT_EQ(2.0F, *static_cast<const float*>(run.alpha()));
  EXPECT_EQ(0.5F, *static_cast<const float*>(run.beta()));
}

TEST(ClientGraph, SuitsEnginesByItsFactorsAndAlignments) {
  OperationValue suiting = convolution();
  for (TensorValue* const tensor : {&suiting.x, &suiting.w, &suiting.y}) tensor->alignment = 32;
  EXPECT_TRUE(read(suiting)->suitsEngines);
  const auto suits = [&](auto change) {
    OperationValue operation = suiting;
    change(operation);
    return read(operation)->suitsEngines;
  };
  EXPECT_FALSE(suits([](OperationValue& o) { o.beta = 1; })) << "it adds";
  EXPECT_FALSE(suits([](OperationValue& o) { o.alpha = 2; }));
  EXPECT_FALSE(suits([](OperationValue& o) { o.x.alignment = 8; }));
  EXPECT_FALSE(suits([](OperationValue& o) { o.w.alignment = 4; }));
  EXPECT_FALSE(suits([](OperationValue& o) { o.y.alignment = 1; }));
}

// A call of it is not read from its descriptors.
TEST(ClientConvolution, ItsDescriptorsHoldItsProblem) {
  OperationValue inThree = convolution();
  inThree.x = tensor(7, {4, 4, 1, 8, 8}, {256, 64, 64, 8, 1});
  inThree.w = tensor(8, {6, 2, 1, 5, 5}, {50, 1, 50, 10, 2});
  inThree.y = tensor(9, {4, 6, 1, 8, 8}, {384, 64, 64, 8, 1});
  inThree.convolution.dilations = inThree.convolution.strides = {1, 1, 1};
  inThree.convolution.pads = inThree.convolution.endPads = {0, 2, 2};
  for (const OperationValue& operation : {convolution(), inThree}) {
    const auto graph = read(operation);
    ASSERT_TRUE(graph->isUnderstood);
    const ClientConvolution run(*graph, {false, true, Transform::kNone}, 0);
    EXPECT_TRUE(run.isKnown);
    Problem held;
    ASSERT_TRUE(readProblem(Operation::kForward, run.descriptors.get(), held));
    held.transform = Transform::kNone;
    EXPECT_EQ(held, run.problem);
  }
  OperationValue integers = convolution();
  integers.x.type = integers.w.type = integers.y.type = CUDNN_DATA_INT8;
  EXPECT_FALSE(ClientConvolution(*read(integers), {false, true}, 0).isKnown);
}

// cuDNN's legacy tensors span fewer than 2^31 elements (9.19).
TEST(ClientConvolution, IsKnownWithoutDescriptors) {
  OperationValue large = convolution();
  large.x.strides[0] = std::int64_t{1} << 30;
  ASSERT_TRUE(read(large)->isUnderstood);
  const ClientConvolution run(*read(large), {false, true}, 0);
  EXPECT_FALSE(areThere(run.descriptors.get()));
  EXPECT_TRUE(run.isKnown);
  EXPECT_TRUE(areThere(ProblemDescriptors(run.problem.withBatch(2)).get()));
  large.x.type = large.w.type = large.y.type = CUDNN_DATA_INT8;
  EXPECT_FALSE(ClientConvolution(*read(large), {false, true}, 0).isKnown);
}

/// y[2,2,2^15,2^15] of w[2,1,1,1] and x[2,1,2^15,2^15], whose samples are four times as far apart.
TEST(ClientGraph, StridesHave64Bits) {
  constexpr std::int64_t kImage = std::int64_t{1} << 30, kRow = 1 << 15;
  OperationValue images = convolution();
  images.convolution.pads = images.convolution.endPads = {0, 0};
  images.x = tensor(7, {2, 1, kRow, kRow}, {4 * kImage, kImage, kRow, 1});
  images.w = tensor(8, {2, 1, 1, 1}, {1, 1, 1, 1});
  images.y = tensor(9, {2, 2, kRow, kRow}, {2 * kImage, kImage, kRow, 1});
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
    images.operation = operation;
    const auto graph = read(images);
    ASSERT_TRUE(graph->isUnderstood);
    const Problem& problem = graph->problem;
    EXPECT_TRUE(problem.isLarge());
    EXPECT_EQ((Problem::Strides{4 * kImage, kImage, kRow, 1}), problem.xStrides);
    EXPECT_EQ(std::size_t{20} << 30, problem.xBytes());
    EXPECT_EQ(std::size_t{16} << 30, problem.yBytes());
    EXPECT_EQ(std::size_t{8} << 30, offsetsOfSample(problem, 1).y);
    EXPECT_FALSE(areThere(ProblemDescriptors(problem).get()));
    EXPECT_TRUE(ClientConvolution(*graph, {true, true}, 0).isKnown);
  }
}

// The engine that the client has chosen tells what it accepts.
TEST(ClientGraph, RunsByTensorCoresOnlyWhereTheClientsEngineDoes) {
  const auto graph = read(convolution());
  EXPECT_EQ(CUDNN_DEFAULT_MATH, ClientConvolution(*graph, {true, false}, 0).problem.mathType);
  EXPECT_EQ(CUDNN_FMA_MATH, ClientConvolution(*graph, {false, false}, 0).problem.mathType);
  OperationValue halves = convolution();
  halves.x.type = halves.w.type = halves.y.type = CUDNN_DATA_HALF;
  EXPECT_EQ(CUDNN_DEFAULT_MATH,
            ClientConvolution(*read(halves), {false, false}, 0).problem.mathType);
}

// Measurements of before, and the legacy API's, are those of problems that allow all transforms.
TEST(ClientGraph, RunsByTransformsOnlyWhereTheClientsEngineDoes) {
  const Transform kTransforms[] = {Transform::kWinograd, Transform::kFourier, Transform::kNone};
  const auto transformOf = [](cudnnDataType_t type, bool tensorCores, Transform clients) {
    OperationValue operation = convolution();
    operation.x.type = operation.w.type = operation.y.type = type;
    return ClientConvolution(*read(operation), {tensorCores, true, clients}, 0).problem.transform;
  };
  for (const Transform clients : kTransforms) {
    EXPECT_EQ(clients, transformOf(CUDNN_DATA_FLOAT, false, clients));
    EXPECT_EQ(clients, transformOf(CUDNN_DATA_DOUBLE, false, clients));
    EXPECT_EQ(Transform::kWinograd, transformOf(CUDNN_DATA_FLOAT, true, clients));
    for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16})
      for (const bool tensorCores : {false, true})
        EXPECT_EQ(Transform::kWinograd, transformOf(type, tensorCores, clients));
  }
}

TEST(ClientGraph, AddsUpInLessOnlyWhereTheClientsEngineDoes) {
  OperationValue halves = convolution();
  halves.x.type = halves.w.type = halves.y.type = CUDNN_DATA_HALF;
  for (const bool reduced : {false, true}) {
    const ClientNumerics numerics{false, true, Transform::kNone, reduced};
    EXPECT_EQ(reduced ? 1 : 0, ClientConvolution(*read(halves), numerics, 0).problem.reducedSums);
    OperationValue inHalf = halves;
    inHalf.convolution.computeType = CUDNN_DATA_HALF;
    EXPECT_EQ(0, ClientConvolution(*read(inHalf), numerics, 0).problem.reducedSums)
        << "every engine may";
  }
}

TEST(ClientGraph, DoublesHaveDoubleFactors) {
  OperationValue operation = convolution();
  operation.x.type = operation.w.type = operation.y.type = CUDNN_DATA_DOUBLE;
  operation.convolution.computeType = CUDNN_DATA_DOUBLE;
  operation.alpha = 0.1;
  const ClientConvolution run(*read(operation), {false, false}, 0);
  EXPECT_EQ(0.1, *static_cast<const double*>(run.alpha()));
}

TEST(ClientGraph, FilterFormatFollowsFromItsStrides) {
  OperationValue operation = convolution();
  operation.w.strides = {75, 1, 15, 3};
  EXPECT_EQ(CUDNN_TENSOR_NHWC, read(operation)->problem.wFormat);
  operation.w.strides = {75, 25, 5, 1};
  EXPECT_EQ(CUDNN_TENSOR_NCHW, read(operation)->problem.wFormat);
  operation.w.strides = {80, 25, 5, 1};  // a gap
  EXPECT_FALSE(read(operation)->isUnderstood);
}

// A filter of 1x1 is packed both ways, whatever stride it has where its size is 1.
TEST(ClientGraph, OneByOneFilterHasTheLayoutOfTheInput) {
  OperationValue operation = convolution();
  operation.w = tensor(8, {6, 3, 1, 1}, {3, 1, 1, 1});
  operation.convolution.pads = operation.convolution.endPads = {0, 0};
  EXPECT_EQ(CUDNN_TENSOR_NCHW, read(operation)->problem.wFormat);
  operation.x.strides = {192, 1, 24, 3};
  operation.y.strides = {384, 1, 48, 6};
  for (const Numbers& strides : {Numbers{3, 1, 1, 1}, Numbers{3, 1, 3, 3}, Numbers{3, 1, 9, 4}}) {
    operation.w.strides = strides;
    EXPECT_EQ(CUDNN_TENSOR_NHWC, read(operation)->problem.wFormat);
  }
}

TEST(ClientGraph, GroupsFollowFromTheChannels) {
  OperationValue operation = convolution();
  operation.x = tensor(7, {4, 6, 8, 8}, {384, 64, 8, 1});
  EXPECT_EQ(2, read(operation)->problem.groups);
  operation.x = tensor(7, {4, 7, 8, 8}, {448, 64, 8, 1});
  EXPECT_FALSE(read(operation)->isUnderstood);
}

TEST(ClientGraph, VolumesAreUnderstood) {
  OperationValue operation = convolution();
  operation.x = tensor(7, {2, 3, 4, 4, 4}, {192, 64, 16, 4, 1});
  operation.w = tensor(8, {5, 3, 3, 3, 3}, {81, 27, 9, 3, 1});
  operation.y = tensor(9, {2, 5, 4, 4, 4}, {320, 64, 16, 4, 1});
  auto& c = operation.convolution;
  c.pads = c.endPads = c.strides = c.dilations = {1, 1, 1};
  ASSERT_TRUE(read(operation)->isUnderstood);
  EXPECT_EQ(5, read(operation)->problem.dimensions);
}

TEST(ClientGraph, WhatLegacyDescriptorsCannotSayIsNotUnderstood) {
  const auto isUnderstood = [](auto change) {
    OperationValue operation = convolution();
    change(operation);
    return read(operation)->isUnderstood;
  };
  ASSERT_TRUE(isUnderstood([](OperationValue&) {}));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.convolution.endPads = {1, 2}; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.convolution.pads.pop_back(); }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.convolution.isPlain = false; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.isPlain = false; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.x.isPlain = false; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.w.isPlain = false; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.y.isVirtual = true; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.x.strides[0] = std::int64_t{1} << 47; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.x.strides[0] = INT64_MAX; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.x.sizes[2] = std::int64_t{1} << 31; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.x.sizes = {4, INT_MAX, INT_MAX, INT_MAX}; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.w.sizes = {INT_MAX, INT_MAX, INT_MAX, 1}; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.x.strides[3] = 0; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.x.sizes[0] = 5; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.y.sizes[1] = 5; }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.y.sizes.pop_back(); }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.w.strides.clear(); }));
  EXPECT_FALSE(isUnderstood([](OperationValue& o) { o.x.sizes.clear(); }));
}

TEST(ClientGraph, OtherGraphsAreNotUnderstood) {
  EXPECT_EQ(nullptr, readGraph({{}, {}, nullptr, true}));
  const OperationValue operation = convolution();
  EXPECT_FALSE(readGraph({{operation, operation}, {}, nullptr, true})->isUnderstood);
  EXPECT_FALSE(readGraph({{operation}, {}, nullptr, false})->isUnderstood);  // with something else
}

/// The convolution, and what follows it: each ADD with a tensor, or RELU.
class Chain {
 public:
  Chain() : graph{{convolution()}, {}, nullptr, true} { graph.operations[0].y = inNoMemory(); }
  Chain& add(const TensorValue& b, double factor = 1) {
    follow(CUDNN_POINTWISE_ADD).b = b;
    graph.followers.back().alpha2 = factor;
    return *this;
  }
  Chain& relu() {
    follow(CUDNN_POINTWISE_RELU_FWD);
    return *this;
  }
  std::shared_ptr<const ClientGraph> read() {
    graph.followers.back().y = convolution().y;
    graph.followers.back().y.alignment = graph.operations[0].y.alignment;
    return readGraph(graph);
  }
  GraphValue graph;

 private:
  TensorValue inNoMemory() {
    TensorValue value = convolution().y;
    value.id = next_++;
    value.isVirtual = true;
    return value;
  }
  FollowerValue& follow(cudnnPointwiseMode_t mode) {
    FollowerValue value;
    value.x = graph.followers.empty() ? graph.operations[0].y : graph.followers.back().y;
    value.y = inNoMemory();
    value.pointwise.mode = mode;
    value.pointwise.isPlain = value.isPlain = true;
    graph.followers.push_back(value);
    return graph.followers.back();
  }
  std::int64_t next_ = 100;
};

const TensorValue kBias = tensor(20, {1, 6, 1, 1}, {6, 1, 1, 1});
const TensorValue kZ = tensor(21, {4, 6, 8, 8}, {384, 64, 8, 1});

TEST(ClientGraph, BiasAndReluAreFused) {
  const auto graph = Chain().add(kBias).relu().read();
  ASSERT_TRUE(graph->isUnderstood);
  EXPECT_EQ(Operation::kBiasActivationForward, graph->operation);
  EXPECT_EQ(CUDNN_ACTIVATION_RELU, graph->problem.activation);
  EXPECT_EQ(0, graph->problem.addsZ);
  EXPECT_EQ(20, graph->bias);
  EXPECT_EQ(9, graph->y);
  EXPECT_EQ(CUDNN_ACTIVATION_IDENTITY, Chain().add(kBias).read()->problem.activation);
}

// PyTorch adds z first, cudnn-frontend's clients mostly the bias.
TEST(ClientGraph, ZIsAddedBeforeOrBehindTheBias) {
  for (const auto& graph : {Chain().add(kZ, 0.5).add(kBias).relu().read(),
                            Chain().add(kBias).add(kZ, 0.5).relu().read()}) {
    ASSERT_TRUE(graph->isUnderstood);
    EXPECT_EQ(1, graph->problem.addsZ);
    EXPECT_EQ(21, graph->z);
    EXPECT_EQ(0.5F, *static_cast<const float*>(ClientConvolution(*graph, {false, true}, 0).beta()));
  }
  EXPECT_EQ(0, Chain().add(kZ, 0).add(kBias).read()->problem.addsZ);
  const auto tiny = Chain().add(kZ, 1e-60).add(kBias).read();  // 0 as a float
  EXPECT_EQ(0, ClientConvolution(*tiny, {false, true}, 0).problem.addsZ);
}

TEST(ClientGraph, OtherFollowersAreNotUnderstood) {
  EXPECT_FALSE(Chain().relu().read()->isUnderstood);  // cuDNN's fused call has a bias
  EXPECT_FALSE(Chain().add(kZ).read()->isUnderstood);
  EXPECT_FALSE(Chain().relu().add(kBias).read()->isUnderstood);
  EXPECT_FALSE(Chain().add(kBias).add(kBias).read()->isUnderstood);
  EXPECT_FALSE(Chain().add(kBias, 2).read()->isUnderstood);
  EXPECT_FALSE(
      Chain().add(tensor(21, {4, 6, 8, 8}, {384, 1, 48, 6})).add(kBias).read()->isUnderstood);
  const auto isUnderstood = [](auto change) {
    Chain chain;
    chain.add(kBias).relu();
    change(chain.graph);
    return chain.read()->isUnderstood;
  };
  ASSERT_TRUE(isUnderstood([](GraphValue&) {}));
  EXPECT_FALSE(isUnderstood([](GraphValue& g) { g.followers[1].alpha1 = 2; }));
  EXPECT_FALSE(isUnderstood([](GraphValue& g) { g.followers[0].isPlain = false; }));
  EXPECT_FALSE(isUnderstood([](GraphValue& g) { g.followers[1].pointwise.isPlain = false; }));
  EXPECT_FALSE(isUnderstood([](GraphValue& g) { g.followers[1].x.id = 5; }));
  EXPECT_FALSE(isUnderstood([](GraphValue& g) { g.operations[0].y.isVirtual = false; }));
  EXPECT_FALSE(isUnderstood([](GraphValue& g) { g.operations[0].y.type = CUDNN_DATA_HALF; }));
  EXPECT_FALSE(isUnderstood([](GraphValue& g) { g.operations[0].beta = 1; }));
  EXPECT_FALSE(
      isUnderstood([](GraphValue& g) { g.operations[0].operation = Operation::kBackwardData; }));
  EXPECT_FALSE(isUnderstood(
      [](GraphValue& g) { g.followers[1].pointwise.mode = CUDNN_POINTWISE_TANH_FWD; }));
}

/// As XLA fuses them.
TEST(ClientGraph, OtherActivationsAreUnderstood) {
  const auto with = [](auto change, double zFactor = 0, double scale = 1) {
    Chain chain;
    OperationValue& operation = chain.graph.operations.front();
    for (TensorValue* const each : {&operation.x, &operation.w, &operation.y}) each->alignment = 16;
    TensorValue z = kZ;
    z.alignment = 16;
    if (zFactor != 0) chain.add(z, zFactor);
    chain.add(kBias);
    chain.graph.followers.front().alpha1 = scale;
    chain.relu();
    chain.graph.followers.back().pointwise.keepsNans = true;
    change(chain.graph.followers.back().pointwise);
    return chain.read();
  };
  const auto leak = [](PointwiseValue& p) { p.slope = 0.25; };
  const auto clip = [](PointwiseValue& p) { p.upperClip = 6; };
  const auto elu = [](PointwiseValue& p) { p.mode = CUDNN_POINTWISE_ELU_FWD, p.eluAlpha = 0.5; };
  const auto expect = [](const ClientGraph& graph, std::int16_t activation, float value) {
    EXPECT_TRUE(graph.isUnderstood) << graph.why;
    EXPECT_EQ(activation, graph.problem.activation);
    EXPECT_EQ(value, activationValueOf(graph.problem));
  };
  for (const double z : {0.0, 1.0}) {
    expect(*with(leak, z), kLeakyRelu, 0.25F);
    expect(*with(clip, z), kClippedRelu, 6);
    expect(*with(elu, z), kElu, 0.5F);
  }
  EXPECT_FALSE(with([&](PointwiseValue& p) { leak(p), clip(p); })->isUnderstood);
  EXPECT_FALSE(with([&](PointwiseValue& p) { leak(p), p.keepsNans = false; })->isUnderstood);
  // Only engines have these, and they take no other factors.
  EXPECT_FALSE(with(elu, 0.5)->isUnderstood);
  EXPECT_FALSE(with(elu, 0, 2)->isUnderstood);
  EXPECT_TRUE(with([](PointwiseValue&) {}, 0.5, 2)->isUnderstood);
}

TEST(ClientGraph, WhatTheConvolutionGivesMayBeScaled) {
  for (const bool hasZ : {false, true}) {
    Chain chain;
    if (hasZ) chain.add(kZ);
    chain.add(kBias).relu();
    chain.graph.followers.front().alpha1 = 0.5;
    const auto graph = chain.read();
    EXPECT_TRUE(graph->isUnderstood);
    EXPECT_EQ(0.5, graph->alpha);
    EXPECT_FALSE(graph->suitsEngines);
    chain.graph.followers[1].alpha1 = 0.5;  // of the sum, or of RELU
    EXPECT_FALSE(chain.read()->isUnderstood);
  }
}

TEST(ClientGraph, SaysWhyItIsNotUnderstood) {
  const auto expect = [](const std::string& why, const ClientGraph& graph) {
    EXPECT_FALSE(graph.isUnderstood);
    EXPECT_EQ("a graph that is not split: " + why, graph.why);
  };
  const OperationValue operation = convolution();
  expect("it has several convolutions", *readGraph({{operation, operation}, {}, nullptr, true}));
  expect("it has other operations than pointwise ones",
         *readGraph({{operation}, {}, nullptr, false}));
  expect("no bias follows the convolution", *Chain().relu().read());
  expect("what it adds", *Chain().add(kBias).add(kBias).read());
  expect("the factors of its sum", *Chain().add(kBias, 2).read());
  expect("the order of its operations, or a type between them",
         *Chain().add(kBias).relu().relu().read());
  Chain other;
  other.add(kBias).relu().graph.followers[1].pointwise.mode = CUDNN_POINTWISE_TANH_FWD;
  expect("a pointwise operation that is not planned", *other.read());
  Chain gradient;
  gradient.add(kBias).graph.operations[0].operation = Operation::kBackwardData;
  expect("operations follow a gradient or a sum", *gradient.read());
  OperationValue uneven = operation;
  uneven.convolution.endPads = {1, 2};
  expect("its paddings, tensors or types", *readGraph({{uneven}, {}, nullptr, true}));
}

// An attribute that was not noted because memory was short must not be overlooked.
TEST(Description, IsNotPlainAfterAnAttributeThatCouldNotBeNoted) {
  struct NoMemory final : Description {
    bool read(cudnnBackendAttributeName_t, const AttributeValue&, const Descriptions&) override {
      throw std::bad_alloc();
    }
  };
  struct None final : Descriptions {
    Description* find(cudnnBackendDescriptor_t) const override { return nullptr; }
  };
  NoMemory description;
  EXPECT_TRUE(description.isPlain());
  EXPECT_THROW(
      description.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, {CUDNN_TYPE_INT64, 0, nullptr}, None()),
      std::bad_alloc);
  EXPECT_FALSE(description.isPlain());
}

}  // namespace
}  // namespace ucudnn
