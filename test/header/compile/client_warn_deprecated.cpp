// A client that asks for cuDNN's deprecation warnings gets none for what stands in our headers.
#define CUDNN_WARN_DEPRECATED 1
#include <ucudnn/ucudnn.h>

cudnnStatus_t make(UcudnnHandle_t* handle) {
  return cudnnCreate(handle);
}
