// The backend (graph) API: functions over the descriptors of backend_descriptor.hpp.
#include <algorithm>
#include <cstring>

#include "simulator/cudnn/backend_plans.hpp"
#include "simulator/cudnn/launch.hpp"

using namespace ucudnn::simulator;

namespace {

constexpr const char* kKind = "cudnnBackendDescriptor";

BackendDescriptor& descriptorOf(cudnnBackendDescriptor_t handle, cudnnStatus_t status) {
  if (handle == nullptr) refuse(status, "null descriptor");
  return *static_cast<BackendDescriptor*>(handle);
}

// The data of a tensor, aligned as its descriptor says.
void* dataOf(const BackendVariantPack& pack, const GraphTensor& tensor) {
  void* const* const data = pack.find(tensor.uid);
  require(data != nullptr, "the variant pack lacks a tensor's unique id");
  if (*data == nullptr) refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null data pointer");
  if (reinterpret_cast<std::uintptr_t>(*data) % static_cast<std::uintptr_t>(tensor.alignment) !=
      0) {
    refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "data is less aligned than its descriptor");
  }
  return *data;
}

const char* workName(Operation operation) {
  switch (operation) {
    case Operation::kForward:
      return "backendConvolutionForward";
    case Operation::kBackwardData:
      return "backendConvolutionBackwardData";
    default:
      return "backendConvolutionBackwardFilter";
  }
}

bool overlap(const TensorShape& a, const void* aData, const TensorShape& b, const void* bData) {
  const auto aBegin = reinterpret_cast<std::uintptr_t>(aData);
  const auto bBegin = reinterpret_cast<std::uintptr_t>(bData);
  return aBegin < bBegin + extentBytes(b) && bBegin < aBegin + extentBytes(a);
}

// The operations of a fused graph on the finished sums.
Epilogue fusedEpilogue(const OperationGraph& graph, const BackendVariantPack& pack) {
  const FusedTail& fused = *graph.fused;
  Epilogue epilogue;
  epilogue.alpha = graph.alpha;
  epilogue.beta = fused.zFactor;
  if (fused.zFactor != 0) {
    epilogue.source = dataOf(pack, fused.z);
    epilogue.sourceShape = fused.zShape;
    requireTensor(fused.zShape, epilogue.source, "z");
    // cuDNN documents that graphs of several operations don't work in place, and doesn't look.
    if (overlap(fused.zShape, epilogue.source, graph.problem.y, dataOf(pack, graph.y))) {
      reportViolation("a graph of several operations overwrites the z that it adds");
    }
  }
  epilogue.bias = dataOf(pack, fused.bias);
  epilogue.biasType = fused.biasType;
  epilogue.biasStride = fused.biasStride;
  TensorShape bias{fused.biasType, 1, {graph.problem.filters()}, {fused.biasStride}};
  requireTensor(bias, epilogue.bias, "bias");
  epilogue.activation = fused.activation;
  return epilogue;
}

Epilogue plainEpilogue(const OperationGraph& graph, const ConvolutionData& data) {
  Epilogue epilogue;
  epilogue.alpha = graph.alpha;
  epilogue.beta = graph.beta;
  epilogue.sourceShape = outputShape(graph.problem);
  epilogue.source = outputOf(graph.problem, data);
  return epilogue;
}

ConvolutionCall callOf(const OperationGraph& graph, const BackendVariantPack& pack) {
  ConvolutionCall call;
  call.problem = graph.problem;
  call.data = {dataOf(pack, graph.x), dataOf(pack, graph.w), dataOf(pack, graph.y)};
  requireTensor(graph.problem.x, call.data.x, "x");
  requireTensor(graph.problem.w, call.data.w, "w");
  requireTensor(graph.problem.y, call.data.y, "y");
  call.epilogue =
      graph.fused.has_value() ? fusedEpilogue(graph, pack) : plainEpilogue(graph, call.data);
  return call;
}

/// Clears a part of an engine's workspace by a memset. The kernels' time includes it.
void submitClearing(cudnnHandle_t handle, void* workspace, std::size_t bytes) {
  Work work{"fill",
            0,
            [=] {
              if (isAnythingComputed()) std::memset(workspace, 0, bytes);
            },
            {{workspace, bytes, true}}};
  work.launches = 0;
  work.filledWith = 0;
  submit(handle, std::move(work));
}

/// Whether each call of the engine makes a texture, as on an H200: not while something is captured.
bool makesTexture(const EngineChoice& choice) {
  return std::any_of(choice.knobs.begin(), choice.knobs.end(), [](const KnobChoice& knob) {
    return knob.type == CUDNN_KNOB_TYPE_USE_TEX && knob.value == 1;
  });
}

void executePlan(cudnnHandle_t handle, const BackendPlan& plan, const BackendVariantPack& pack) {
  const OperationGraph& graph = *plan.graph();
  const EngineChoice& choice = plan.choice();
  require(handle->device == graph.device, "the plan was built for another device");
  const Cost cost = plan.cost();
  if (cost.workspaceBytes > 0 && pack.workspace() == nullptr) {
    refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null workspace");
  }
  const double biasBytes = graph.fused.has_value()
                               ? static_cast<double>(graph.problem.filters()) *
                                     static_cast<double>(elementBytes(graph.fused->biasType))
                               : 0;
  const std::uint64_t kernel = kernelId(graph, choice);
  Work work = convolutionWork(handle,
                              workName(graph.problem.operation),
                              callOf(graph, pack),
                              pack.workspace(),
                              {kernel,
                               kernelCount(graph, choice.engine),
                               cost,
                               engineError(graph, choice.engine),
                               isDeterministic(graph, choice.engine),
                               choice.engine % 2 == 1},
                              biasBytes);
  if (makesTexture(choice) && unsafeCall() != cudaSuccess) {
    refuse(CUDNN_STATUS_INTERNAL_ERROR, "no texture can be made during a capture");
  }
  const std::size_t cleared = std::min(clearedBytes(graph, choice.engine), cost.workspaceBytes);
  if (cleared > 0) submitClearing(handle, pack.workspace(), cleared);
  submitKernels(handle, kernel, std::move(work));
}

}  // namespace

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t descriptorType, cudnnBackendDescriptor_t* descriptor) {
  return guarded(__func__, [&] {
    require(descriptor != nullptr, "null descriptor pointer");
    std::unique_ptr<BackendDescriptor> made = makeBackendDescriptor(descriptorType);
    requireSupported(made != nullptr, "the simulator has no descriptors of this type");
    *descriptor = made.release();
    countHandle(kKind, 1);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  // cuDNN 9.19 refuses null, which its other functions destroy gladly.
  if (descriptor == nullptr) {
    return guarded(__func__,
                   [] { refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null descriptor"); });
  }
  return destroyDescriptor(__func__, kKind, static_cast<BackendDescriptor*>(descriptor));
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  return guarded(__func__, [&] { descriptorOf(descriptor, CUDNN_STATUS_BAD_PARAM); });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return guarded(__func__,
                 [&] { descriptorOf(descriptor, CUDNN_STATUS_BAD_PARAM_NULL_POINTER).finalize(); });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                         cudnnBackendAttributeName_t attributeName,
                         cudnnBackendAttributeType_t attributeType,
                         int64_t elementCount,
                         const void* arrayOfElements) {
  return guarded(__func__, [&] {
    descriptorOf(descriptor, CUDNN_STATUS_BAD_PARAM_NULL_POINTER)
        .set(attributeName, {attributeType, elementCount, arrayOfElements});
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                         cudnnBackendAttributeName_t attributeName,
                         cudnnBackendAttributeType_t attributeType,
                         int64_t requestedElementCount,
                         int64_t* elementCount,
                         void* arrayOfElements) {
  return guarded(__func__, [&] {
    descriptorOf(descriptor, CUDNN_STATUS_BAD_PARAM)
        .get(attributeName, {attributeType, requestedElementCount, elementCount, arrayOfElements});
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                                         cudnnBackendDescriptor_t executionPlan,
                                                         cudnnBackendDescriptor_t variantPack) {
  return guarded(__func__, [&] {
    require(handle != nullptr, "null handle");
    const auto* const plan = backendCast<BackendPlan>(executionPlan);
    const auto* const pack = backendCast<BackendVariantPack>(variantPack);
    require(plan != nullptr && pack != nullptr, "not an execution plan, or not a variant pack");
    if (!plan->finalized() || !pack->finalized()) {
      refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a descriptor is not finalized");
    }
    executePlan(handle, *plan, *pack);
  });
}

extern "C" void ucudnn::simulator::ucudnnSimulatorScaleTime(void* configuration, double factor) {
  const auto* const engine = backendCast<BackendEngineConfig>(configuration);
  if (engine != nullptr && engine->finalized())
    scaleEngineTime(*engine->graph(), engine->choice(), factor);
}
