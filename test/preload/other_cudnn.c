/* A libcudnn.so.8, as far as other_client.c calls it. */
#include <stddef.h>

size_t cudnnGetVersion(void) {
  return 8907;
}

int cudnnCreate(void** handle) {
  *handle = handle;
  return 0;
}

int cudnnDestroy(void* handle) {
  return handle != NULL ? 0 : 1;
}

int cudnnGetConvolutionForwardWorkspaceSize(
    void* handle, void* x, void* w, void* convolution, void* y, int algorithm, size_t* bytes) {
  *bytes = handle != NULL && x == NULL && w == NULL && convolution == NULL && y == NULL
               ? (size_t)algorithm * 1000
               : 0;
  return 0;
}
