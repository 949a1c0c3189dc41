/* A C source that keeps cuDNN's names for cuDNN. */
#define UCUDNN_NO_C_NAMES
#include <ucudnn/ucudnn.h>

#ifdef cudnnCreate
#error "cuDNN's name was taken"
#endif

cudnnStatus_t make(UcudnnHandle_t* ours, cudnnHandle_t* plain);

cudnnStatus_t make(UcudnnHandle_t* ours, cudnnHandle_t* plain) {
  const cudnnStatus_t status = ucudnnCreate(ours);
  return status == CUDNN_STATUS_SUCCESS ? cudnnCreate(plain) : status;
}
