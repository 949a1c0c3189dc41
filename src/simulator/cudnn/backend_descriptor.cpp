#include "simulator/cudnn/backend_descriptor.hpp"
#include "simulator/cudnn/backend_operations.hpp"
#include "simulator/cudnn/backend_plans.hpp"
#include "simulator/cudnn/version.hpp"

namespace ucudnn::simulator {

void BackendDescriptor::set(cudnnBackendAttributeName_t name, const AttributeInput& input) {
  // cuDNN documents NOT_INITIALIZED; 9.19 answers BAD_PARAM.
  require(!finalized_, "the descriptor is finalized already");
  if (!isKnown(name)) refuseAttribute();
  setAttribute(name, input);
}

void BackendDescriptor::get(cudnnBackendAttributeName_t name, const AttributeOutput& output) const {
  if (!finalized_) refuse(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is not finalized");
  if (!isKnown(name)) refuseAttribute();
  getAttribute(name, output);
}

void BackendDescriptor::finalize() {
  require(!finalized_, "the descriptor is finalized already");
  complete();
  finalized_ = true;
}

std::unique_ptr<BackendDescriptor> makeBackendDescriptor(cudnnBackendDescriptorType_t type) {
  if (!isKnown(type)) return nullptr;
  switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return std::make_unique<BackendTensor>();
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return std::make_unique<BackendConvolution>();
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return std::make_unique<BackendOperation>(Operation::kForward);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return std::make_unique<BackendOperation>(Operation::kBackwardData);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return std::make_unique<BackendOperation>(Operation::kBackwardFilter);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return std::make_unique<BackendPointwise>();
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return std::make_unique<BackendPointwiseOperation>();
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return std::make_unique<BackendGraph>();
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return std::make_unique<BackendDeviceProperties>();
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return std::make_unique<BackendHeuristics>();
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return std::make_unique<BackendEngine>();
    case CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR:
      return std::make_unique<BackendKnobInfo>();
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
      return std::make_unique<BackendKnobChoice>();
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return std::make_unique<BackendEngineConfig>();
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return std::make_unique<BackendPlan>();
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return std::make_unique<BackendVariantPack>();
    default:
      return nullptr;
  }
}

}  // namespace ucudnn::simulator
