#include "preload/functions.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>

#include "preload/lookups.hpp"
#include "preload/objects.hpp"

namespace ucudnn::preload {
namespace {

#define UCUDNN_STRING(TEXT) #TEXT
#define UCUDNN_VALUE_OF(MACRO) UCUDNN_STRING(MACRO)

// The versions that we are built for.
constexpr const char* kCudnn = "libcudnn.so." UCUDNN_VALUE_OF(CUDNN_MAJOR);
constexpr const char* kRuntime = "libcudart.so." UCUDNN_VALUE_OF(UCUDNN_CUDART_MAJOR);

constexpr const char* kRuntimes[] = {
    kRuntime, "libcudart.so.14", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};

constexpr int kMostPath = 4096;  // as PATH_MAX

/// A library that the program has loaded, perhaps in its own scope, as Python does; null if it has
/// not. The library stays loaded, because we call its functions.
void* loaded(const char* name) noexcept {
  return ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

template <typename Function>
void assign(Function& to, void* from) noexcept {
  to = reinterpret_cast<Function>(from);
}

/// A cuDNN that the program itself has loaded; never ours.
struct Cudnn {
  int major;      ///< 0: there is none
  void* library;  ///< null: only the loader's next functions are known of it
};

/// A function that the loader finds before the library itself, such as a profiler's, stays in
/// front. A function of another cuDNN doesn't.
void* functionOf(const Cudnn& cudnn, const char* name) noexcept {
  Dl_info found{};
  void* const next = libcLookUp(RTLD_NEXT, name);
  const int major = next != nullptr && ::dladdr(next, &found) != 0 && found.dli_fname != nullptr
                        ? majorInName(found.dli_fname)
                        : 0;
  if (next != nullptr && (major == 0 || major == cudnn.major)) return next;
  return cudnn.library != nullptr ? nextLookUp(cudnn.library, name) : nullptr;
}

/// The library's, whatever stands in front of it.
void* ownFunctionOf(const Cudnn& cudnn, const char* name) noexcept {
  void* const own = cudnn.library != nullptr ? nextLookUp(cudnn.library, name) : nullptr;
  return own != nullptr ? own : functionOf(cudnn, name);
}

/// The library of the cuDNN that we plan for.
std::atomic<void*> plannedLibrary{nullptr};
void* functionOfPlanned(const char* name) noexcept {
  return functionOf({CUDNN_MAJOR, plannedLibrary.load(std::memory_order_acquire)}, name);
}

int majorOf(std::size_t version) noexcept {
  return static_cast<int>(version >= 90000 ? version / 10000 : version / 1000);
}

/// The cuDNN that has this cudnnGetVersion. It stays loaded.
Cudnn cudnnWith(void* getVersion) noexcept {
  if (getVersion == nullptr) return {};
  decltype(&::cudnnGetVersion) version = nullptr;
  assign(version, getVersion);
  Dl_info found{};
  const bool isFound = ::dladdr(getVersion, &found) != 0 && found.dli_fname != nullptr;
  return {majorOf(version()), isFound ? loaded(found.dli_fname) : nullptr};
}

Cudnn loadedCudnn(int major) noexcept {
  char name[32];
  const int length = ::snprintf(name, sizeof(name), "libcudnn.so.%d", major);
  if (length < 0 || length >= static_cast<int>(sizeof(name))) return {};
  void* const library = loaded(name);
  return library != nullptr ? Cudnn{major, library} : Cudnn{};
}

/// The cuDNN that the caller would have had without us. This is the one that it is linked with;
/// else the next in the loader's order, for all and then only for the caller; else any.
Cudnn cudnnOf(const link_map* caller) noexcept {
  constexpr const char* kGetVersion = "cudnnGetVersion";
  Cudnn cudnn{};
  if (caller != nullptr)
    if (const int major = majorNeededBy(*caller)) cudnn = loadedCudnn(major);
  if (cudnn.major == 0) cudnn = cudnnWith(libcLookUp(RTLD_NEXT, kGetVersion));
  if (cudnn.major == 0 && caller != nullptr && caller->l_name[0] != '\0')
    if (void* const own = loaded(caller->l_name)) {
      cudnn = cudnnWith(nextLookUp(own, kGetVersion));
      ::dlclose(own);
    }
  for (const int major : {CUDNN_MAJOR, 10, 9, 8, 7})
    if (cudnn.major == 0) cudnn = loadedCudnn(major);
  return cudnn;
}

template <typename Find>
void lookUpNative(const Cudnn& cudnn, Functions& to, Find find) noexcept {
  assign(to.Create, find(cudnn, "cudnnCreate"));
  assign(to.Destroy, find(cudnn, "cudnnDestroy"));
#define UCUDNN_ASSIGN(NAME, PARAMETERS, ARGUMENTS) assign(to.NAME, find(cudnn, "cudnn" #NAME));
  UCUDNN_FOR_EACH_FUNCTION(UCUDNN_ASSIGN)
  UCUDNN_FOR_EACH_BACKEND_FUNCTION(UCUDNN_ASSIGN)
#undef UCUDNN_ASSIGN
#if UCUDNN_HAS_BACKEND
  assign(to.GetExecutionPlanWorkspaceSize, find(cudnn, "cudnnGetExecutionPlanWorkspaceSize"));
  assign(to.BackendPopulateCudaGraph, find(cudnn, "cudnnBackendPopulateCudaGraph"));
  assign(to.BackendUpdateCudaGraph, find(cudnn, "cudnnBackendUpdateCudaGraph"));
#endif
}

/// False: the library lacks a function.
bool lookUpPlanned(void* library, Functions& to) noexcept {
  bool all = true;
  const auto find = [&](auto& member, const char* name) {
    assign(member, nextLookUp(library, name));
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
  find(to.BackendToldWorkspace, "ucudnnBackendToldWorkspace");
#endif
  find(to.ServeUnmodified, "ucudnnServeUnmodified");
  find(to.KnowDeviceWaits, "ucudnnKnowDeviceWaits");
  find(to.BeginDeviceWait, "ucudnnBeginDeviceWait");
  find(to.EndDeviceWait, "ucudnnEndDeviceWait");
  return all;
}

/// A warning goes to stderr, unless the log's level is below it: the log itself is in the library
/// that is not used.
void warn(const char* why, const char* detail, const char* advice = "") noexcept {
  static std::atomic<bool> warned{false};
  const char* const level = ::getenv("UCUDNN_LOG_LEVEL");
  if (warned.exchange(true)) return;
  if (level != nullptr && (::strcmp(level, "off") == 0 || ::strcmp(level, "error") == 0)) return;
  ::dprintf(STDERR_FILENO, "ucudnn: calls are left to cuDNN: %s%s%s\n", why, detail, advice);
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

/// A CUDA runtime of the program's that is of another version, whose objects we can't handle. Null:
/// it has none, or ours, too. We don't see one that is linked statically; then libucudnn.so brings
/// its own.
const char* otherRuntime() noexcept {
  if (loaded(kRuntime) != nullptr) return nullptr;
  for (const char* const name : kRuntimes)
    if (loaded(name) != nullptr) return name;
  return nullptr;
}

bool isDisabled() noexcept {
  const char* const value = ::getenv("UCUDNN_DISABLE");
  return value != nullptr && ::strcmp(value, "1") == 0;
}

struct Decision {
  Functions native, own, planned;
  Route route;
};

/// Whether μ-cuDNN is to answer callers with this cuDNN, and can.
bool loadPlanned(const Cudnn& cudnn, Functions& planned) noexcept {
  if (isDisabled()) return false;
  if (cudnn.major != CUDNN_MAJOR) {
    // A program may have cuDNN of both versions.
    if (loaded(kCudnn) == nullptr) warn("theirs is another than ", kCudnn);
    return false;
  }
  if (const char* const other = otherRuntime()) {
    warn("built for CUDA " UCUDNN_VALUE_OF(UCUDNN_CUDART_MAJOR) ", and the program has ",
         other,
         ". Install it anew where the program is: pip install ./misc/python");
    return false;
  }
  void* const library = loadLibrary();
  if (library == nullptr) {
    const char* const why = ::dlerror();
    warn(UCUDNN_SONAME " can't be loaded: ", why != nullptr ? why : "its path is too long");
    return false;
  }
  decltype(&::ucudnnLookUpCudnn) lookUpCudnn = nullptr;
  assign(lookUpCudnn, nextLookUp(library, "ucudnnLookUpCudnn"));
  if (lookUpCudnn == nullptr || !lookUpPlanned(library, planned)) {
    warn(UCUDNN_SONAME " is of another version than libucudnn_preload.so", "");
    return false;
  }
  plannedLibrary.store(cudnn.library, std::memory_order_release);
  if (lookUpCudnn(&functionOfPlanned) == 0) {
    warn("cuDNN is of another version than it was built for", "");
    return false;
  }
  planned.ServeUnmodified();
  return true;
}

/// By major version.
constexpr int kMajors = 32;
std::atomic<const Decision*> decided[kMajors];

const Decision* decisionOf(const Cudnn& cudnn) noexcept {
  if (cudnn.major <= 0 || cudnn.major >= kMajors) return nullptr;
  auto& place = decided[cudnn.major];
  if (const Decision* const known = place.load(std::memory_order_acquire)) return known;
  // Several threads may decide at the same time, with the same result; the first one's decision
  // holds. No thread waits with a lock for another, which might hold the loader's lock.
  auto* const made = static_cast<Decision*>(::calloc(1, sizeof(Decision)));
  if (made == nullptr) return nullptr;
  lookUpNative(cudnn, made->native, functionOf);
  lookUpNative(cudnn, made->own, ownFunctionOf);
  made->route = {
      &made->native, &made->own, loadPlanned(cudnn, made->planned) ? &made->planned : nullptr};
  const Decision* first = nullptr;
  if (place.compare_exchange_strong(first, made, std::memory_order_acq_rel)) return made;
  ::free(made);
  return first;
}

/// The addresses that have called, and their routes: a known caller takes no lock and doesn't ask
/// the loader again. A library that is loaded at the same place later is taken for the former.
class Callers {
 public:
  const Route* find(const void* caller) const noexcept {
    for (std::size_t i = 0; i < kProbes; ++i) {
      const Caller& known = callers_[placeOf(caller, i)];
      if (known.address.load(std::memory_order_acquire) == caller)
        return known.route.load(std::memory_order_acquire);
    }
    return nullptr;
  }

  /// If all places are taken, the caller isn't remembered.
  void add(const void* caller, const Route* route) noexcept {
    for (std::size_t i = 0; i < kProbes; ++i) {
      Caller& place = callers_[placeOf(caller, i)];
      const void* free = nullptr;
      if (!place.address.compare_exchange_strong(free, caller) && free != caller) continue;
      place.route.store(route, std::memory_order_release);
      return;
    }
  }

 private:
  struct Caller {
    std::atomic<const void*> address;
    std::atomic<const Route*> route;
  };
  static constexpr std::size_t kProbes = 8;

  static std::size_t placeOf(const void* caller, std::size_t probe) noexcept {
    constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
    const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(caller) * kMultiplier;
    return ((hash >> 48) + probe) % kPlaces;
  }

  static constexpr std::size_t kPlaces = 1024;
  Caller callers_[kPlaces];
};
Callers callers;

constexpr const char* kWait = "cudaDeviceSynchronize";

/// Whether the loader binds the name cudaDeviceSynchronize to ours.
bool isWaitOurs() noexcept {
  Dl_info found{}, self{};
  void* const first = libcLookUp(RTLD_DEFAULT, kWait);
  return first != nullptr && ::dladdr(first, &found) != 0 &&
         ::dladdr(reinterpret_cast<void*>(&loadLibrary), &self) != 0 &&
         found.dli_fbase == self.dli_fbase;
}

}  // namespace

const Functions* plannedFunctions() noexcept {
  const Decision* const known = decided[CUDNN_MAJOR].load(std::memory_order_acquire);
  return known != nullptr ? known->route.planned : nullptr;
}

decltype(&::cudaDeviceSynchronize) deviceSynchronize() noexcept {
  static std::atomic<decltype(&::cudaDeviceSynchronize)> found{nullptr};
  if (const auto known = found.load(std::memory_order_acquire)) return known;
  decltype(&::cudaDeviceSynchronize) function = nullptr;
  assign(function, libcLookUp(RTLD_NEXT, kWait));
  for (const char* const runtime : kRuntimes)
    if (function == nullptr)
      if (void* const library = loaded(runtime)) assign(function, nextLookUp(library, kWait));
  if (function != nullptr) found.store(function, std::memory_order_release);
  return function;
}

bool seesDeviceWaits(const void* caller) noexcept {
  const link_map* const object = objectAt(caller);
  return isWaitOurs() && object != nullptr && needs(*object, "libcudart");
}

void* plannedCudnnsOwn(const char* name) noexcept {
  if (isDisabled()) return nullptr;
  for (const int major : {10, 9, 8, 7}) {
    const Cudnn other = major != CUDNN_MAJOR ? loadedCudnn(major) : Cudnn{};
    if (other.library == nullptr) continue;
    ::dlclose(other.library);
    return nullptr;
  }
  const Cudnn cudnn = loadedCudnn(CUDNN_MAJOR);
  return cudnn.library != nullptr ? nextLookUp(cudnn.library, name) : nullptr;
}

const Route* routeOf(const void* caller) noexcept {
  if (const Route* const known = callers.find(caller)) return known;
  const Decision* const decision = decisionOf(cudnnOf(objectAt(caller)));
  if (decision == nullptr) return nullptr;
  callers.add(caller, &decision->route);
  return &decision->route;
}

}  // namespace ucudnn::preload
