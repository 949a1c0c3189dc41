/* Another preloaded library that stands in front of dlsym, and of cudnnCreate, as a profiler does:
   it looks up cuDNN's in cuDNN's own handle. Says at the end how often each was called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static long lookUps, handles;

void* dlsym(void* handle, const char* name) {
  static void* (*next)(void*, const char*);
  if (next == NULL) next = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  ++lookUps;
  return next(handle, name);
}

int cudnnCreate(void** handle) {
  void* const library = dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_NOLOAD);
  int (*create)(void**) = (int (*)(void**))dlsym(library, "cudnnCreate");
  ++handles;
  return create(handle);
}

__attribute__((destructor)) static void end(void) {
  if (lookUps > 0) printf("the other: %ld look-ups, %ld handles\n", lookUps, handles);
}
