// The check's own check: a raw handle bypasses μ-cuDNN, rightly, and the check must say so.
#include <ucudnn/ucudnn.h>

#define CLIENT_HANDLE cudnnHandle_t
#include "symbols_client.inc"
