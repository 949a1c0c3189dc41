// The doors without a layer id: each is its sister's for no layer in particular.
#include <ucudnn/convolution.h>
#include <ucudnn/removed.h>

extern "C" {

#define UCUDNN_DOOR(NAME, PARAMETERS, ARGUMENTS)                                   \
  cudnnStatus_t ucudnn##NAME(cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS) {     \
    return ucudnn##NAME##Layer(handle, UCUDNN_UNPACK ARGUMENTS, UCUDNN_LAYER_ANY); \
  }
UCUDNN_FOR_EACH_FUNCTION(UCUDNN_DOOR)
UCUDNN_FOR_EACH_REMOVED_FUNCTION(UCUDNN_DOOR)
#undef UCUDNN_DOOR

}  // extern "C"
