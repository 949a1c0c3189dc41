// Functions of a library as they are without libucudnn_preload.so, which answers dlsym.
#pragma once

#include <dlfcn.h>

namespace ucudnn::test {

/// As dlsym of the C library, which is found by its version.
inline void* lookUpPastPreload(void* library, const char* name) {
  using LookUp = void* (*)(void*, const char*);
  static const auto lookUp = [] {
    void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void* const found = libc != nullptr ? dlvsym(libc, "dlsym", "GLIBC_2.34") : nullptr;
    return found != nullptr ? reinterpret_cast<LookUp>(found) : &dlsym;
  }();
  return lookUp(library, name);
}

}  // namespace ucudnn::test
