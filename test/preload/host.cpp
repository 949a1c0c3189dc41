// Loads plain.cpp as Python loads PyTorch: linked with cuDNN, in a scope of its own. The libraries
// are loaded before it, as those of packages are that lie where the loader does not look.
//   host PLUGIN MODE FILE [LIBRARY...]
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** words) {
  if (count < 4) return 2;
  for (int i = 4; i < count; ++i)
    if (dlopen(words[i], RTLD_LAZY | RTLD_LOCAL) == nullptr) std::printf("%s\n", dlerror());
  void* const plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    std::printf("%s\n", dlerror());
    return 4;
  }
  const auto run = reinterpret_cast<int (*)(int, char**)>(dlsym(plugin, "plainMain"));
  return run != nullptr ? run(count - 1, words + 1) : 4;
}
