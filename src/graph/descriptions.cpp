#include "graph/descriptions.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>

#include "graph/client_graph.hpp"
#include "kernels/graph_operations.hpp"

// cuDNN marks the handles of graphs and plans deprecated, but every client sets them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {
namespace {

template <typename To, typename From>
bool assign(To& to, const std::optional<From>& from) {
  if (from) to = static_cast<To>(*from);
  return from.has_value();
}

template <typename Value>
bool assign(std::vector<Value>& to, std::vector<Value> from) {
  to = std::move(from);
  return !to.empty();
}

/// The description of the value's descriptor if it is of that kind; else null.
template <typename Kind>
const Kind* kindOf(const AttributeValue& value, const Descriptions& others) {
  const auto descriptor = value.one<cudnnBackendDescriptor_t>(CUDNN_TYPE_BACKEND_DESCRIPTOR);
  return descriptor ? asKind<Kind>(others.find(*descriptor)) : nullptr;
}

template <typename Kind, typename Value>
bool assignValue(Value& to, const AttributeValue& value, const Descriptions& others) {
  const auto* const kind = kindOf<Kind>(value, others);
  if (kind != nullptr) to = kind->value();
  return kind != nullptr;
}

bool assignFactor(double& to, const AttributeValue& value) {
  return value.type == CUDNN_TYPE_DOUBLE ? assign(to, value.one<double>(CUDNN_TYPE_DOUBLE))
                                         : assign(to, value.one<float>(CUDNN_TYPE_FLOAT));
}

}  // namespace

bool TensorDescription::read(cudnnBackendAttributeName_t name,
                             const AttributeValue& value,
                             const Descriptions&) {
  switch (name) {
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
      return assign(value_.type, value.one<cudnnDataType_t>(CUDNN_TYPE_DATA_TYPE));
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
      return assign(value_.sizes, value.all<std::int64_t>(CUDNN_TYPE_INT64));
    case CUDNN_ATTR_TENSOR_STRIDES:
      return assign(value_.strides, value.all<std::int64_t>(CUDNN_TYPE_INT64));
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
      return assign(value_.id, value.one<std::int64_t>(CUDNN_TYPE_INT64));
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
      return assign(value_.isVirtual, value.one<bool>(CUDNN_TYPE_BOOLEAN));
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
      return assign(value_.alignment, value.one<std::int64_t>(CUDNN_TYPE_INT64));
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
      return value.one<bool>(CUDNN_TYPE_BOOLEAN) == false;
    case CUDNN_ATTR_TENSOR_VECTOR_COUNT:
      return value.one<std::int64_t>(CUDNN_TYPE_INT64) == 1;
    case CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION:
      return value.one<std::int64_t>(CUDNN_TYPE_INT64) == -1;
    case CUDNN_ATTR_TENSOR_REORDERING_MODE:
      return value.one<cudnnBackendTensorReordering_t>(CUDNN_TYPE_TENSOR_REORDERING_MODE) ==
             CUDNN_TENSOR_REORDERING_NONE;
    default:
      return false;
  }
}

bool ConvolutionDescription::read(cudnnBackendAttributeName_t name,
                                  const AttributeValue& value,
                                  const Descriptions&) {
  switch (name) {
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE:
      return assign(value_.computeType, value.one<cudnnDataType_t>(CUDNN_TYPE_DATA_TYPE));
    case CUDNN_ATTR_CONVOLUTION_CONV_MODE:
      return assign(value_.mode, value.one<cudnnConvolutionMode_t>(CUDNN_TYPE_CONVOLUTION_MODE));
    case CUDNN_ATTR_CONVOLUTION_DILATIONS:
      return assign(value_.dilations, value.all<std::int64_t>(CUDNN_TYPE_INT64));
    case CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES:
      return assign(value_.strides, value.all<std::int64_t>(CUDNN_TYPE_INT64));
    case CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS:
      return assign(value_.pads, value.all<std::int64_t>(CUDNN_TYPE_INT64));
    case CUDNN_ATTR_CONVOLUTION_POST_PADDINGS:
      return assign(value_.endPads, value.all<std::int64_t>(CUDNN_TYPE_INT64));
    case CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS:  // it is that of the others
      return true;
    default:
      return false;
  }
}

bool OperationDescription::read(cudnnBackendAttributeName_t name,
                                const AttributeValue& value,
                                const Descriptions& others) {
  const OperationNames& names = namesOf(value_.operation);
  if (name == names.alpha) return assignFactor(value_.alpha, value);
  if (name == names.beta) return assignFactor(value_.beta, value);
  if (name == names.convolution)
    return assignValue<ConvolutionDescription>(value_.convolution, value, others);
  if (name == names.x) return assignValue<TensorDescription>(value_.x, value, others);
  if (name == names.w) return assignValue<TensorDescription>(value_.w, value, others);
  if (name == names.y) return assignValue<TensorDescription>(value_.y, value, others);
  return false;
}

bool PointwiseDescription::read(cudnnBackendAttributeName_t name,
                                const AttributeValue& value,
                                const Descriptions&) {
  switch (name) {
    case CUDNN_ATTR_POINTWISE_MODE:
      return assign(value_.mode, value.one<cudnnPointwiseMode_t>(CUDNN_TYPE_POINTWISE_MODE));
    case CUDNN_ATTR_POINTWISE_MATH_PREC:
      return assign(value_.computeType, value.one<cudnnDataType_t>(CUDNN_TYPE_DATA_TYPE));
    case CUDNN_ATTR_POINTWISE_NAN_PROPAGATION: {
      const auto nans = value.one<cudnnNanPropagation_t>(CUDNN_TYPE_NAN_PROPOGATION);
      value_.keepsNans = nans == CUDNN_PROPAGATE_NAN;
      return value_.keepsNans || nans == CUDNN_NOT_PROPAGATE_NAN;
    }
    case CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP:
      return assignFactor(value_.upperClip, value);
    case CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP: {
      double zero = -1;
      return assignFactor(zero, value) && zero == 0;
    }
    case CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE:
      return assignFactor(value_.slope, value);
    case CUDNN_ATTR_POINTWISE_ELU_ALPHA:
      return assignFactor(value_.eluAlpha, value);
    case CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA:
    case CUDNN_ATTR_POINTWISE_SWISH_BETA:
    case CUDNN_ATTR_POINTWISE_AXIS:
      return true;  // of other modes, none of which is understood
    default:
      return false;
  }
}

bool FollowerDescription::read(cudnnBackendAttributeName_t name,
                               const AttributeValue& value,
                               const Descriptions& others) {
  switch (name) {
    case CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR:
      return assignValue<PointwiseDescription>(value_.pointwise, value, others);
    case CUDNN_ATTR_OPERATION_POINTWISE_XDESC:
      return assignValue<TensorDescription>(value_.x, value, others);
    case CUDNN_ATTR_OPERATION_POINTWISE_BDESC:
      return assignValue<TensorDescription>(value_.b, value, others);
    case CUDNN_ATTR_OPERATION_POINTWISE_YDESC:
      return assignValue<TensorDescription>(value_.y, value, others);
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1:
      return assignFactor(value_.alpha1, value);
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2:
      return assignFactor(value_.alpha2, value);
    default:
      return false;
  }
}

bool GraphDescription::read(cudnnBackendAttributeName_t name,
                            const AttributeValue& value,
                            const Descriptions& others) {
  switch (name) {
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
      return assign(value_.handle, value.one<cudnnHandle_t>(CUDNN_TYPE_HANDLE));
    case CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED:
      return value.one<bool>(CUDNN_TYPE_BOOLEAN) == false;
    case CUDNN_ATTR_OPERATIONGRAPH_OPS:
      value_.operations.clear();
      value_.followers.clear();
      for (auto* const each : value.all<cudnnBackendDescriptor_t>(CUDNN_TYPE_BACKEND_DESCRIPTOR)) {
        Description* const found = others.find(each);
        if (const auto* const operation = asKind<OperationDescription>(found))
          value_.operations.push_back(operation->value());
        else if (const auto* const follower = asKind<FollowerDescription>(found))
          value_.followers.push_back(follower->value());
        else
          value_.isPlain = false;
      }
      return true;
    default:
      return false;
  }
}

void GraphDescription::finalized() {
  value_.isPlain = value_.isPlain && isPlain();
  graph_ = readGraph(value_);
}

bool ChoiceDescription::read(cudnnBackendAttributeName_t name,
                             const AttributeValue& value,
                             const Descriptions& others) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH:
    case CUDNN_ATTR_ENGINE_OPERATION_GRAPH: {
      const auto* const graph = kindOf<GraphDescription>(value, others);
      if (graph != nullptr) graph_ = graph->graph();
      return graph != nullptr;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      const auto* const engine = kindOf<ChoiceDescription>(value, others);
      if (engine != nullptr) fill(*engine);
      return engine != nullptr;
    }
    // An engine's notes tell which engine it is. The device is the one that the plan runs on; on
    // another the plan would not run.
    case CUDNN_ATTR_ENGINEHEUR_MODE:
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
    case CUDNN_ATTR_ENGINEHEUR_DEVICEPROP:
    case CUDNN_ATTR_ENGINE_DEVICEPROP:
      return true;
    default:
      return false;
  }
}

PlanDescription::~PlanDescription() {
  delete convolution();
}

bool PlanDescription::read(cudnnBackendAttributeName_t name,
                           const AttributeValue& value,
                           const Descriptions& others) {
  switch (name) {
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE:
      return assign(handle_, value.one<cudnnHandle_t>(CUDNN_TYPE_HANDLE));
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG: {
      const auto* const configuration = kindOf<ChoiceDescription>(value, others);
      if (configuration != nullptr) fill(*configuration);
      return configuration != nullptr;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE:  // what has been compiled for other plans
    case CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP:
      return true;
    default:
      return false;
  }
}

bool PackDescription::read(cudnnBackendAttributeName_t name,
                           const AttributeValue& value,
                           const Descriptions&) {
  switch (name) {
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
      return assign(ids_, value.all<std::int64_t>(CUDNN_TYPE_INT64));
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
      return assign(data_, value.all<void*>(CUDNN_TYPE_VOID_PTR));
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
      return assign(workspace_, value.one<void*>(CUDNN_TYPE_VOID_PTR));
    default:
      return false;
  }
}

void* PackDescription::find(std::int64_t id) const noexcept {
  if (!isPlain() || ids_.size() != data_.size()) return nullptr;
  const auto place = std::find(ids_.begin(), ids_.end(), id);
  return place != ids_.end() ? data_[static_cast<std::size_t>(place - ids_.begin())] : nullptr;
}

std::unique_ptr<Description> describe(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return Description::make<TensorDescription>();
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return Description::make<ConvolutionDescription>();
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return Description::make<OperationDescription>(Operation::kForward);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return Description::make<OperationDescription>(Operation::kBackwardData);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return Description::make<OperationDescription>(Operation::kBackwardFilter);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return Description::make<PointwiseDescription>();
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return Description::make<FollowerDescription>();
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return Description::make<GraphDescription>();
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return Description::make<ChoiceDescription>();
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return Description::make<PlanDescription>();
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return Description::make<PackDescription>();
    default:
      return nullptr;
  }
}

}  // namespace ucudnn

#endif
