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
 * at the end, whose 0 means what this version does. Languages that can't include this header let
 * ucudnnInitConvolution and ucudnnSetConvolution write it.
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

/**
 * Writes an empty convolution into `bytes` of memory, which ucudnnSetConvolution fills: `size` is
 * set, `groups` is 1, every other number is 0. Returns how many bytes a convolution takes. Nothing
 * is written if `bytes` is less, or `convolution` NULL.
 */
UCUDNN_API size_t ucudnnInitConvolution(ucudnnConvolution_t* convolution, size_t bytes);

/**
 * Sets the member `name` of ucudnnConvolution_t ("x", "operation", ...) to `count` numbers.
 * CUDNN_STATUS_BAD_PARAM: there is no such member, it has fewer places, `size` is wrong, or a
 * pointer is NULL.
 */
UCUDNN_API cudnnStatus_t ucudnnSetConvolution(ucudnnConvolution_t* convolution,
                                              const char* name,
                                              int count,
                                              const int* numbers);

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

/**
 * A layer of a network: convolution, then bias, activation and pooling, each if it has a
 * descriptor. Later versions may add members at the end, whose 0 means what this version does.
 */
typedef struct {
  size_t size; /* sizeof(ucudnnFusedLayer_t), set by the caller */
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  int transposed; /* not 0: the convolution leads from y to x, and the layer is its gradient */
  cudnnTensorDescriptor_t bias; /* 1, K, 1, 1[, 1]; NULL: none, as in what follows */
  cudnnActivationDescriptor_t activation;
  cudnnTensorDescriptor_t y; /* what the activation writes */
  cudnnPoolingDescriptor_t pooling;
  cudnnTensorDescriptor_t pooled;
  cudnnActivationDescriptor_t xActivation; /* that made x, for backward; NULL: dx is x's gradient */
} ucudnnFusedLayer_t;

/**
 * Computes a layer on one part of the samples after the other, so that each tensor crosses the link
 * once: y = activation(convolution(x, w) + bias), pooled = pooling(y). Each tensor is on the device
 * or in host memory. `y` may be NULL if there is a pooling: it is not kept then.
 *
 * Needs a device memory (ucudnnSetDeviceMemory), also for tensors on the device: what lies between
 * two steps, and the convolutions' workspace, are there. The call is complete in the order of the
 * handle's stream; the host waits only if a tensor is pageable. Steps are the calls that cuDNN's
 * functions would be, so the result has their bits where they run the same kernels.
 *
 * CUDNN_STATUS_BAD_PARAM: `layer` is NULL, `size` is wrong, a descriptor or tensor is missing or
 * has a batch size of its own. CUDNN_STATUS_ALLOC_FAILED: filters and one sample don't fit, and the
 * log says what they need; the steps' own functions cut further. CUDNN_STATUS_NOT_SUPPORTED: there
 * is no device memory; a tensor has a type other than float, half, bfloat16 and double, or elements
 * that overlap; the stream is being captured, and no equal call has run before, or memory is
 * pageable.
 */
UCUDNN_API cudnnStatus_t ucudnnFusedForward(cudnnHandle_t handle,
                                            const ucudnnFusedLayer_t* layer,
                                            const void* x,
                                            const void* w,
                                            const void* bias,
                                            void* y,
                                            void* pooled);

/**
 * Computes a layer's gradients in the same way. `dOutput` is the gradient of pooled, or of y
 * without a pooling. dx, dw and db are overwritten; NULL: not wanted. `x` is read for dw, `w` for
 * dx, `y` if there is an activation or a pooling, `pooled` if there is a pooling; others may be
 * NULL.
 *
 * Less crosses the link in three ways. With `pooled` NULL it is computed again. With `y` NULL, and
 * no pooling, `dOutput` is the gradient of what the activation has read. With `xActivation` dx is
 * the gradient of what that activation has read, by x: the next call, of the layer that made x,
 * gets it as `dOutput` without a `y`.
 *
 * dw and db are summed over the parts, always in the same order. In half and bfloat16 that would
 * round each sum, so there all samples are one part if dw or db is wanted. Errors are those of
 * ucudnnFusedForward, and CUDNN_STATUS_NOT_SUPPORTED: an activation is ELU or SWISH, whose
 * gradients need what it has read.
 */
UCUDNN_API cudnnStatus_t ucudnnFusedBackward(cudnnHandle_t handle,
                                             const ucudnnFusedLayer_t* layer,
                                             const void* x,
                                             const void* w,
                                             const void* y,
                                             const void* pooled,
                                             const void* dOutput,
                                             void* dx,
                                             void* dw,
                                             void* db);

#ifdef __cplusplus
}
#endif

#endif /* UCUDNN_HOST_MEMORY_H_ */
