/* Operations beside the convolutions, as the C ABI has them: each is cuDNN's of the same name. */
#ifndef UCUDNN_SMALL_LAYERS_H_
#define UCUDNN_SMALL_LAYERS_H_

#include <ucudnn/functions.h>
#include <ucudnn/preamble.h>

UCUDNN_QUIET_BEGIN

#ifdef __cplusplus
extern "C" {
#endif

/* Formatted by hand, and X is called, as in functions.h. */
/* clang-format off */
/*
 * Operations beside the convolutions. Tensors, parameters and statuses are those of cuDNN's
 * function, to which a call goes as it is if its tensors are on the device.
 *
 * With a device memory (ucudnnSetDeviceMemory) any tensor may be in host memory, pinned or
 * pageable. It is copied in parts, once in each direction that it needs, beside the kernels. Parts
 * are ranges of samples; within a sample of channels; and of rows, but not for pooling. A softmax
 * is not cut where it sums up. A bias gradient in half or bfloat16 is cut by channels alone. The
 * call is complete in the order of the handle's stream; the host waits only if a tensor is
 * pageable. CUDNN_STATUS_ALLOC_FAILED: the smallest parts don't fit, and the log says how much they
 * need. CUDNN_STATUS_NOT_SUPPORTED: a tensor on the host has more than five dimensions, or a type
 * other than float, half, bfloat16 and double, or elements that overlap; or the stream is being
 * captured, and no equal call has run before, or memory is pageable.
 * https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-ops-library.html
 */
#define UCUDNN_FOR_EACH_SMALL_LAYER(X)                                                             \
  X(AddTensor,                                                                                     \
    (const void* alpha, cudnnTensorDescriptor_t aDesc, const void* A, const void* beta,            \
     cudnnTensorDescriptor_t cDesc, void* C),                                                      \
    (alpha, aDesc, A, beta, cDesc, C))                                                             \
  X(ConvolutionBackwardBias,                                                                       \
    (const void* alpha, cudnnTensorDescriptor_t dyDesc, const void* dy, const void* beta,          \
     cudnnTensorDescriptor_t dbDesc, void* db),                                                    \
    (alpha, dyDesc, dy, beta, dbDesc, db))                                                         \
  X(ActivationForward,                                                                             \
    (cudnnActivationDescriptor_t activationDesc, const void* alpha, cudnnTensorDescriptor_t xDesc, \
     const void* x, const void* beta, cudnnTensorDescriptor_t yDesc, void* y),                     \
    (activationDesc, alpha, xDesc, x, beta, yDesc, y))                                             \
  X(ActivationBackward,                                                                            \
    (cudnnActivationDescriptor_t activationDesc, const void* alpha, cudnnTensorDescriptor_t yDesc, \
     const void* y, cudnnTensorDescriptor_t dyDesc, const void* dy, cudnnTensorDescriptor_t xDesc, \
     const void* x, const void* beta, cudnnTensorDescriptor_t dxDesc, void* dx),                   \
    (activationDesc, alpha, yDesc, y, dyDesc, dy, xDesc, x, beta, dxDesc, dx))                     \
  X(PoolingForward,                                                                                \
    (cudnnPoolingDescriptor_t poolingDesc, const void* alpha, cudnnTensorDescriptor_t xDesc,       \
     const void* x, const void* beta, cudnnTensorDescriptor_t yDesc, void* y),                     \
    (poolingDesc, alpha, xDesc, x, beta, yDesc, y))                                                \
  X(PoolingBackward,                                                                               \
    (cudnnPoolingDescriptor_t poolingDesc, const void* alpha, cudnnTensorDescriptor_t yDesc,       \
     const void* y, cudnnTensorDescriptor_t dyDesc, const void* dy, cudnnTensorDescriptor_t xDesc, \
     const void* x, const void* beta, cudnnTensorDescriptor_t dxDesc, void* dx),                   \
    (poolingDesc, alpha, yDesc, y, dyDesc, dy, xDesc, x, beta, dxDesc, dx))                        \
  X(SoftmaxForward,                                                                                \
    (cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode, const void* alpha,                     \
     cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,                               \
     cudnnTensorDescriptor_t yDesc, void* y),                                                      \
    (algo, mode, alpha, xDesc, x, beta, yDesc, y))                                                 \
  X(SoftmaxBackward,                                                                               \
    (cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode, const void* alpha,                     \
     cudnnTensorDescriptor_t yDesc, const void* y, cudnnTensorDescriptor_t dyDesc, const void* dy, \
     const void* beta, cudnnTensorDescriptor_t dxDesc, void* dx),                                  \
    (algo, mode, alpha, yDesc, y, dyDesc, dy, beta, dxDesc, dx))
/* clang-format on */

/* ucudnnAddTensor(handle, alpha, ..., C) and so on. */
#define UCUDNN_DECLARE(NAME, PARAMETERS, ARGUMENTS) \
  UCUDNN_API cudnnStatus_t ucudnn##NAME(cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS);
UCUDNN_FOR_EACH_SMALL_LAYER(UCUDNN_DECLARE)
#undef UCUDNN_DECLARE

#ifdef __cplusplus
}
#endif

UCUDNN_QUIET_END

#endif /* UCUDNN_SMALL_LAYERS_H_ */
