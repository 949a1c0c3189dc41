/* A client of a cuDNN that we are not built for, or of none: "other_client" calls what its loader
 * finds; "other_client LIBRARY" loads that first, in a scope of its own. Prints what it gets. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** words) {
  if (count > 1 && dlopen(words[1], RTLD_NOW | RTLD_LOCAL) == NULL) return 4;
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
