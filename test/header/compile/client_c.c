/* A C client: the same names, by macro; function pointers follow. */
#include <cudnn.h>
#include <ucudnn/ucudnn.h>

#if UCUDNN_VERSION < 100 || UCUDNN_VERSION / 10000 != UCUDNN_MAJOR
#error "the preprocessor can't compare versions"
#endif

typedef cudnnStatus_t (*Destroy)(UcudnnHandle_t handle);

cudnnStatus_t run(UcudnnHandle_t handle, const char* layer, cudnnConvolutionFwdAlgo_t* algo);

cudnnStatus_t run(UcudnnHandle_t handle, const char* layer, cudnnConvolutionFwdAlgo_t* algo) {
  const Destroy destroy = cudnnDestroy;
  const ucudnnLayerId_t id = ucudnnStringToLayerId(layer);
  if (id == UCUDNN_LAYER_ANY) return destroy(handle);
  return cudnnGetConvolutionForwardAlgorithm(
      handle, NULL, NULL, NULL, NULL, CUDNN_CONVOLUTION_FWD_PREFER_FASTEST, 0, algo);
}
