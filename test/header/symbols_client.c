#include <ucudnn/ucudnn.h>

#define CLIENT_HANDLE UcudnnHandle_t
#include "symbols_client.inc"
