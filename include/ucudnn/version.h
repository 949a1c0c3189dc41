/* The version, for the preprocessor, as cuDNN's. CMake takes the project's version from here. */
#ifndef UCUDNN_VERSION_H_
#define UCUDNN_VERSION_H_

#define UCUDNN_MAJOR 0
#define UCUDNN_MINOR 1
#define UCUDNN_PATCHLEVEL 0

/** As in `#if UCUDNN_VERSION >= 10203` for 1.2.3 and later. */
#define UCUDNN_VERSION (UCUDNN_MAJOR * 10000 + UCUDNN_MINOR * 100 + UCUDNN_PATCHLEVEL)

#endif /* UCUDNN_VERSION_H_ */
