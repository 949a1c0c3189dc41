// cuDNN's functions as unmodified programs call them: answered by libucudnn.so, or passed through;
// and the one of CUDA's that must not come beside a capture.
#include "preload/functions.hpp"
#include "preload/objects.hpp"
#include "preload/silence.hpp"

using ucudnn::preload::Functions;
using ucudnn::preload::Route;
using ucudnn::preload::routeOf;

namespace {

/// How many of our calls this thread is in. Inside them calls by μ-cuDNN and cuDNN pass through to
/// cuDNN's own functions: a library between us and cuDNN may have found ours in their place. Read
/// on every call. The library is loaded when the program starts, so this may lie in the first block
/// of thread-local memory.
__attribute__((tls_model("initial-exec"))) thread_local int depth = 0;

class CallScope {
 public:
  explicit CallScope(bool entered = true) noexcept : entered_(entered ? 1 : 0) {
    depth += entered_;
  }
  ~CallScope() { depth -= entered_; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  int entered_;
};

/// cuDNN's statuses for a function that the program's cuDNN does not have, and for a program
/// without a cuDNN.
constexpr cudnnStatus_t kNoFunction = CUDNN_STATUS_NOT_SUPPORTED;
constexpr cudnnStatus_t kNoCudnn = CUDNN_STATUS_NOT_INITIALIZED;

template <auto member, typename... Arguments>
cudnnStatus_t callNative(const Functions* functions, Arguments... arguments) noexcept {
  const auto function = functions->*member;
  return function != nullptr ? function(arguments...) : kNoFunction;
}

template <auto member, typename... Arguments>
cudnnStatus_t call(const void* caller, Arguments... arguments) noexcept {
  const Route* const to = routeOf(caller);
  if (to == nullptr) return kNoCudnn;
  if (depth > 0) return callNative<member>(to->own, arguments...);
  const CallScope scope;
  if (to->planned == nullptr) return callNative<member>(to->native, arguments...);
  return (to->planned->*member)(arguments...);
}

/// A program must not fail for our settings: the log says what is wrong with them.
cudnnStatus_t create(cudnnHandle_t* handle, const void* caller) noexcept {
  const Route* const to = routeOf(caller);
  if (to != nullptr && to->planned != nullptr && depth == 0)
    to->planned->KnowDeviceWaits(ucudnn::preload::seesDeviceWaits(caller) ? 1 : 0);
  const cudnnStatus_t status = call<&Functions::Create>(caller, handle);
  if (status == CUDNN_STATUS_SUCCESS && to->planned != nullptr) ucudnn::preload::noteHandle();
  if (status == CUDNN_STATUS_SUCCESS || to == nullptr || to->planned == nullptr) return status;
  const CallScope scope;
  return callNative<&Functions::Create>(to->native, handle);
}

#if UCUDNN_HAS_BACKEND
/// cuDNN may run its own plan in a way that we don't see, in the workspace that it reads then.
bool isOfCudnn(const void* caller) noexcept {
  const link_map* const object = ucudnn::preload::objectAt(caller);
  return object != nullptr && ucudnn::preload::majorInName(object->l_name) > 0;
}

/// A client may ask for a plan's workspace by a pack. It is told what it is told without one.
cudnnStatus_t tellWorkspace(const void* caller,
                            cudnnHandle_t handle,
                            cudnnBackendDescriptor_t plan,
                            cudnnBackendDescriptor_t pack,
                            size_t* bytes) noexcept {
  constexpr auto kFunction = &Functions::GetExecutionPlanWorkspaceSize;
  const Route* const to = routeOf(caller);
  if (to == nullptr) return kNoCudnn;
  if (depth > 0 || isOfCudnn(caller))
    return callNative<kFunction>(to->own, handle, plan, pack, bytes);
  const CallScope scope;
  const cudnnStatus_t status = callNative<kFunction>(to->native, handle, plan, pack, bytes);
  if (status != CUDNN_STATUS_SUCCESS || to->planned == nullptr) return status;
  int64_t count = 0, own = 0;  // after this question the plan is ours, if it can be
  to->planned->BackendGetAttribute(
      plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &own);
  to->planned->BackendToldWorkspace(plan, bytes);
  return status;
}

/// Puts a plan's kernels into a CUDA graph, if cuDNN may: in the workspace that the client has.
template <auto member>
cudnnStatus_t callOnGraph(const void* caller,
                          cudnnHandle_t handle,
                          cudnnBackendDescriptor_t plan,
                          cudnnBackendDescriptor_t pack,
                          cudaGraph_t graph) noexcept {
  const Route* const to = routeOf(caller);
  if (to == nullptr) return kNoCudnn;
  if (depth > 0) return callNative<member>(to->own, handle, plan, pack, graph);
  if (to->planned != nullptr && to->planned->BackendNeedsMore(plan) != 0)
    return CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API;
  const CallScope scope;
  return callNative<member>(to->native, handle, plan, pack, graph);
}
#endif

}  // namespace

extern "C" {

#define UCUDNN_EXPORT __attribute__((visibility("default")))
#define UCUDNN_CALLER __builtin_return_address(0)

UCUDNN_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return create(handle, UCUDNN_CALLER);
}

UCUDNN_EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return call<&Functions::Destroy>(UCUDNN_CALLER, handle);
}

#define UCUDNN_DOOR(NAME, PARAMETERS, ARGUMENTS)                                            \
  UCUDNN_EXPORT cudnnStatus_t cudnn##NAME(cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS) { \
    return call<&Functions::NAME>(UCUDNN_CALLER, handle, UCUDNN_UNPACK ARGUMENTS);          \
  }
UCUDNN_FOR_EACH_FUNCTION(UCUDNN_DOOR)
#undef UCUDNN_DOOR

#if UCUDNN_HAS_BACKEND
UCUDNN_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t descriptorType, cudnnBackendDescriptor_t* descriptor) {
  return call<&Functions::BackendCreateDescriptor>(UCUDNN_CALLER, descriptorType, descriptor);
}

UCUDNN_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return call<&Functions::BackendDestroyDescriptor>(UCUDNN_CALLER, descriptor);
}

UCUDNN_EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return call<&Functions::BackendFinalize>(UCUDNN_CALLER, descriptor);
}

UCUDNN_EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                     cudnnBackendAttributeName_t attributeName,
                                                     cudnnBackendAttributeType_t attributeType,
                                                     int64_t elementCount,
                                                     const void* arrayOfElements) {
  return call<&Functions::BackendSetAttribute>(
      UCUDNN_CALLER, descriptor, attributeName, attributeType, elementCount, arrayOfElements);
}

UCUDNN_EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                                     cudnnBackendAttributeName_t attributeName,
                                                     cudnnBackendAttributeType_t attributeType,
                                                     int64_t requestedElementCount,
                                                     int64_t* elementCount,
                                                     void* arrayOfElements) {
  const bool isPrivate =
      attributeName == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && isOfCudnn(UCUDNN_CALLER);
  const CallScope scope(isPrivate);
  return call<&Functions::BackendGetAttribute>(UCUDNN_CALLER,
                                               descriptor,
                                               attributeName,
                                               attributeType,
                                               requestedElementCount,
                                               elementCount,
                                               arrayOfElements);
}

UCUDNN_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                                cudnnBackendDescriptor_t executionPlan,
                                                cudnnBackendDescriptor_t variantPack) {
  return call<&Functions::BackendExecute>(UCUDNN_CALLER, handle, executionPlan, variantPack);
}

UCUDNN_EXPORT cudnnStatus_t
cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle,
                                   cudnnBackendDescriptor_t executionPlan,
                                   cudnnBackendDescriptor_t variantPack,
                                   size_t* workspaceSizeInBytes) {
  return tellWorkspace(UCUDNN_CALLER, handle, executionPlan, variantPack, workspaceSizeInBytes);
}
#endif

/// CUDA's. While μ-cuDNN captures, it would fail, and cuDNN crash: it waits for the capture's end.
UCUDNN_EXPORT cudaError_t cudaDeviceSynchronize(void) {
  const auto wait = ucudnn::preload::deviceSynchronize();
  if (wait == nullptr) return cudaErrorInitializationError;
  const Functions* const planned = ucudnn::preload::plannedFunctions();
  if (planned == nullptr || depth > 0) return wait();
  void* const guard = planned->BeginDeviceWait();
  const cudaError_t error = wait();
  planned->EndDeviceWait(guard);
  return error;
}

#if UCUDNN_HAS_BACKEND
UCUDNN_EXPORT cudnnStatus_t cudnnBackendPopulateCudaGraph(cudnnHandle_t handle,
                                                          cudnnBackendDescriptor_t executionPlan,
                                                          cudnnBackendDescriptor_t variantPack,
                                                          cudaGraph_t graph) {
  return callOnGraph<&Functions::BackendPopulateCudaGraph>(
      UCUDNN_CALLER, handle, executionPlan, variantPack, graph);
}

UCUDNN_EXPORT cudnnStatus_t cudnnBackendUpdateCudaGraph(cudnnHandle_t handle,
                                                        cudnnBackendDescriptor_t executionPlan,
                                                        cudnnBackendDescriptor_t variantPack,
                                                        cudaGraph_t graph) {
  return callOnGraph<&Functions::BackendUpdateCudaGraph>(
      UCUDNN_CALLER, handle, executionPlan, variantPack, graph);
}
#endif

}  // extern "C"
