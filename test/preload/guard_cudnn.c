/* A libcudnn.so.9 that says what is called, and whose Find calls another of its functions through
 * the loader. */
#include <stdio.h>
#include <ucudnn/functions.h>

#include "cudnn_names.h"

size_t cudnnGetVersion(void) {
  return CUDNN_VERSION;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = (cudnnHandle_t)(void*)handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return handle != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

static void callAnother(const char* name, cudnnHandle_t handle) {
  size_t bytes = 0;
  if (name[0] == 'F')
    cudnnGetConvolutionForwardWorkspaceSize(
        handle, NULL, NULL, NULL, NULL, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, &bytes);
}

#define NATIVE(NAME, PARAMETERS, ARGUMENTS)                                   \
  cudnnStatus_t cudnn##NAME(cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS) { \
    printf("native %s\n", #NAME);                                             \
    callAnother(#NAME, handle);                                               \
    return CUDNN_STATUS_SUCCESS;                                              \
  }
UCUDNN_FOR_EACH_FUNCTION(NATIVE)

/* Plans are told 100 bytes; by a pack, that they need 50. */
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t requested,
                                       int64_t* count,
                                       void* elements) {
  printf("native BackendGetAttribute\n");
  if (descriptor == NULL || name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE ||
      type != CUDNN_TYPE_INT64 || requested != 1)
    return CUDNN_STATUS_BAD_PARAM;
  *count = 1;
  *(int64_t*)elements = 100;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle,
                                                 cudnnBackendDescriptor_t plan,
                                                 cudnnBackendDescriptor_t pack,
                                                 size_t* bytes) {
  printf("native GetExecutionPlanWorkspaceSize\n");
  *bytes = 50;
  return handle != NULL && plan != NULL && pack != NULL ? CUDNN_STATUS_SUCCESS
                                                        : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendPopulateCudaGraph(cudnnHandle_t handle,
                                            cudnnBackendDescriptor_t plan,
                                            cudnnBackendDescriptor_t pack,
                                            cudaGraph_t graph) {
  printf("native BackendPopulateCudaGraph\n");
  return handle != NULL && plan != NULL && pack != NULL && graph != NULL ? CUDNN_STATUS_SUCCESS
                                                                         : CUDNN_STATUS_BAD_PARAM;
}
