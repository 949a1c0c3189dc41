/* Ends the program where a call of CUDA's or cuDNN's fails. For C and C++. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                      \
  do {                                                   \
    const int status = (int)(call);                      \
    if (status != 0) {                                   \
      fprintf(stderr, "%s: status %d\n", #call, status); \
      exit(1);                                           \
    }                                                    \
  } while (0)
