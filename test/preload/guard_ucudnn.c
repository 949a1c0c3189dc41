/* A libucudnn.so that says what is called, and then calls cuDNN through the loader. */
#include <cudnn.h>
#include <stdio.h>
#include <ucudnn/functions.h>

#include "api/backend.h"
#include "api/lookup.h"

int ucudnnLookUpCudnn(void* (*lookup)(const char*)) {
  return lookup("cudnnConvolutionForward") != (void*)&cudnnConvolutionForward;
}

cudnnStatus_t ucudnnCreate(cudnnHandle_t* handle) {
  return cudnnCreate(handle);
}

cudnnStatus_t ucudnnDestroy(cudnnHandle_t handle) {
  return cudnnDestroy(handle);
}

#define PLANNED(NAME, PARAMETERS, ARGUMENTS)                                   \
  cudnnStatus_t ucudnn##NAME(cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS) { \
    printf("planned %s\n", #NAME);                                             \
    return cudnn##NAME(handle, UCUDNN_UNPACK ARGUMENTS);                       \
  }
UCUDNN_FOR_EACH_FUNCTION(PLANNED)

#define BACKEND(NAME, PARAMETERS, ARGUMENTS) \
  cudnnStatus_t ucudnn##NAME PARAMETERS {    \
    return cudnn##NAME ARGUMENTS;            \
  }
UCUDNN_FOR_EACH_BACKEND_FUNCTION(BACKEND)

/* Only the second of guard_client.c's plans needs more. */
int ucudnnBackendNeedsMore(cudnnBackendDescriptor_t plan) {
  return *(const int*)plan == 2;
}

/* And it is ours. */
void ucudnnBackendToldWorkspace(cudnnBackendDescriptor_t plan, size_t* bytes) {
  if (*(const int*)plan == 2) *bytes = 70;
}

void ucudnnServeUnmodified(void) {
  printf("the program is unmodified\n");
}

void ucudnnKnowDeviceWaits(int known) {
  printf("waits for a device are %s\n", known ? "seen" : "not seen");
}

void* ucudnnBeginDeviceWait(void) {
  return NULL;
}

void ucudnnEndDeviceWait(void* wait) {
  (void)wait;
}
