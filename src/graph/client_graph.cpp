#include "graph/client_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>
#include <climits>

#include "kernels/operation_graph.hpp"

namespace ucudnn {
namespace {

/// A descriptor of the client's.
class Borrowed {
 public:
  explicit Borrowed(cudnnBackendDescriptor_t descriptor) : descriptor_(descriptor) {}
  ~Borrowed() { static_cast<void>(descriptor_.release()); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  const BackendDescriptor& get() const noexcept { return descriptor_; }

 private:
  BackendDescriptor descriptor_;
};

/// Numbers from 0 (of sizes and strides: `least`) to INT_MAX.
template <typename Values>
bool narrow(const std::vector<std::int64_t>& from,
            std::size_t count,
            std::int64_t least,
            Values& to) {
  if (from.size() != count || count > to.size()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (from[i] < least || from[i] > INT_MAX) return false;
    to[i] = static_cast<std::int32_t>(from[i]);
  }
  return true;
}

bool readTensor(const TensorValue& from,
                std::int32_t dimensions,
                std::int32_t& type,
                Problem::Sizes& sizes,
                Problem::Sizes& strides) {
  type = from.type;
  const auto count = static_cast<std::size_t>(dimensions);
  return from.isPlain && !from.isVirtual && narrow(from.sizes, count, 1, sizes) &&
         narrow(from.strides, count, 1, strides);
}

/// Whether sizes multiply up to the strides, `channelsLast` or not. What has size 1 may have any
/// stride.
bool isPacked(const TensorValue& tensor, bool channelsLast) {
  const std::size_t count = tensor.sizes.size();
  std::int64_t stride = 1;
  const auto next = [&](std::size_t i) {
    const bool fits = tensor.sizes[i] == 1 || tensor.strides[i] == stride;
    stride *= tensor.sizes[i];
    return fits;
  };
  if (channelsLast && !next(1)) return false;
  for (std::size_t i = count - 1; i >= 2; --i)
    if (!next(i)) return false;
  return (channelsLast || next(1)) && next(0);
}

bool readFilter(const TensorValue& from, Problem& problem) {
  problem.wType = from.type;
  const auto count = static_cast<std::size_t>(problem.dimensions);
  if (!from.isPlain || from.isVirtual || from.strides.size() != count ||
      !narrow(from.sizes, count, 1, problem.wSizes))
    return false;
  const bool first = isPacked(from, false);
  const bool last = isPacked(from, true);
  // One of 1x1 is both.
  const bool xIsLast = problem.xSizes[1] > 1 && problem.xStrides[1] == 1;
  problem.wFormat = last && (!first || xIsLast) ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  return first || last;
}

bool readConvolution(const ConvolutionValue& from, Problem& problem) {
  const auto count = static_cast<std::size_t>(problem.dimensions - 2);
  problem.mode = from.mode;
  problem.computeType = from.computeType;
  return from.isPlain && from.pads == from.endPads && narrow(from.pads, count, 0, problem.pads) &&
         narrow(from.strides, count, 1, problem.strides) &&
         narrow(from.dilations, count, 1, problem.dilations);
}

bool readProblem(const OperationValue& from, Problem& problem) {
  const std::size_t dimensions = from.x.sizes.size();
  if (!from.isPlain || dimensions < 3 || dimensions > Problem::kMaxDimensions) return false;
  problem.operation = from.operation;
  problem.dimensions = static_cast<std::int32_t>(dimensions);
  problem.mathType = CUDNN_DEFAULT_MATH;
  if (!readTensor(from.x, problem.dimensions, problem.xType, problem.xSizes, problem.xStrides) ||
      !readTensor(from.y, problem.dimensions, problem.yType, problem.ySizes, problem.yStrides) ||
      !readFilter(from.w, problem) || !readConvolution(from.convolution, problem))
    return false;
  problem.groups = problem.xSizes[1] / problem.wSizes[1];
  return problem.xSizes[1] % problem.wSizes[1] == 0 && problem.xSizes[0] == problem.ySizes[0] &&
         problem.wSizes[0] == problem.ySizes[1];
}

}  // namespace

std::shared_ptr<const ClientGraph> readGraph(const GraphValue& graph) {
  if (graph.operations.empty()) return nullptr;
  const OperationValue& operation = graph.operations.front();
  auto made = std::make_shared<ClientGraph>();
  made->operation = operation.operation;
  made->isUnderstood =
      graph.isPlain && graph.operations.size() == 1 && readProblem(operation, made->problem);
  made->x = operation.x.id;
  made->w = operation.w.id;
  made->y = operation.y.id;
  made->alpha = operation.alpha;
  made->beta = operation.beta;
  made->handle = graph.handle;
  return made;
}

ClientNumerics numericsOf(cudnnBackendDescriptor_t plan) {
  const Borrowed borrowed(plan);
  const auto configuration = getUpTo(1,
                                     borrowed.get(),
                                     CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                     CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const auto notes = notesOf(configuration.at(0));
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  return {has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE), !has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)};
}

namespace {

/// No less exact than the client's engine.
Problem problemOf(const ClientGraph& graph, const ClientNumerics& numerics) {
  Problem problem = graph.problem;
  if (!numerics.tensorCores) problem.mathType = CUDNN_FMA_MATH;
  return problem;
}

}  // namespace

ClientConvolution::ClientConvolution(const ClientGraph& graph,
                                     const ClientNumerics& numerics,
                                     std::size_t needed)
    : problem(problemOf(graph, numerics)),
      descriptors(problem),
      x(graph.x),
      w(graph.w),
      y(graph.y),
      deterministic(numerics.deterministic),
      neededBytes(needed),
      doubles_{graph.alpha, graph.beta},
      floats_{static_cast<float>(graph.alpha), static_cast<float>(graph.beta)} {}

}  // namespace ucudnn

#endif
