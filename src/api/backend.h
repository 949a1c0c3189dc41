/*
 * The functions of cuDNN's graph API that libucudnn_preload.so stands in front of: X(name without
 * its prefix, (parameters), (the same as arguments)).
 */
#ifndef UCUDNN_API_BACKEND_H_
#define UCUDNN_API_BACKEND_H_

#include <cudnn.h>
#include <ucudnn/functions.h>
#include <ucudnn/preamble.h>

/** As UCUDNN_HAS_ENGINES (cuda/cudnn.hpp): with an older cuDNN its graph API is left alone. */
#define UCUDNN_HAS_BACKEND (CUDNN_VERSION >= 90100)

#if UCUDNN_HAS_BACKEND
/* Formatted by hand, as functions.h. */
/* clang-format off */
#define UCUDNN_FOR_EACH_BACKEND_FUNCTION(X)                                                        \
  X(BackendCreateDescriptor,                                                                       \
    (cudnnBackendDescriptorType_t descriptorType, cudnnBackendDescriptor_t* descriptor),           \
    (descriptorType, descriptor))                                                                  \
  X(BackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor), (descriptor))                 \
  X(BackendFinalize, (cudnnBackendDescriptor_t descriptor), (descriptor))                          \
  X(BackendSetAttribute,                                                                           \
    (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t attributeName,               \
     cudnnBackendAttributeType_t attributeType, int64_t elementCount,                              \
     const void* arrayOfElements),                                                                 \
    (descriptor, attributeName, attributeType, elementCount, arrayOfElements))                     \
  X(BackendGetAttribute,                                                                           \
    (cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t attributeName,         \
     cudnnBackendAttributeType_t attributeType, int64_t requestedElementCount,                     \
     int64_t* elementCount, void* arrayOfElements),                                                \
    (descriptor, attributeName, attributeType, requestedElementCount, elementCount,                \
     arrayOfElements))                                                                             \
  X(BackendExecute,                                                                                \
    (cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,                                 \
     cudnnBackendDescriptor_t variantPack),                                                        \
    (handle, executionPlan, variantPack))
/* clang-format on */
#else
#define UCUDNN_FOR_EACH_BACKEND_FUNCTION(X)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** As cuDNN's functions of these names; not the linked library's public API. */
#define UCUDNN_DECLARE(NAME, PARAMETERS, ARGUMENTS) \
  UCUDNN_API cudnnStatus_t ucudnn##NAME PARAMETERS;
UCUDNN_FOR_EACH_BACKEND_FUNCTION(UCUDNN_DECLARE)
#undef UCUDNN_DECLARE

#if UCUDNN_HAS_BACKEND
/**
 * Not 0: the client has been told of less workspace than the execution plan itself needs, so that
 * cuDNN must not run it, nor put it into a CUDA graph.
 */
UCUDNN_API int ucudnnBackendNeedsMore(cudnnBackendDescriptor_t executionPlan);
/** The workspace that the client has been told of for an execution plan of ours; else as it was. */
UCUDNN_API void ucudnnBackendToldWorkspace(cudnnBackendDescriptor_t executionPlan, size_t* bytes);
#endif

#ifdef __cplusplus
}
#endif

#endif /* UCUDNN_API_BACKEND_H_ */
