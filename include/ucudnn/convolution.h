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
 * ucudnnConvolutionForward(handle, alpha, ..., y) and so on; functions.h says what they take and
 * do. Each has a variant for a layer: ucudnnConvolutionForwardLayer(handle, alpha, ..., y,
 * layerId). With UCUDNN_LAYER_ANY it does the same as without a layer.
 */
UCUDNN_FOR_EACH_FUNCTION(UCUDNN_DECLARE_WITH_LAYER)

#ifdef __cplusplus
}
#endif

UCUDNN_QUIET_END

#endif /* UCUDNN_CONVOLUTION_H_ */
