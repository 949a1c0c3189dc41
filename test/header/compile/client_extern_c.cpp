// A client whose headers are C, included by C++ (Darknet): everything within extern "C", and a
// handle returned by value.
#ifdef __cplusplus
extern "C" {
#endif
#include <ucudnn/ucudnn.h>

UcudnnHandle_t cudnn_handle(void);

static UcudnnHandle_t handles[16];

UcudnnHandle_t cudnn_handle(void) {
  return handles[0];
}
#ifdef __cplusplus
}
#endif
