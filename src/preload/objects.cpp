#include "preload/objects.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

namespace ucudnn::preload {
namespace {

const char* namesOf(const link_map& object) noexcept {
  const auto* const section = reinterpret_cast<const char*>(object.l_ld);
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_STRTAB)
      return section + (entry->d_un.d_ptr - reinterpret_cast<ElfW(Addr)>(section));
  return nullptr;
}

/// Calls `visit` with each name that has the tag, until it returns true; whether it has.
template <typename Visit>
bool findName(const link_map& object, ElfW(Sxword) tag, Visit visit) noexcept {
  const char* const names = namesOf(object);
  if (names == nullptr) return false;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == tag && visit(names + entry->d_un.d_val)) return true;
  return false;
}

#if __GLIBC_PREREQ(2, 35)
using FindObject = decltype(&::_dl_find_object);

/// A function of the C library that runs, which may be older than the build's. Null: it has none.
FindObject findObject() noexcept {
  static std::atomic<void*> found{nullptr};
  static char none;
  void* known = found.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = ::dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35");
    if (known == nullptr) {
      ::dlerror();  // else the program finds it
      known = &none;
    }
    found.store(known, std::memory_order_release);
  }
  return known != &none ? reinterpret_cast<FindObject>(known) : nullptr;
}
#endif

}  // namespace

const link_map* objectAt(const void* address) noexcept {
#if __GLIBC_PREREQ(2, 35)
  if (const FindObject find = findObject()) {
    dl_find_object found{};
    return find(const_cast<void*>(address), &found) == 0 ? found.dlfo_link_map : nullptr;
  }
#endif
  Dl_info found{};
  link_map* object = nullptr;
  return ::dladdr1(address, &found, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0
             ? object
             : nullptr;
}

bool needs(const link_map& object, const char* name) noexcept {
  return findName(object, DT_NEEDED, [name](const char* needed) {
    return ::strncmp(needed, name, ::strlen(name)) == 0;
  });
}

int majorInName(const char* path) noexcept {
  constexpr char kBegin[] = "libcudnn", kEnd[] = ".so.";
  const char* const slash = ::strrchr(path, '/');
  const char* const name = slash != nullptr ? slash + 1 : path;
  if (::strncmp(name, kBegin, sizeof(kBegin) - 1) != 0) return 0;
  const char* const end = ::strstr(name, kEnd);
  return end != nullptr ? ::atoi(end + sizeof(kEnd) - 1) : 0;
}

int majorNeededBy(const link_map& object) noexcept {
  int major = 0;
  const auto isCudnn = [&major](const char* name) {
    major = majorInName(name);
    return major > 0;
  };
  if (findName(object, DT_SONAME, isCudnn)) return major;
  return findName(object, DT_NEEDED, isCudnn) ? major : 0;
}

}  // namespace ucudnn::preload
