// Pointwise operations of the backend API, as far as they follow a convolution.
#include <algorithm>
#include <cfloat>

#include "simulator/cudnn/backend_operations.hpp"

namespace ucudnn::simulator {
namespace {

void requirePattern(bool condition, const char* message) {
  if (!condition) refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, message);
}

cudnnActivationStruct activationOf(const BackendPointwise::Value& pointwise) {
  if (pointwise.mode == CUDNN_POINTWISE_ELU_FWD)
    return {CUDNN_ACTIVATION_ELU, CUDNN_PROPAGATE_NAN, pointwise.eluAlpha};
  requirePattern(pointwise.mode == CUDNN_POINTWISE_RELU_FWD, "neither ADD, RELU_FWD nor ELU_FWD");
  requirePattern(pointwise.lowerClip == 0, "a RELU that bends elsewhere than at 0");
  cudnnActivationStruct activation{
      CUDNN_ACTIVATION_RELU, pointwise.nanPropagation, 0, pointwise.slope};
  // cudnn-frontend always sets a clip: the largest number if none is wanted.
  const double largest =
      pointwise.computeType == CUDNN_DATA_DOUBLE ? DBL_MAX : static_cast<double>(FLT_MAX);
  if (pointwise.upperClip.value_or(largest) < largest) {
    activation.mode = CUDNN_ACTIVATION_CLIPPED_RELU;
    activation.coefficient = *pointwise.upperClip;
  }
  return activation;
}

bool isBias(const TensorShape& shape, int filters) {
  for (int d = 0; d < shape.rank; ++d) {
    if (shape.dims[static_cast<std::size_t>(d)] != (d == 1 ? filters : 1)) return false;
  }
  return true;
}

void addTensor(const BackendPointwiseOperation::Value& addition, OperationGraph* graph) {
  FusedTail& fused = *graph->fused;
  requirePattern(addition.b.has_value() && !addition.b->isVirtual && !addition.b->byValue,
                 "what is added is no tensor in memory");
  requirePattern(!fused.hasBias, "a tensor is added after the bias");
  requirePattern(addition.alpha1.value == 1 || fused.zFactor == 0, "a sum is scaled");
  graph->alpha *= addition.alpha1.value;
  const TensorShape shape = shapeOf(*addition.b);
  requirePattern(shape.rank == graph->problem.y.rank, "numbers of dimensions do not match");
  if (isBias(shape, graph->problem.filters())) {
    requirePattern(addition.alpha2.value == 1, "the bias is not scaled");
    fused.hasBias = true;
    fused.bias = {addition.b->uid, addition.b->alignment};
    fused.biasType = shape.type;
    fused.biasStride = shape.strides[1];
    return;
  }
  requirePattern(shape.sameDims(graph->problem.y), "what is added has other dimensions");
  requirePattern(fused.zFactor == 0, "two tensors are added");
  fused.zFactor = addition.alpha2.value;
  fused.z = {addition.b->uid, addition.b->alignment};
  fused.zShape = shape;
}

}  // namespace

OperationGraph fuse(OperationGraph graph, std::vector<BackendPointwiseOperation::Value> followers) {
  graph.fused.emplace();
  requirePattern(graph.beta == 0, "a virtual tensor holds nothing to add to");
  std::int64_t last = graph.y.uid;
  bool ended = false;
  while (!followers.empty()) {
    const auto next = std::find_if(followers.begin(), followers.end(), [&](const auto& follower) {
      return follower.x->uid == last;
    });
    require(next != followers.end(), "the operations are not connected");
    requirePattern(!ended, "an operation follows the activation");
    if (next->pointwise->mode == CUDNN_POINTWISE_ADD) {
      addTensor(*next, &graph);
    } else {
      graph.fused->activation = activationOf(*next->pointwise);
      ended = true;
    }
    const TensorShape y = shapeOf(*next->y);
    require(y.sameDims(graph.problem.y), "dimensions differ along the graph");
    requirePattern(next->y->isVirtual == (followers.size() > 1),
                   "only the last operation writes to memory");
    graph.problem.y = y;
    graph.y = {next->y->uid, next->y->alignment};
    last = next->y->uid;
    followers.erase(next);
  }
  return graph;
}

void BackendPointwise::setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_POINTWISE_MODE:
      value_.mode = input.scalar<cudnnPointwiseMode_t>(CUDNN_TYPE_POINTWISE_MODE);
      return;
    case CUDNN_ATTR_POINTWISE_MATH_PREC:
      value_.computeType = input.scalar<cudnnDataType_t>(CUDNN_TYPE_DATA_TYPE);
      return;
    case CUDNN_ATTR_POINTWISE_NAN_PROPAGATION:
      value_.nanPropagation = input.scalar<cudnnNanPropagation_t>(CUDNN_TYPE_NAN_PROPOGATION);
      return;
    case CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP:
      value_.lowerClip = readBackendFactor(input).value;
      return;
    case CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP:
      value_.upperClip = readBackendFactor(input).value;
      return;
    case CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE:
      value_.slope = readBackendFactor(input).value;
      return;
    case CUDNN_ATTR_POINTWISE_ELU_ALPHA:
      value_.eluAlpha = readBackendFactor(input).value;
      return;
    default:
      refuseAttribute();
  }
}

void BackendPointwise::getAttribute(cudnnBackendAttributeName_t name,
                                    const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_POINTWISE_MODE:
      return output.scalar(CUDNN_TYPE_POINTWISE_MODE, value_.mode);
    case CUDNN_ATTR_POINTWISE_MATH_PREC:
      return output.scalar(CUDNN_TYPE_DATA_TYPE, value_.computeType);
    default:
      requireSupported(false, "the simulator does not give this back");
  }
}

void BackendPointwiseOperation::setAttribute(cudnnBackendAttributeName_t name,
                                             const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR:
      value_.pointwise = backendReference<BackendPointwise>(input).value();
      return;
    case CUDNN_ATTR_OPERATION_POINTWISE_XDESC:
      value_.x = backendReference<BackendTensor>(input).value();
      return;
    case CUDNN_ATTR_OPERATION_POINTWISE_BDESC:
      value_.b = backendReference<BackendTensor>(input).value();
      return;
    case CUDNN_ATTR_OPERATION_POINTWISE_YDESC:
      value_.y = backendReference<BackendTensor>(input).value();
      return;
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1:
      value_.alpha1 = readBackendFactor(input);
      return;
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2:
      value_.alpha2 = readBackendFactor(input);
      return;
    default:
      refuseAttribute();
  }
}

void BackendPointwiseOperation::getAttribute(cudnnBackendAttributeName_t,
                                             const AttributeOutput&) const {
  requireSupported(false, "the simulator does not give an operation's attributes back");
}

void BackendPointwiseOperation::complete() {
  require(value_.pointwise.has_value() && value_.x.has_value() && value_.y.has_value(),
          "a pointwise operation without its descriptor, input or output");
  require(
      value_.x->finalized && value_.y->finalized && (!value_.b.has_value() || value_.b->finalized),
      "a tensor is not finalized");
}

}  // namespace ucudnn::simulator
