/**
 * μ-cuDNN: cuDNN's convolutions, split into micro-batches so that the fast ones fit the workspace
 * limit.
 *
 * The one header that a client includes, in C or in C++11 and later, before or after <cudnn.h>.
 * Replace `cudnnHandle_t` by `UcudnnHandle_t` and link with -lucudnn; nothing else changes.
 *
 * Switches, to be defined before the include: UCUDNN_NO_REMOVED_API (removed.h), UCUDNN_NO_C_NAMES
 * (c_names.h).
 */
#ifndef UCUDNN_UCUDNN_H_
#define UCUDNN_UCUDNN_H_

#include <ucudnn/convolution.h>
#include <ucudnn/handle.h>
#include <ucudnn/layer.h>
#include <ucudnn/overloads.h>
#include <ucudnn/preamble.h>
#include <ucudnn/removed.h>
#include <ucudnn/settings.h>
#include <ucudnn/small_layers.h>
#include <ucudnn/version.h>

UCUDNN_QUIET_BEGIN
#include <ucudnn/diagnosis.h>
#include <ucudnn/host_memory.h>
UCUDNN_QUIET_END

/* Last: from here on cuDNN's names mean ours in C. */
#include <ucudnn/c_names.h>

#endif /* UCUDNN_UCUDNN_H_ */
