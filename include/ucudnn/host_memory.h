/* Convolutions whose tensors no device holds. UCUDNN_DEVICE_MEMORY lets them be in host memory. */
#ifndef UCUDNN_HOST_MEMORY_H_
#define UCUDNN_HOST_MEMORY_H_

#include <ucudnn/diagnosis.h>
#include <ucudnn/preamble.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Allocates memory for a tensor of the handle's convolutions: on the device, until three quarters
 * of the device memory (ucudnnSetDeviceMemory) are taken, then in pinned host memory. Without a
 * device memory all is on the device. CUDNN_STATUS_ALLOC_FAILED: there is no memory.
 * CUDNN_STATUS_BAD_PARAM: `handle` or `memory` is NULL. On an error `*memory` is NULL.
 */
UCUDNN_API cudnnStatus_t ucudnnMalloc(cudnnHandle_t handle, void** memory, size_t bytes);

/** Frees what ucudnnMalloc gave for this handle, or for another one of its device. NULL: nothing.
 */
UCUDNN_API cudnnStatus_t ucudnnFree(cudnnHandle_t handle, void* memory);

/**
 * A convolution in numbers. Its tensors are packed: N, C, [D,] H, W. Later versions may add members
 * at the end, whose 0 means what this version does.
 */
typedef struct {
  size_t size; /* sizeof(ucudnnConvolution_t), set by the caller */
  ucudnnOperation_t operation;
  cudnnDataType_t type; /* of all tensors: float, half, bfloat16 or double */
  cudnnMathType_t math;
  int dimensions; /* of the tensors: 4 or 5 */
  int x[5];       /* sizes */
  int w[5];       /* K, C / groups, ... */
  int padding[3];
  int stride[3];
  int dilation[3];
  int groups;
  int relu; /* not 0: UCUDNN_BIAS_ACTIVATION_FORWARD applies RELU */
} ucudnnConvolution_t;

/** The sizes of y. CUDNN_STATUS_BAD_PARAM: no such convolution exists, or `size` is wrong. */
UCUDNN_API cudnnStatus_t ucudnnGetConvolutionOutput(const ucudnnConvolution_t* convolution,
                                                    int sizes[5]);

/**
 * Runs a convolution. Its output (y, or x as dx, or w as dw) becomes alpha * result + beta *
 * output. Each tensor is on the device or, with a device memory (ucudnnSetDeviceMemory), in host
 * memory, and may have 2^31 elements and more. `bias` has a value for each filter, and is for
 * UCUDNN_BIAS_ACTIVATION_FORWARD, whose beta is 0. CUDNN_STATUS_BAD_PARAM: no such convolution
 * exists, or `size` is wrong. CUDNN_STATUS_NOT_SUPPORTED: there is no device memory. Otherwise as
 * the cuDNN function of the operation.
 */
UCUDNN_API cudnnStatus_t ucudnnConvolve(cudnnHandle_t handle,
                                        const ucudnnConvolution_t* convolution,
                                        double alpha,
                                        void* x,
                                        void* w,
                                        const void* bias,
                                        double beta,
                                        void* y);

#ifdef __cplusplus
}
#endif

#endif /* UCUDNN_HOST_MEMORY_H_ */
