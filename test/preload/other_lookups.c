/* Another preloaded library that stands in front of dlsym, and says at the end whether it was
 * called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static long calls;

void* dlsym(void* handle, const char* name) {
  static void* (*next)(void*, const char*);
  if (next == NULL) next = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  ++calls;
  return next(handle, name);
}

__attribute__((destructor)) static void end(void) {
  if (calls > 0) puts("the other was called");
}
