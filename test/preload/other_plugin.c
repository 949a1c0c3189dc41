/* A library of a process whose other libraries have another cuDNN than its own, libcudnn.so.8.
 * Prints what it gets. */
#include <stddef.h>
#include <stdio.h>

int cudnnCreate(void** handle);
int cudnnDestroy(void* handle);
int cudnnGetConvolutionForwardWorkspaceSize(
    void* handle, void* x, void* w, void* convolution, void* y, int algorithm, size_t* bytes);

void callOther(void) {
  void* handle = NULL;
  size_t bytes = 0;
  const int created = cudnnCreate(&handle);
  const int asked =
      cudnnGetConvolutionForwardWorkspaceSize(handle, NULL, NULL, NULL, NULL, 7, &bytes);
  const int destroyed = cudnnDestroy(handle);
  printf("other %d %d %zu %d\n", created, asked, bytes, destroyed);
}
