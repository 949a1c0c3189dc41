// Random problems of the graph API, and their graphs.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "graph_problem.hpp"

namespace ucudnn::test {
namespace {

constexpr double kSmallWork = 3e4;
constexpr double kMostBytes = 0x1p31;
constexpr double kLargeWork = 3e11;  // about 20 ms on an H200

/// Log-uniform.
std::int64_t upTo(Random& random, std::int64_t most) {
  const double unit = static_cast<double>(random.next() >> 11U) * 0x1p-53;
  return static_cast<std::int64_t>(std::exp(unit * std::log(static_cast<double>(most) + 0.99)));
}

void addDimension(GraphProblem& p, Random& random, std::int64_t mostImage, bool plain, int filter) {
  const std::int64_t dilation = plain ? 1 : random.pick({1, 1, 2, 3});
  const std::int64_t reach = (filter - 1) * dilation + 1;
  p.filter.push_back(filter);
  p.dilation.push_back(dilation);
  p.stride.push_back(plain ? 1 : random.pick({1, 2, 2, 3}));
  p.pad.push_back(random.chance(0.6) ? reach / 2 : random.between(0, filter - 1));
  p.image.push_back(std::max<std::int64_t>(1, reach - 2 * p.pad.back()) + upTo(random, mostImage));
}

std::int64_t halved(std::int64_t channels, std::int64_t groups) {
  return std::max<std::int64_t>(1, channels / groups / 2) * groups;
}

/// Bytes of x and y.
double bytesOf(const GraphProblem& p) {
  double x = static_cast<double>(p.elementBytes()), y = x;
  for (const std::int64_t size : p.x()) x *= static_cast<double>(size);
  for (const std::int64_t size : p.y()) y *= static_cast<double>(size);
  return x + y;
}

/// Fewer channels, then a smaller image, then fewer samples.
void shrink(GraphProblem& p, double most) {
  while (bytesOf(p) > kMostBytes && p.channels + p.filters > 2 * p.groups) {
    p.channels = halved(p.channels, p.groups);
    p.filters = halved(p.filters, p.groups);
  }
  while (p.work() > most && p.channels + p.filters > 2 * p.groups) {
    p.channels = halved(p.channels, p.groups);
    p.filters = halved(p.filters, p.groups);
  }
  for (std::size_t d = 0; d < p.image.size() && p.work() > most; ++d)
    p.image[d] = std::max<std::int64_t>(1, (p.filter[d] - 1) * p.dilation[d] + 2 - 2 * p.pad[d]);
  while (p.work() > most && p.batch > 1) p.batch = (p.batch + 1) / 2;
}

Descriptor makeTensor(const Api& api,
                      const GraphProblem& problem,
                      std::int64_t id,
                      const GraphProblem::Sizes& sizes) {
  const bool isVirtual = id >= GraphTensors::kVirtual;
  Descriptor made(api, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  // Virtual tensors are in float: a result is rounded once, at the end.
  const bool isNarrow = problem.elementBytes() < sizeof(float);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE,
           CUDNN_TYPE_DATA_TYPE,
           isVirtual && isNarrow ? CUDNN_DATA_FLOAT : problem.type);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, problem.alignment);
  made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, isVirtual);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, problem.strides(sizes));
  return made.finalize();
}

cudnnDataType_t computeType(const GraphProblem& problem) {
  return problem.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

Descriptor makeConvolution(const Api& api, const GraphProblem& problem) {
  Descriptor made(api, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, computeType(problem));
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE,
           CUDNN_TYPE_CONVOLUTION_MODE,
           problem.flips ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
           CUDNN_TYPE_INT64,
           static_cast<std::int64_t>(problem.image.size()));
  made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, problem.pad);
  made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, problem.pad);
  made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, problem.stride);
  made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, problem.dilation);
  return made.finalize();
}

struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
};

Names namesOf(GraphOperation operation) {
  switch (operation) {
    case GraphOperation::kBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case GraphOperation::kBackwardFilter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  }
}

void setFactor(Descriptor& descriptor,
               cudnnBackendAttributeName_t name,
               const GraphProblem& problem,
               double factor) {
  if (problem.type == CUDNN_DATA_DOUBLE)
    descriptor.set(name, CUDNN_TYPE_DOUBLE, factor);
  else
    descriptor.set(name, CUDNN_TYPE_FLOAT, static_cast<float>(factor));
}

Descriptor makePointwise(const Api& api,
                         const GraphProblem& problem,
                         cudnnPointwiseMode_t mode,
                         const Descriptor& x,
                         const Descriptor* b,
                         const Descriptor& y,
                         double factorOfB = 1) {
  Descriptor what(api, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  what.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  what.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, computeType(problem));
  if (mode == CUDNN_POINTWISE_RELU_FWD && problem.clips) {
    const bool isDouble = problem.type == CUDNN_DATA_DOUBLE;
    setFactor(what, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, problem, isDouble ? DBL_MAX : FLT_MAX);
    setFactor(what, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, problem, 0);
  }
  what.finalize();
  Descriptor made(api, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != nullptr) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  if (factorOfB != 1) setFactor(made, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, problem, factorOfB);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  return made.finalize();
}

/// Adds the operations behind the convolution of a fused graph: z, the bias, RELU.
void addFollowers(const Api& api, const GraphProblem& problem, std::vector<Descriptor>& made) {
  std::int64_t last = GraphTensors::kVirtual;
  const auto y = [&](std::int64_t id) { return makeTensor(api, problem, id, problem.y()); };
  const auto add = [&](cudnnPointwiseMode_t mode, const Descriptor* b, double factor, bool ends) {
    const std::int64_t next = ends ? GraphTensors::kY : last + 1;
    made.push_back(makePointwise(api, problem, mode, y(last), b, y(next), factor));
    last = next;
  };
  const Descriptor z = y(GraphTensors::kZ);
  if (problem.beta != 0) add(CUDNN_POINTWISE_ADD, &z, problem.beta, false);
  const Descriptor bias = makeTensor(api, problem, GraphTensors::kBias, problem.bias());
  add(CUDNN_POINTWISE_ADD, &bias, 1, !problem.activates);
  if (problem.activates) add(CUDNN_POINTWISE_RELU_FWD, nullptr, 1, true);
}

}  // namespace

GraphProblem randomGraphProblem(Random& random, bool small) {
  GraphProblem p;
  p.operation = static_cast<GraphOperation>(random.between(0, 3));
  p.type =
      random.chance(0.4)
          ? CUDNN_DATA_FLOAT
          : random.pick({CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE});
  const bool isFused = p.operation == GraphOperation::kFused;
  p.groups = random.chance(0.8) ? 1 : random.between(2, 4);
  const int atOnce = random.pick({1, 1, 4, 8});
  const std::int64_t most = small ? 6 : 512;
  p.channels = p.groups * atOnce * upTo(random, std::max<std::int64_t>(1, most / atOnce));
  p.filters = p.groups * atOnce * upTo(random, std::max<std::int64_t>(1, most / atOnce));
  p.batch = random.chance(0.3) ? 1 : upTo(random, small ? 16 : 128);
  const bool plain = random.chance(0.7);
  const int square = random.pick({1, 3, 3, 3, 5, 5, 2, 7});
  const int rank = random.chance(0.75) ? 2 : 3;
  for (int d = 0; d < rank; ++d)
    addDimension(p, random, small ? 9 : rank == 2 ? 256 : 64, plain, square);
  p.channelsLast = random.chance(0.3);
  p.flips = random.chance(0.1);
  p.alignment = random.chance(0.9) ? 16 : 8;
  p.alpha = !isFused && random.chance(0.1) ? 0.5 : 1;
  p.beta = random.chance(0.8) ? 0 : random.pick({1.0, 0.5});
  p.activates = isFused && random.chance(0.6);
  p.clips = p.activates && random.chance(0.5);
  shrink(p, small ? kSmallWork : kLargeWork);
  if (isFused && p.y() == p.bias()) p.beta = 0;  // such a z would be taken for the bias
  return p;
}

Descriptor makeGraph(const Api& api, cudnnHandle_t handle, const GraphProblem& problem) {
  const Names names = namesOf(problem.operation);
  const bool isFused = problem.operation == GraphOperation::kFused;
  std::vector<Descriptor> made;
  Descriptor& first = made.emplace_back(api, names.type);
  first.set(names.convolution, makeConvolution(api, problem));
  first.set(names.x, makeTensor(api, problem, GraphTensors::kX, problem.x()));
  first.set(names.w, makeTensor(api, problem, GraphTensors::kW, problem.w()));
  const std::int64_t y = isFused ? GraphTensors::kVirtual : GraphTensors::kY;
  first.set(names.y, makeTensor(api, problem, y, problem.y()));
  setFactor(first, names.alpha, problem, problem.alpha);
  setFactor(first, names.beta, problem, isFused ? 0 : problem.beta);
  first.finalize();
  if (isFused) addFollowers(api, problem, made);
  Descriptor graph(api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, made);
  return graph.finalize();
}

}  // namespace ucudnn::test
