// Loads plain.cpp as Python loads PyTorch: linked with cuDNN, in a scope of its own. The libraries
// are loaded before it, as those of packages are that lie where the loader does not look. One that
// has another cuDNN (other_plugin.c) calls it before and after.
//   host PLUGIN MODE FILE [LIBRARY...]
#include <dlfcn.h>

#include <cstdio>
#include <vector>

int main(int count, char** words) {
  if (count < 4) return 2;
  using Other = void (*)();
  std::vector<Other> others;
  for (int i = 4; i < count; ++i) {
    void* const library = dlopen(words[i], RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
      std::printf("%s\n", dlerror());
      continue;
    }
    if (const auto other = reinterpret_cast<Other>(dlsym(library, "callOther")))
      others.push_back(other);
  }
  for (const Other other : others) other();
  void* const plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    std::printf("%s\n", dlerror());
    return 4;
  }
  const auto run = reinterpret_cast<int (*)(int, char**)>(dlsym(plugin, "plainMain"));
  const int status = run != nullptr ? run(count - 1, words + 1) : 4;
  for (const Other other : others) other();
  return status;
}
