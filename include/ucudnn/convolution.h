/* The convolutions, as the C ABI has them: each is cuDNN's function of the same name. */
#ifndef UCUDNN_CONVOLUTION_H_
#define UCUDNN_CONVOLUTION_H_

#include <ucudnn/functions.h>
#include <ucudnn/layer.h>
#include <ucudnn/preamble.h>

UCUDNN_QUIET_BEGIN

#ifdef __cplusplus
extern "C" {
#endif

/*
 * ucudnnConvolutionForward(handle, alpha, ..., y) and so on; what they take and do is said in
 * functions.h. And each for a layer: ucudnnConvolutionForwardLayer(handle, alpha, ..., y, layerId).
 * UCUDNN_LAYER_ANY makes it the function without one.
 */
UCUDNN_FOR_EACH_FUNCTION(UCUDNN_DECLARE_WITH_LAYER)

#ifdef __cplusplus
}
#endif

UCUDNN_QUIET_END

#endif /* UCUDNN_CONVOLUTION_H_ */
