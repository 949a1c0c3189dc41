/* The beginning of every public header: cuDNN itself, and the marks of our declarations. */
#ifndef UCUDNN_PREAMBLE_H_
#define UCUDNN_PREAMBLE_H_

#if defined(__cplusplus) && __cplusplus < 201103L
#error "ucudnn needs C++11 or later, or C"
#endif

/* Some clients include us inside `extern "C" {` (Darknet); the CUDA headers declare templates. */
#ifdef __cplusplus
extern "C++" {
#endif
#include <cudnn.h>
#include <stddef.h>
#ifdef __cplusplus
}
#endif

/** Marks what libucudnn.so exports; everything else in it is hidden. */
#if defined(__GNUC__)
#define UCUDNN_API __attribute__((visibility("default")))
#else
#define UCUDNN_API
#endif

/*
 * cuDNN marks its convolution API deprecated if a client defines CUDNN_WARN_DEPRECATED. The client
 * asked about its own uses; between these two, ours stay silent. So do the casts of the few
 * functions that C and C++ share.
 */
#if defined(__NVCC_DIAG_PRAGMA_SUPPORT__)
#define UCUDNN_QUIET_NVCC_BEGIN _Pragma("nv_diagnostic push") _Pragma("nv_diag_suppress 1215,1444")
#define UCUDNN_QUIET_NVCC_END _Pragma("nv_diagnostic pop")
#else
#define UCUDNN_QUIET_NVCC_BEGIN
#define UCUDNN_QUIET_NVCC_END
#endif
#if defined(__GNUC__) && defined(__cplusplus)
#define UCUDNN_QUIET_CASTS _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"")
#else
#define UCUDNN_QUIET_CASTS
#endif
#if defined(__GNUC__)
#define UCUDNN_QUIET_BEGIN                                                                       \
  UCUDNN_QUIET_NVCC_BEGIN                                                                        \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"") \
      UCUDNN_QUIET_CASTS
#define UCUDNN_QUIET_END UCUDNN_QUIET_NVCC_END _Pragma("GCC diagnostic pop")
#else
#define UCUDNN_QUIET_BEGIN UCUDNN_QUIET_NVCC_BEGIN
#define UCUDNN_QUIET_END UCUDNN_QUIET_NVCC_END
#endif

#endif /* UCUDNN_PREAMBLE_H_ */
