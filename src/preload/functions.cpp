#include "preload/functions.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

namespace ucudnn::preload {
namespace {

#define UCUDNN_STRING(TEXT) #TEXT
#define UCUDNN_VALUE_OF(MACRO) UCUDNN_STRING(MACRO)

// What we are built for.
constexpr const char* kCudnn = "libcudnn.so." UCUDNN_VALUE_OF(CUDNN_MAJOR);
constexpr const char* kRuntime = "libcudart.so." UCUDNN_VALUE_OF(UCUDNN_CUDART_MAJOR);

constexpr const char* kRuntimes[] = {
    kRuntime, "libcudart.so.14", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};

constexpr int kMostPath = 4096;  // as PATH_MAX

/// A library that the program has loaded, perhaps in a scope of its own, as Python does. Null: it
/// has not. It stays loaded: its functions are called.
void* loaded(const char* name) noexcept {
  return ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

/// The program's cuDNN. Null: it was found by RTLD_NEXT, or there is none.
std::atomic<void*> programsCudnn{nullptr};

/// Of cuDNN as the program has it, never ours, and never one that it has not loaded itself.
void* nativeFunction(const char* name) noexcept {
  if (void* const next = ::dlsym(RTLD_NEXT, name)) return next;
  void* const cudnn = programsCudnn.load(std::memory_order_acquire);
  return cudnn != nullptr ? ::dlsym(cudnn, name) : nullptr;
}

/// Whether the program has one, of whatever version. It stays loaded.
bool findCudnn() noexcept {
  if (void* const next = ::dlsym(RTLD_NEXT, "cudnnGetVersion")) {
    Dl_info found{};
    if (::dladdr(next, &found) != 0) static_cast<void>(loaded(found.dli_fname));
    return true;
  }
  for (const char* const name :
       {kCudnn, "libcudnn.so.10", "libcudnn.so.9", "libcudnn.so.8", "libcudnn.so.7"})
    if (void* const cudnn = loaded(name)) {
      programsCudnn.store(cudnn, std::memory_order_release);
      return true;
    }
  return false;
}

template <typename Function>
void assign(Function& to, void* from) noexcept {
  to = reinterpret_cast<Function>(from);
}

void lookUpNative(Functions& to) noexcept {
  assign(to.Create, nativeFunction("cudnnCreate"));
  assign(to.Destroy, nativeFunction("cudnnDestroy"));
#define UCUDNN_ASSIGN(NAME, PARAMETERS, ARGUMENTS) assign(to.NAME, nativeFunction("cudnn" #NAME));
  UCUDNN_FOR_EACH_FUNCTION(UCUDNN_ASSIGN)
  UCUDNN_FOR_EACH_BACKEND_FUNCTION(UCUDNN_ASSIGN)
#undef UCUDNN_ASSIGN
#if CUDNN_VERSION >= 90500
  assign(to.BackendPopulateCudaGraph, nativeFunction("cudnnBackendPopulateCudaGraph"));
  assign(to.BackendUpdateCudaGraph, nativeFunction("cudnnBackendUpdateCudaGraph"));
#endif
}

/// False: it lacks one.
bool lookUpPlanned(void* library, Functions& to) noexcept {
  bool all = true;
  const auto find = [&](auto& member, const char* name) {
    assign(member, ::dlsym(library, name));
    all = all && member != nullptr;
  };
  find(to.Create, "ucudnnCreate");
  find(to.Destroy, "ucudnnDestroy");
#define UCUDNN_FIND(NAME, PARAMETERS, ARGUMENTS) find(to.NAME, "ucudnn" #NAME);
  UCUDNN_FOR_EACH_FUNCTION(UCUDNN_FIND)
  UCUDNN_FOR_EACH_BACKEND_FUNCTION(UCUDNN_FIND)
#undef UCUDNN_FIND
#if UCUDNN_HAS_BACKEND
  find(to.BackendNeedsMore, "ucudnnBackendNeedsMore");
#endif
  find(to.ServeUnmodified, "ucudnnServeUnmodified");
  find(to.KnowDeviceWaits, "ucudnnKnowDeviceWaits");
  find(to.BeginDeviceWait, "ucudnnBeginDeviceWait");
  find(to.EndDeviceWait, "ucudnnEndDeviceWait");
  return all;
}

/// The log is in the library that is not used: as it would, a warning goes to stderr unless the
/// level is below it.
void warn(const char* why, const char* detail) noexcept {
  static std::atomic<bool> warned{false};
  const char* const level = ::getenv("UCUDNN_LOG_LEVEL");
  if (warned.exchange(true)) return;
  if (level != nullptr && (::strcmp(level, "off") == 0 || ::strcmp(level, "error") == 0)) return;
  ::dprintf(STDERR_FILENO, "ucudnn: all calls are left to cuDNN: %s%s\n", why, detail);
}

/// libucudnn.so: the one that the program uses itself, else the one beside this library. Null: it
/// can't be loaded, and `dlerror` says why.
void* loadLibrary() noexcept {
  if (void* const own = loaded(UCUDNN_SONAME)) return own;
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void*>(&loadLibrary), &self) == 0) return nullptr;
  char path[kMostPath];
  const char* const slash = ::strrchr(self.dli_fname, '/');
  const int folder = slash != nullptr ? static_cast<int>(slash + 1 - self.dli_fname) : 0;
  const int length =
      ::snprintf(path, sizeof(path), "%.*s%s", folder, self.dli_fname, UCUDNN_SONAME);
  if (length < 0 || length >= kMostPath) return nullptr;
  return ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/// A program may have a CUDA runtime of another version, whose objects are not ours to handle. One
/// that is linked statically is not seen; then libucudnn.so brings its own.
bool hasOtherRuntime() noexcept {
  if (loaded(kRuntime) != nullptr) return false;
  for (const char* const name : kRuntimes)
    if (loaded(name) != nullptr) return true;
  return false;
}

bool isDisabled() noexcept {
  const char* const value = ::getenv("UCUDNN_DISABLE");
  return value != nullptr && ::strcmp(value, "1") == 0;
}

struct Decision {
  Functions native, planned;
  Route route;
};

int majorOf(std::size_t version) noexcept {
  return static_cast<int>(version >= 90000 ? version / 10000 : version / 1000);
}

/// Whether μ-cuDNN is to answer, and can.
bool loadPlanned(Functions& planned) noexcept {
  if (isDisabled()) return false;
  decltype(&::cudnnGetVersion) version = nullptr;
  assign(version, nativeFunction("cudnnGetVersion"));
  if (version == nullptr || majorOf(version()) != CUDNN_MAJOR) {
    warn("the program has another than ", kCudnn);
    return false;
  }
  if (hasOtherRuntime()) {
    warn("the program has another than ", kRuntime);
    return false;
  }
  void* const library = loadLibrary();
  if (library == nullptr) {
    const char* const why = ::dlerror();
    warn(UCUDNN_SONAME " can't be loaded: ", why != nullptr ? why : "its path is too long");
    return false;
  }
  decltype(&::ucudnnLookUpCudnn) lookUpCudnn = nullptr;
  assign(lookUpCudnn, ::dlsym(library, "ucudnnLookUpCudnn"));
  if (lookUpCudnn == nullptr || !lookUpPlanned(library, planned)) {
    warn(UCUDNN_SONAME " is of another version than libucudnn_preload.so", "");
    return false;
  }
  if (lookUpCudnn(&nativeFunction) == 0) {
    warn("cuDNN is of another version than it was built for", "");
    return false;
  }
  planned.ServeUnmodified();
  return true;
}

std::atomic<const Decision*> decided{nullptr};

constexpr const char* kWait = "cudaDeviceSynchronize";

/// Whether the loader binds that name to ours.
bool isWaitOurs() noexcept {
  Dl_info found{}, self{};
  void* const first = ::dlsym(RTLD_DEFAULT, kWait);
  return first != nullptr && ::dladdr(first, &found) != 0 &&
         ::dladdr(reinterpret_cast<void*>(&loadLibrary), &self) != 0 &&
         found.dli_fbase == self.dli_fbase;
}

/// Whether the library or program itself is linked with a shared runtime, not what else it needs.
bool needsRuntime(const link_map& object) noexcept {
  constexpr char kName[] = "libcudart";
  const auto* const section = reinterpret_cast<const char*>(object.l_ld);
  const char* names = nullptr;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_STRTAB)
      names = section + (entry->d_un.d_ptr - reinterpret_cast<ElfW(Addr)>(section));
  if (names == nullptr) return false;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_NEEDED &&
        ::strncmp(names + entry->d_un.d_val, kName, sizeof(kName) - 1) == 0)
      return true;
  return false;
}

}  // namespace

const Route* decidedRoute() noexcept {
  const Decision* const known = decided.load(std::memory_order_acquire);
  return known != nullptr ? &known->route : nullptr;
}

decltype(&::cudaDeviceSynchronize) deviceSynchronize() noexcept {
  static std::atomic<decltype(&::cudaDeviceSynchronize)> found{nullptr};
  if (const auto known = found.load(std::memory_order_acquire)) return known;
  decltype(&::cudaDeviceSynchronize) function = nullptr;
  assign(function, ::dlsym(RTLD_NEXT, kWait));
  for (const char* const runtime : kRuntimes)
    if (function == nullptr)
      if (void* const library = loaded(runtime)) assign(function, ::dlsym(library, kWait));
  if (function != nullptr) found.store(function, std::memory_order_release);
  return function;
}

bool seesDeviceWaits(const void* caller) noexcept {
  Dl_info found{};
  link_map* object = nullptr;
  return isWaitOurs() &&
         ::dladdr1(caller, &found, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0 &&
         object != nullptr && needsRuntime(*object);
}

const Route* route() noexcept {
  if (const Route* const known = decidedRoute()) return known;
  if (!findCudnn()) return nullptr;
  // Several threads may decide at the same time, and alike: the first one's decision holds. Whoever
  // waited for it with a lock could be the one who holds the loader's.
  auto* const made = static_cast<Decision*>(::calloc(1, sizeof(Decision)));
  if (made == nullptr) return nullptr;
  lookUpNative(made->native);
  made->route = {&made->native, loadPlanned(made->planned) ? &made->planned : nullptr};
  const Decision* first = nullptr;
  if (decided.compare_exchange_strong(first, made, std::memory_order_acq_rel)) return &made->route;
  ::free(made);
  return &first->route;
}

}  // namespace ucudnn::preload
