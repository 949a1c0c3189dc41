/* Looks up cuDNN's functions in its own handle, as XLA does: in a constructor, in main, in a forked
   child. Prints whose they are, and with "time" how many nanoseconds a look-up takes longer than in
   the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void* (*LookUp)(void*, const char*);
static void* library;

static void print(const char* what, void* function) {
  Dl_info found;
  const char* name = "none";
  if (function != NULL && dladdr(function, &found) != 0) name = strrchr(found.dli_fname, '/') + 1;
  printf("%s %s\n", what, name);
  fflush(stdout);
}

__attribute__((constructor)) static void begin(void) {
  library = dlopen("libcudnn.so.9", RTLD_LAZY);
  if (library != NULL) print("constructor", dlsym(library, "cudnnConvolutionForward"));
}

/* The least of a thousand runs, which a busy machine does not delay. */
static double nanoseconds(LookUp lookUp, const char* name) {
  double least = 1e9;
  for (int run = 0; run < 1000; ++run) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < 1000; ++i) lookUp(library, name);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double each =
        ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / 1000;
    if (each < least) least = each;
  }
  return least;
}

int main(int count, char** words) {
  if (library == NULL) return 2;
  if (count > 1 && strcmp(words[1], "time") == 0) {
    const LookUp plain = (LookUp)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    const char* const names[] = {
        "cudnnConvolutionForward", "cudnnBackendExecute", "cudnnGetVersion"};
    for (int i = 0; i < 3; ++i)
      printf("%.0f\n", nanoseconds(dlsym, names[i]) - nanoseconds(plain, names[i]));
    return 0;
  }
  print("handle", dlsym(library, "cudnnCreate"));
  print("another", dlsym(library, "cudnnGetVersion"));
  printf("error %s\n", dlerror() != NULL ? "left" : "none");
  void* const missing = dlsym(library, "cudnnNothing");
  printf("missing %s\n", missing == NULL && dlerror() != NULL ? "is said" : "is not said");
  print("next", dlsym(RTLD_NEXT, "getpid"));
  if (fork() == 0) {
    print("child", dlsym(library, "cudnnDestroy"));
    _exit(0);
  }
  wait(NULL);
  return 0;
}
