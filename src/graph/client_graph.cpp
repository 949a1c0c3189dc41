#include "graph/client_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <climits>
#include <cmath>
#include <limits>

#include "kernels/engines.hpp"
#include "kernels/graph_operations.hpp"
#include "kernels/operation_graph.hpp"
#include "problem/activation.hpp"

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

// Limit of the elements that a tensor has, and spans along one dimension. No device has memory for
// more, and all sums and products fit 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

/// Numbers from 0 (for sizes: from `least`) to INT_MAX.
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

bool readSizes(const std::vector<std::int64_t>& from, std::size_t count, Problem::Sizes& sizes) {
  if (!narrow(from, count, 1, sizes)) return false;
  std::int64_t elements = 1;
  for (const std::int64_t size : from) {
    if (size > kMostElements / elements) return false;
    elements *= size;
  }
  return true;
}

/// Reads a tensor in memory.
bool readTensor(const TensorValue& from,
                std::int32_t dimensions,
                std::int32_t& type,
                Problem::Sizes& sizes,
                Problem::Strides& strides) {
  type = from.type;
  const auto count = static_cast<std::size_t>(dimensions);
  if (!from.isPlain || from.isVirtual || !readSizes(from.sizes, count, sizes) ||
      from.strides.size() != count)
    return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (from.strides[i] < 1 || from.strides[i] > kMostElements / sizes[i]) return false;
    strides[i] = from.strides[i];
  }
  return true;
}

/// Whether the filter is packed in that format. Dimensions of size 1 may have any stride.
bool isPacked(const TensorValue& filter, Problem problem, cudnnTensorFormat_t format) {
  problem.wFormat = format;
  const auto packed = filterStrides(problem);
  for (std::size_t i = 0; i < packed.size(); ++i)
    if (filter.sizes[i] > 1 && filter.strides[i] != packed[i]) return false;
  return true;
}

bool readFilter(const TensorValue& from, Problem& problem) {
  problem.wType = from.type;
  const auto count = static_cast<std::size_t>(problem.dimensions);
  if (!from.isPlain || from.isVirtual || from.strides.size() != count ||
      !readSizes(from.sizes, count, problem.wSizes))
    return false;
  const bool first = isPacked(from, problem, CUDNN_TENSOR_NCHW);
  const bool last = isPacked(from, problem, CUDNN_TENSOR_NHWC);
  // A filter of 1x1 is packed in both formats.
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

bool isAligned(const TensorValue& tensor) {
  return tensor.alignment % kEngineAlignment == 0;
}

/// Whether calls overwrite, and suit engines if their pointers are aligned as the graph says
/// (suitsEngines). A plan that answers a query need not serve calls that add.
bool suitsEngines(const OperationValue& operation) {
  return operation.alpha == 1 && operation.beta == 0 && isAligned(operation.x) &&
         isAligned(operation.w) && isAligned(operation.y);
}

bool isLike(const TensorValue& a, const TensorValue& b) {
  return a.isPlain && !a.isVirtual && a.type == b.type && a.sizes == b.sizes &&
         a.strides == b.strides;
}

/// One value for each channel, for an output like `y`.
bool isBias(const TensorValue& tensor, const TensorValue& y) {
  std::vector<std::int64_t> sizes(y.sizes.size(), 1);
  sizes[1] = y.sizes[1];
  return tensor.isPlain && !tensor.isVirtual && tensor.type == y.type && tensor.sizes == sizes &&
         tensor.strides.size() == sizes.size() && tensor.strides[1] == 1;
}

/// Whether RELU has no upper clip that a number of its type could exceed. cudnn-frontend always
/// sets a clip.
bool isUnclipped(const PointwiseValue& pointwise) {
  const bool isDouble = pointwise.computeType == CUDNN_DATA_DOUBLE;
  return pointwise.upperClip >= (isDouble ? std::numeric_limits<double>::max()
                                          : double{std::numeric_limits<float>::max()});
}

/// Whether sums of that type can be computed with the value as a float.
bool isFloat(double value, std::int32_t computeType) {
  return std::isfinite(value) &&
         (computeType != CUDNN_DATA_DOUBLE || double{static_cast<float>(value)} == value);
}

/// Reads an activation into the problem. False: no engine of ours has it.
bool readActivation(const PointwiseValue& pointwise, Problem& problem) {
  const bool isClipped = !isUnclipped(pointwise), isLeaky = pointwise.slope != 0;
  if (pointwise.mode == CUDNN_POINTWISE_ELU_FWD) {
    problem.activation = kElu;
    setActivationValue(problem, static_cast<float>(pointwise.eluAlpha));
    return isFloat(pointwise.eluAlpha, pointwise.computeType);
  }
  if (pointwise.mode != CUDNN_POINTWISE_RELU_FWD) return false;
  if (!isClipped && !isLeaky) {
    problem.activation =
        pointwise.keepsNans ? kReluKeepingNans : std::int16_t{CUDNN_ACTIVATION_RELU};
    return true;
  }
  const double value = isLeaky ? pointwise.slope : pointwise.upperClip;
  problem.activation = isLeaky ? kLeakyRelu : kClippedRelu;
  setActivationValue(problem, static_cast<float>(value));
  return pointwise.keepsNans && isClipped != isLeaky && isFloat(value, pointwise.computeType) &&
         (isLeaky || value > 0);
}

/// Why a graph is not understood. All begin as reason::kUnknownGraph (context/trace.hpp).
#define UCUDNN_NOT_SPLIT "a graph that is not split: "
constexpr const char* kSeveral = UCUDNN_NOT_SPLIT "it has several convolutions";
constexpr const char* kOthers = UCUDNN_NOT_SPLIT "it has other operations than pointwise ones";
constexpr const char* kBehindGradient = UCUDNN_NOT_SPLIT "operations follow a gradient or a sum";
constexpr const char* kShape = UCUDNN_NOT_SPLIT "its paddings, tensors or types";
constexpr const char* kNoBias = UCUDNN_NOT_SPLIT "no bias follows the convolution";
constexpr const char* kSum = UCUDNN_NOT_SPLIT "what it adds";
constexpr const char* kScaled = UCUDNN_NOT_SPLIT "the factors of its sum";
constexpr const char* kNotForEngines =
    UCUDNN_NOT_SPLIT "only engines have its activation, and not with such factors or alignments";
constexpr const char* kActivation = UCUDNN_NOT_SPLIT "a pointwise operation that is not planned";
constexpr const char* kOrder =
    UCUDNN_NOT_SPLIT "the order of its operations, or a type between them";
#undef UCUDNN_NOT_SPLIT

/// Reads the operations behind a convolution whose output is virtual. Returns why they are not
/// those of bias_activation_forward; null: they are.
const char* readFollowers(const GraphValue& graph, ClientGraph& to) {
  const TensorValue& y = graph.followers.back().y;
  const OperationValue& convolution = graph.operations.front();
  const TensorValue* last = &convolution.y;
  bool hasBias = false, hasZ = false, isActivated = false;
  to.operation = to.problem.operation = Operation::kBiasActivationForward;
  to.problem.activation = CUDNN_ACTIVATION_IDENTITY;
  for (const FollowerValue& follower : graph.followers) {
    const PointwiseValue& pointwise = follower.pointwise;
    const bool isVirtual = last->isVirtual && last->type == convolution.convolution.computeType;
    if (!follower.isPlain || !isVirtual || isActivated || follower.x.id != last->id ||
        pointwise.computeType != convolution.convolution.computeType)
      return kOrder;
    last = &follower.y;
    if (pointwise.mode != CUDNN_POINTWISE_ADD) {
      if (follower.alpha1 != 1 || !pointwise.isPlain || !readActivation(pointwise, to.problem))
        return kActivation;
      isActivated = true;
      continue;
    }
    // What the convolution gives may be scaled: that is the fused call's alpha1.
    if (follower.alpha1 != 1 && (hasBias || hasZ)) return kScaled;
    if (!pointwise.isPlain) return kSum;
    to.alpha *= follower.alpha1;
    if (!hasBias && isBias(follower.b, y)) {
      if (follower.alpha2 != 1) return kScaled;
      hasBias = true;
      to.bias = follower.b.id;
    } else if (!hasZ && isLike(follower.b, y)) {
      hasZ = true;
      to.z = follower.b.id;
      to.beta = follower.alpha2;
      to.suitsEngines = to.suitsEngines && isAligned(follower.b) && (to.beta == 0 || to.beta == 1);
    } else {
      return kSum;
    }
  }
  if (!hasBias) return kNoBias;
  to.suitsEngines = to.suitsEngines && to.alpha == 1;
  to.problem.addsZ = hasZ && to.beta != 0 ? 1 : 0;
  // Engines take no other factors, and nothing else has these activations.
  const bool needsEngines = isOfGraphs(to.problem) && to.problem.activation != kReluKeepingNans;
  return needsEngines && !to.suitsEngines ? kNotForEngines : nullptr;
}

/// Returns as readFollowers.
const char* readOperations(const GraphValue& graph, ClientGraph& to) {
  OperationValue operation = graph.operations.front();
  if (graph.operations.size() != 1) return kSeveral;
  if (!graph.isPlain) return kOthers;
  to.alpha = operation.alpha;
  to.beta = operation.beta;
  const bool isFused = !graph.followers.empty();
  if (isFused && (operation.operation != Operation::kForward || operation.beta != 0))
    return kBehindGradient;
  if (isFused) operation.y = graph.followers.back().y;
  to.suitsEngines = suitsEngines(operation);
  to.x = operation.x.id;
  to.w = operation.w.id;
  to.y = operation.y.id;
  if (!readProblem(operation, to.problem)) return kShape;
  return isFused ? readFollowers(graph, to) : nullptr;
}

}  // namespace

std::shared_ptr<const ClientGraph> readGraph(const GraphValue& graph) {
  if (graph.operations.empty()) return nullptr;
  auto made = std::make_shared<ClientGraph>();
  made->operation = graph.operations.front().operation;
  made->handle = graph.handle;
  const char* const why = readOperations(graph, *made);
  made->isUnderstood = why == nullptr;
  if (why != nullptr) made->why = why;
  return made;
}

namespace {

/// Throws Error.
std::vector<BackendDescriptor> configurationsOf(cudnnBackendDescriptor_t plan) {
  const Borrowed borrowed(plan);
  return getUpTo(1,
                 borrowed.get(),
                 CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                 CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

}  // namespace

ClientNumerics numericsOf(Operation operation, cudnnBackendDescriptor_t plan) {
  const auto notes = notesOf(configurationsOf(plan).at(0));
  return {notes.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
          !notes.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC),
          transformOf(operation, notes),
          notes.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)};
}

std::optional<Kernel> kernelOf(const Problem& problem, cudnnBackendDescriptor_t plan) {
  try {
    const auto configuration = configurationOf(configurationsOf(plan).at(0));
    return Kernel{idOf(configuration), problem.mathType, kEngines};
  } catch (const Error&) {
    return std::nullopt;
  }
}

namespace {

/// The problem with a math type at least as exact as the client's engine. Tensor cores round
/// floats, but multiply shorter types exactly, and not every engine that uses them for those says
/// so. The error of a transform does not matter beside their rounding, and that of short types.
Problem problemOf(const ClientGraph& graph, const ClientNumerics& numerics) {
  Problem problem = graph.problem;
  problem.reducedSums = numerics.reducedSums && problem.computeType != CUDNN_DATA_HALF ? 1 : 0;
  const bool isFloat = problem.xType == CUDNN_DATA_FLOAT;
  if (numerics.tensorCores || (!isFloat && problem.xType != CUDNN_DATA_DOUBLE)) return problem;
  if (isFloat) problem.mathType = CUDNN_FMA_MATH;
  problem.transform = numerics.transform;
  return problem;
}

bool isReadable(const Problem& problem, const ProblemDescriptors& descriptors) {
  if (!areThere(descriptors.get()))  // then nothing reads them
    return elementBytes(problem.xType) != 0 && elementBytes(problem.wType) != 0 &&
           elementBytes(problem.yType) != 0;
  Problem read;
  return readProblem(problem.operation, descriptors.get(), read);
}

}  // namespace

ClientConvolution::ClientConvolution(const ClientGraph& graph,
                                     const ClientNumerics& numerics,
                                     std::size_t needed)
    : problem(problemOf(graph, numerics)),
      descriptors(problem),
      isKnown(isReadable(problem, descriptors)),
      x(graph.x),
      w(graph.w),
      y(graph.y),
      z(graph.z),
      bias(graph.bias),
      deterministic(numerics.deterministic),
      suitsEngines(graph.suitsEngines),
      neededBytes(needed),
      doubles_{graph.alpha, graph.beta},
      floats_{static_cast<float>(graph.alpha), static_cast<float>(graph.beta)} {
  if (!isFused()) return;
  if (problem.addsZ == 0) doubles_[1] = floats_[1] = 0;
  problem.addsZ = isZero(beta(), problem) ? 0 : 1;  // a double may be 0 as a float
  const auto type = static_cast<cudnnDataType_t>(problem.yType);
  const Problem::Sizes sizes{1, problem.ySizes[1], 1, 1, 1};
  const Problem::Sizes strides{problem.ySizes[1], 1, 1, 1, 1};
  bias_ = makeOwned<TensorDescriptor>(cudnn().createTensorDescriptor);
  UCUDNN_CHECK_CUDNN(cudnn().setTensorNdDescriptor(
      bias_.get(), type, problem.dimensions, sizes.data(), strides.data()));
  activation_ = makeOwned<ActivationDescriptor>(cudnn().createActivationDescriptor);
  UCUDNN_CHECK_CUDNN(cudnn().setActivationDescriptor(
      activation_.get(), modeOf(problem), nansOf(problem), activationValueOf(problem)));
}

}  // namespace ucudnn

#endif
