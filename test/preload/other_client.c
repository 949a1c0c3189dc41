/* A client of a cuDNN that we are not built for, or of none: "other_client" calls what its loader
 * finds; "other_client LIBRARY" loads that first, in a scope of its own; "other_client LIBRARY
 * again" loads it for all, drops it, and does so once more, elsewhere in memory. Prints what it
 * gets. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

/* The next library that is loaded must take another place. */
static void drop(void* library) {
  Dl_info found;
  const int isFound = dladdr(dlsym(library, "cudnnGetVersion"), &found);
  dlclose(library);
  if (isFound != 0)
    mmap(found.dli_fbase, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static int use(void) {
  int (*create)(void**) = (int (*)(void**))dlsym(RTLD_DEFAULT, "cudnnCreate");
  int (*destroy)(void*) = (int (*)(void*))dlsym(RTLD_DEFAULT, "cudnnDestroy");
  int (*size)(void*, void*, void*, void*, void*, int, size_t*) =
      (int (*)(void*, void*, void*, void*, void*, int, size_t*))dlsym(
          RTLD_DEFAULT, "cudnnGetConvolutionForwardWorkspaceSize");
  if (create == NULL || destroy == NULL || size == NULL) return 5;
  void* handle = NULL;
  size_t bytes = 0;
  const int created = create(&handle);
  const int asked = size(handle, NULL, NULL, NULL, NULL, 7, &bytes);
  const int destroyed = destroy(handle);
  printf("%d %d %zu %d\n", created, asked, bytes, destroyed);
  return 0;
}

int main(int count, char** words) {
  int status = 0;
  for (int i = 0; i < (count > 2 ? 2 : 1) && status == 0; ++i) {
    void* library = NULL;
    if (count > 1) library = dlopen(words[1], RTLD_NOW | (count > 2 ? RTLD_GLOBAL : RTLD_LOCAL));
    if (count > 1 && library == NULL) return 4;
    status = use();
    if (count > 2) drop(library);
  }
  return status;
}
