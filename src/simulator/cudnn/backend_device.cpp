#include <cuda_runtime_api.h>

#include "simulator/cudnn/backend_plans.hpp"

namespace ucudnn::simulator {

void BackendDeviceProperties::setAttribute(cudnnBackendAttributeName_t name,
                                           const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_DEVICEPROP_DEVICE_ID:
      device_ = input.scalar<std::int32_t>(CUDNN_TYPE_INT32);
      return;
    case CUDNN_ATTR_DEVICEPROP_HANDLE: {
      auto* const handle = input.scalar<cudnnHandle_t>(CUDNN_TYPE_HANDLE);
      if (handle == nullptr) refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null handle");
      device_ = handle->device;
      return;
    }
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION:
      text_ = input.array<char>(CUDNN_TYPE_CHAR);
      return;
    default:
      refuseAttribute();
  }
}

void BackendDeviceProperties::getAttribute(cudnnBackendAttributeName_t name,
                                           const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_DEVICEPROP_DEVICE_ID:
      return output.scalar(CUDNN_TYPE_INT32, static_cast<std::int32_t>(device_));
    default:
      requireSupported(false, "the simulator does not describe its devices");
  }
}

void BackendDeviceProperties::complete() {
  if (!text_.empty()) {
    require(text_.front() == '{' && text_.back() == '}', "not the JSON of a device");
    if (cudaGetDevice(&device_) != cudaSuccess) {
      refuse(CUDNN_STATUS_NOT_INITIALIZED, "no current device");
    }
  }
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || device_ < 0 || device_ >= count) {
    refuse(CUDNN_STATUS_NOT_INITIALIZED, "no such device");
  }
}

std::shared_ptr<const OperationGraph> onDevice(std::shared_ptr<const OperationGraph> graph,
                                               std::optional<int> device) {
  if (graph == nullptr || !device.has_value() || graph->device == *device) return graph;
  OperationGraph moved = *graph;
  moved.device = *device;
  return std::make_shared<const OperationGraph>(std::move(moved));
}

}  // namespace ucudnn::simulator
