/* Operations beside the convolutions, as the C ABI has them: each is cuDNN's of the same name. */
#ifndef UCUDNN_SMALL_LAYERS_H_
#define UCUDNN_SMALL_LAYERS_H_

#include <ucudnn/functions.h>
#include <ucudnn/preamble.h>

UCUDNN_QUIET_BEGIN

#ifdef __cplusplus
extern "C" {
#endif

/* ucudnnAddTensor(handle, alpha, ..., C) and so on; functions.h says what they take and do. */
#define UCUDNN_DECLARE(NAME, PARAMETERS, ARGUMENTS) \
  UCUDNN_API cudnnStatus_t ucudnn##NAME(cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS);
UCUDNN_FOR_EACH_SMALL_LAYER(UCUDNN_DECLARE)
#undef UCUDNN_DECLARE

#ifdef __cplusplus
}
#endif

UCUDNN_QUIET_END

#endif /* UCUDNN_SMALL_LAYERS_H_ */
