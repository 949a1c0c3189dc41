/*
 * Names of cuDNN 9.19 that the headers of an older cuDNN 9 lack, with the numbers that they have
 * there. Whether a program's cuDNN knows them shows when it is asked. Part of no module: the
 * simulator and the tests need them, too.
 */
#ifndef UCUDNN_CUDNN_NAMES_H_
#define UCUDNN_CUDNN_NAMES_H_

#include <cuda_runtime_api.h>
#include <cudnn.h>

#if CUDNN_VERSION >= 90100 && CUDNN_VERSION < 91900
/* A version between has some of them, with the same numbers. */
#define CUDNN_ATTR_DEVICEPROP_DEVICE_ID ((cudnnBackendAttributeName_t)2700)
#define CUDNN_ATTR_DEVICEPROP_HANDLE ((cudnnBackendAttributeName_t)2701)
#define CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION ((cudnnBackendAttributeName_t)2702)
#define CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED ((cudnnBackendAttributeName_t)304)
#define CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE ((cudnnBackendAttributeName_t)303)
#define CUDNN_ATTR_ENGINEHEUR_DEVICEPROP ((cudnnBackendAttributeName_t)204)
#define CUDNN_ATTR_ENGINE_DEVICEPROP ((cudnnBackendAttributeName_t)1307)
#define CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP ((cudnnBackendAttributeName_t)407)
#define CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE ((cudnnBackendAttributeName_t)406)
#define CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED ((cudnnBackendAttributeName_t)803)
#define CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR ((cudnnBackendDescriptorType_t)38)
#define CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API ((cudnnBackendBehaviorNote_t)3)
#define CUDNN_KNOB_TYPE_TILE_M ((cudnnBackendKnobType_t)40)
#define CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE ((cudnnStatus_t)2012)
#define CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API ((cudnnStatus_t)3013)
#define CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED ((cudnnStatus_t)1008)
/* A case may be none of the enumerators. */
#pragma GCC diagnostic ignored "-Wswitch"
#endif

#if CUDNN_VERSION >= 90100
#ifdef __cplusplus
extern "C" {
#endif
/* Since cuDNN 9.5, and the last one since 9.23. */
cudnnStatus_t cudnnBackendPopulateCudaGraph(cudnnHandle_t handle,
                                            cudnnBackendDescriptor_t executionPlan,
                                            cudnnBackendDescriptor_t variantPack,
                                            cudaGraph_t graph);
cudnnStatus_t cudnnBackendUpdateCudaGraph(cudnnHandle_t handle,
                                          cudnnBackendDescriptor_t executionPlan,
                                          cudnnBackendDescriptor_t variantPack,
                                          cudaGraph_t graph);
cudnnStatus_t cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle,
                                                 cudnnBackendDescriptor_t executionPlan,
                                                 cudnnBackendDescriptor_t variantPack,
                                                 size_t* workspaceSizeInBytes);
#ifdef __cplusplus
}
#endif
#endif

#endif /* UCUDNN_CUDNN_NAMES_H_ */
