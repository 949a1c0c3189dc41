/* The same from C: the handle's life, and the version. Prints "ucudnn VERSION". */
#include <stdio.h>
#include <ucudnn/ucudnn.h>

int main(void) {
  UcudnnHandle_t handle = NULL;
  if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) return 1;
  if (ucudnnSetBatchSizePolicy(handle, UCUDNN_BATCH_SIZE_POLICY_ALL) != CUDNN_STATUS_SUCCESS)
    return 1;
  if (cudnnDestroy(handle) != CUDNN_STATUS_SUCCESS) return 1;
  printf("ucudnn %s\n", ucudnnGetVersionString());
  return 0;
}
