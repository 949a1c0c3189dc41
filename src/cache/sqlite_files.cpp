#include "cache/sqlite_files.hpp"

#include <sqlite3.h>
#include <sys/resource.h>

#include <cstdio>

namespace ucudnn {
namespace {

/// SQLite's own file lies behind this one in the same memory.
struct SafeFile {
  sqlite3_file base;
  sqlite3_file* own() noexcept { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
static_assert(sizeof(SafeFile) % alignof(sqlite3_int64) == 0);

sqlite3_file* ownOf(sqlite3_file* file) noexcept {
  return reinterpret_cast<SafeFile*>(file)->own();
}

/// Forwards one method to SQLite's own file.
template <auto Method, typename... Arguments>
int forward(sqlite3_file* file, Arguments... arguments) {
  sqlite3_file* const own = ownOf(file);
  return (own->pMethods->*Method)(own, arguments...);
}

bool isBeyondLimit(sqlite3_int64 size) noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         static_cast<rlim_t>(size) > limit.rlim_cur;
}

int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  if (isBeyondLimit(offset + count)) return SQLITE_FULL;
  return forward<&sqlite3_io_methods::xWrite>(file, bytes, count, offset);
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (isBeyondLimit(size)) return SQLITE_FULL;
  return forward<&sqlite3_io_methods::xTruncate>(file, size);
}

int control(sqlite3_file* file, int operation, void* argument) {
  // Either of them may map the file.
  if (operation == SQLITE_FCNTL_MMAP_SIZE) return SQLITE_NOTFOUND;
  if (operation == SQLITE_FCNTL_SIZE_HINT) return SQLITE_OK;
  return forward<&sqlite3_io_methods::xFileControl>(file, operation, argument);
}

constexpr sqlite3_io_methods makeMethods() {
  using Methods = sqlite3_io_methods;
  Methods methods{};
  methods.iVersion = 1;  // version 2 adds shared memory, 3 mapped pages
  methods.xClose = forward<&Methods::xClose>;
  methods.xRead = forward<&Methods::xRead, void*, int, sqlite3_int64>;
  methods.xWrite = write;
  methods.xTruncate = truncate;
  methods.xSync = forward<&Methods::xSync, int>;
  methods.xFileSize = forward<&Methods::xFileSize, sqlite3_int64*>;
  methods.xLock = forward<&Methods::xLock, int>;
  methods.xUnlock = forward<&Methods::xUnlock, int>;
  methods.xCheckReservedLock = forward<&Methods::xCheckReservedLock, int*>;
  methods.xFileControl = control;
  methods.xSectorSize = forward<&Methods::xSectorSize>;
  methods.xDeviceCharacteristics = forward<&Methods::xDeviceCharacteristics>;
  return methods;
}
constexpr sqlite3_io_methods kMethods = makeMethods();

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* outFlags) {
  auto* const base = static_cast<sqlite3_vfs*>(vfs->pAppData);
  file->pMethods = nullptr;
  const int code = base->xOpen(base, name, ownOf(file), flags, outFlags);
  if (ownOf(file)->pMethods != nullptr) file->pMethods = &kMethods;
  return code;
}

// All other methods don't concern open files. They are SQLite's own, called with SQLite's own VFS.
sqlite3_vfs* baseOf(sqlite3_vfs* vfs) noexcept {
  return static_cast<sqlite3_vfs*>(vfs->pAppData);
}

template <auto Method, typename... Arguments>
int forwardToVfs(sqlite3_vfs* vfs, Arguments... arguments) {
  sqlite3_vfs* const base = baseOf(vfs);
  return (base->*Method)(base, arguments...);
}

struct SafeVfs {
  sqlite3_vfs vfs{};
  char name[32] = "";  ///< several copies of this library may be in a process
};

SafeVfs makeVfs(const SafeVfs* address) noexcept {
  SafeVfs made;
  sqlite3_vfs* const base = sqlite3_vfs_find("unix");
  if (base == nullptr) return made;
  std::snprintf(made.name, sizeof made.name, "ucudnn-%p", static_cast<const void*>(address));
  made.vfs.iVersion = 1;
  made.vfs.szOsFile = static_cast<int>(sizeof(SafeFile)) + base->szOsFile;
  made.vfs.mxPathname = base->mxPathname;
  made.vfs.pAppData = base;
  made.vfs.xOpen = open;
  made.vfs.xDelete = forwardToVfs<&sqlite3_vfs::xDelete, const char*, int>;
  made.vfs.xAccess = forwardToVfs<&sqlite3_vfs::xAccess, const char*, int, int*>;
  made.vfs.xFullPathname = forwardToVfs<&sqlite3_vfs::xFullPathname, const char*, int, char*>;
  made.vfs.xRandomness = forwardToVfs<&sqlite3_vfs::xRandomness, int, char*>;
  made.vfs.xSleep = forwardToVfs<&sqlite3_vfs::xSleep, int>;
  made.vfs.xCurrentTime = forwardToVfs<&sqlite3_vfs::xCurrentTime, double*>;
  made.vfs.xGetLastError = forwardToVfs<&sqlite3_vfs::xGetLastError, int, char*>;
  return made;
}

SafeVfs& instance() noexcept {
  static SafeVfs made = makeVfs(&made);
  static const bool isNamed = (made.vfs.zName = made.name) != nullptr;
  static_cast<void>(isNamed);
  return made;
}

}  // namespace

const char* safeFiles() noexcept {
  sqlite3_initialize();
  SafeVfs& made = instance();
  if (made.vfs.xOpen == nullptr) return nullptr;
  if (sqlite3_vfs_find(made.name) != &made.vfs && sqlite3_vfs_register(&made.vfs, 0) != SQLITE_OK)
    return nullptr;
  return made.name;
}

void forgetSafeFiles() noexcept {
  SafeVfs& made = instance();
  if (made.vfs.xOpen != nullptr) sqlite3_vfs_unregister(&made.vfs);
}

}  // namespace ucudnn
