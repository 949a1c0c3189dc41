// Loads plain.cpp as Python loads PyTorch: linked with cuDNN, in a scope of its own.
//   host PLUGIN MODE FILE
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** words) {
  if (count < 2) return 2;
  void* const plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    std::printf("%s\n", dlerror());
    return 4;
  }
  const auto run = reinterpret_cast<int (*)(int, char**)>(dlsym(plugin, "plainMain"));
  return run != nullptr ? run(count - 1, words + 1) : 4;
}
