/* Looks up cuDNN's functions in its own handle, as XLA does. Its argument says what it does:
     none      in a constructor, in main, in a forked child; prints whose functions it finds
     million   a million look-ups of each of three functions find the same ones, and in a forked
   child handles   makes and ends a handle by the functions that it finds forks     children that
   look up, forked while threads look up time      prints how many nanoseconds each look-up takes
   longer than in the C library */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void* (*LookUp)(void*, const char*);
static void* library;
static const char* const names[] = {
    "cudnnConvolutionForward", "cudnnBackendExecute", "cudnnGetVersion"};
enum { kNames = sizeof(names) / sizeof(names[0]) };

static void print(const char* what, void* function) {
  Dl_info found;
  const char* name = "none";
  if (function != NULL && dladdr(function, &found) != 0) name = strrchr(found.dli_fname, '/') + 1;
  printf("%s %s\n", what, name);
  fflush(stdout);
}

__attribute__((constructor)) static void begin(void) {
  library = dlopen("libcudnn.so.9", RTLD_LAZY);
  if (library != NULL) print("constructor", dlsym(library, names[0]));
}

static int lookUp(void) {
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

static int lookUpMillions(void) {
  for (int n = 0; n < kNames; ++n) {
    void* const first = dlsym(library, names[n]);
    for (int i = 1; i < 1000000; ++i)
      if (dlsym(library, names[n]) != first) return 3;
    print(names[n], first);
  }
  return 0;
}

static int lookUpOften(void) {
  const pid_t child = fork();
  if (child == 0) _exit(lookUpMillions());
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 3;
  return lookUpMillions();
}

static int makeHandle(void) {
  int (*create)(void**) = (int (*)(void**))dlsym(library, "cudnnCreate");
  int (*destroy)(void*) = (int (*)(void*))dlsym(library, "cudnnDestroy");
  void* handle = NULL;
  if (create(&handle) != 0 || handle == NULL || destroy(handle) != 0) return 3;
  puts("made and ended");
  fflush(stdout);
  return 0;
}

static void* lookUpAlways(void* unused) {
  (void)unused;
  for (int n = 0;; ++n) {
    dlsym(library, names[n % kNames]);
    dlsym(library, "cudnnNothing"); /* makes a text for dlerror, by malloc */
    dlclose(dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_NOLOAD));
  }
  return NULL;
}

static int forkAmidLookUps(void) {
  pthread_t thread;
  for (int i = 0; i < 4; ++i)
    if (pthread_create(&thread, NULL, lookUpAlways, NULL) != 0) return 2;
  const char* const own[] = {"cudnnBackendFinalize", "cudnnDestroy"}; /* nobody else's */
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGALRM, SIG_DFL);
      alarm(30); /* a child that hangs ends by it */
      const int isThere = dlsym(library, own[i % 2]) != NULL && dlsym(library, names[0]) != NULL;
      _exit(isThere ? 0 : 3);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 3;
  }
  puts("no child hung");
  fflush(stdout);
  _exit(0);
}

/* The least of a thousand runs, which a busy machine does not delay. */
static double nanoseconds(LookUp function, const char* name) {
  double least = 1e9;
  for (int run = 0; run < 1000; ++run) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < 1000; ++i) function(library, name);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double each =
        ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / 1000;
    if (each < least) least = each;
  }
  return least;
}

static int measure(void) {
  const LookUp plain = (LookUp)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  for (int n = 0; n < kNames; ++n)
    printf("%s %.0f\n", names[n], nanoseconds(dlsym, names[n]) - nanoseconds(plain, names[n]));
  return 0;
}

int main(int count, char** words) {
  if (library == NULL) return 2;
  const char* const mode = count > 1 ? words[1] : "";
  if (strcmp(mode, "million") == 0) return lookUpOften();
  if (strcmp(mode, "handles") == 0) return makeHandle();
  if (strcmp(mode, "forks") == 0) return forkAmidLookUps();
  if (strcmp(mode, "time") == 0) return measure();
  return lookUp();
}
