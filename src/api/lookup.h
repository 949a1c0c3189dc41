/* The functions that libucudnn_preload.so calls besides the public ones. */
#ifndef UCUDNN_API_LOOKUP_H_
#define UCUDNN_API_LOOKUP_H_

#include <ucudnn/preamble.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The address of cuDNN's function of that name; NULL: it has none. */
typedef void* (*ucudnnLookup_t)(const char* name);

/**
 * From here on cuDNN's functions are those that `lookup` finds, whatever the loader has bound their
 * names to. Not 0: done, now or before; 0: one of them is missing, and nothing has changed.
 */
UCUDNN_API int ucudnnLookUpCudnn(ucudnnLookup_t lookup);

/**
 * The program calls cuDNN by its own names, and knows nothing of us: handles that are made or
 * adopted from here on replay nothing, unless UCUDNN_GRAPH_MEMORY is set.
 */
UCUDNN_API void ucudnnServeUnmodified(void);

/**
 * Called for a client that is about to make a handle. `known`: from here on, all its calls of
 * cudaDeviceSynchronize are between the two calls below. It counts only if it holds for all
 * clients.
 */
UCUDNN_API void ucudnnKnowDeviceWaits(int known);

/**
 * Waits until nothing is captured on the current device, and lets nothing be captured until the
 * wait ends. Pass its result to ucudnnEndDeviceWait; NULL: there is no device, or no memory.
 */
UCUDNN_API void* ucudnnBeginDeviceWait(void);
UCUDNN_API void ucudnnEndDeviceWait(void* wait);

#ifdef __cplusplus
}
#endif

#endif /* UCUDNN_API_LOOKUP_H_ */
