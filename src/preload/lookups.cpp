#include "preload/lookups.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cstddef>

#include "preload/functions.hpp"
#include "preload/objects.hpp"

// Nothing here needs a constructor, takes a lock or allocates on the way of a look-up that is not
// cuDNN's: the first may come from an allocator, a sanitizer's start or another constructor. This
// file is compiled without sanitizers.

namespace ucudnn::preload {
namespace {

using LookUp = void* (*)(void*, const char*);

// Glibc's own, whatever stands in front of its dlsym: dlvsym finds it by its version.
constexpr const char* kVersion = "GLIBC_2.34";

std::atomic<LookUp> libcFunction{nullptr};

LookUp findLibcFunction() noexcept {
  LookUp known = libcFunction.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = reinterpret_cast<LookUp>(::dlvsym(RTLD_NEXT, "dlsym", kVersion));
    libcFunction.store(known, std::memory_order_release);
  }
  return known;
}

}  // namespace

extern "C" {
/// Where the trampoline below goes on. Null until `ucudnnAnswerLookUp` was called.
__attribute__((visibility("hidden"))) std::atomic<LookUp> ucudnnNextLookUp{nullptr};
}
static_assert(sizeof(ucudnnNextLookUp) == sizeof(void*));

namespace {

LookUp findNextFunction() noexcept {
  LookUp known = ucudnnNextLookUp.load(std::memory_order_acquire);
  if (known == nullptr) {
    const LookUp libc = findLibcFunction();
    if (libc == nullptr) return nullptr;
    known = reinterpret_cast<LookUp>(libc(RTLD_NEXT, "dlsym"));
    if (known == nullptr) known = libc;
    ucudnnNextLookUp.store(known, std::memory_order_release);
  }
  return known;
}

struct Served {
  const char* name;
  void* ours;
};

#define UCUDNN_NAME(NAME, PARAMETERS, ARGUMENTS) \
  {"cudnn" #NAME, reinterpret_cast<void*>(&::cudnn##NAME)},
const Served kServed[] = {
    {"cudnnCreate", reinterpret_cast<void*>(&::cudnnCreate)},
    {"cudnnDestroy", reinterpret_cast<void*>(&::cudnnDestroy)},
    UCUDNN_FOR_EACH_FUNCTION(UCUDNN_NAME) UCUDNN_FOR_EACH_BACKEND_FUNCTION(UCUDNN_NAME)
#if UCUDNN_HAS_BACKEND
        {"cudnnGetExecutionPlanWorkspaceSize",
         reinterpret_cast<void*>(&::cudnnGetExecutionPlanWorkspaceSize)},
    {"cudnnBackendPopulateCudaGraph", reinterpret_cast<void*>(&::cudnnBackendPopulateCudaGraph)},
    {"cudnnBackendUpdateCudaGraph", reinterpret_cast<void*>(&::cudnnBackendUpdateCudaGraph)},
#endif
};
#undef UCUDNN_NAME
constexpr std::size_t kCount = sizeof(kServed) / sizeof(kServed[0]);
constexpr std::size_t kPrefix = 5;  // the length of "cudnn"

/// cuDNN's function of each name once it was replaced, and the library that stands between us and
/// it. Both are found once: what is looked up often costs little.
std::atomic<void*> replaced[kCount];
std::atomic<const void*> between[kCount];

/// REQUIRES: the name begins with cuDNN's prefix. The letter behind it tells most others, which
/// takes 20 ns off a look-up.
std::size_t indexOf(const char* name) noexcept {
  std::size_t i = 0;
  while (i < kCount && (kServed[i].name[kPrefix] != name[kPrefix] ||
                        ::strcmp(kServed[i].name + kPrefix, name + kPrefix) != 0))
    ++i;
  return i;
}

/// Whether `function` is that of the cuDNN that our own answers to; and no other major version is
/// there, to which a call from a library that is not linked with cuDNN might be taken to belong.
bool isPlannedCudnns(void* function, std::size_t index) noexcept {
  if (replaced[index].load(std::memory_order_acquire) == function) return true;
  if (function != plannedCudnnsOwn(kServed[index].name)) return false;
  // A library between us and cuDNN gets cuDNN's: it may be what our own call comes through.
  void* const next = libcLookUp(RTLD_NEXT, kServed[index].name);
  if (next == nullptr) ::dlerror();  // else the program finds it
  between[index].store(next != nullptr ? objectAt(next) : nullptr, std::memory_order_release);
  replaced[index].store(function, std::memory_order_release);
  return true;
}

}  // namespace

void* libcLookUp(void* handle, const char* name) noexcept {
  const LookUp function = findLibcFunction();
  return function != nullptr ? function(handle, name) : nullptr;
}

void* nextLookUp(void* handle, const char* name) noexcept {
  const LookUp function = findNextFunction();
  return function != nullptr ? function(handle, name) : nullptr;
}

extern "C" {

/// Null: the next dlsym answers.
__attribute__((visibility("hidden"))) void* ucudnnAnswerLookUp(void* handle,
                                                               const char* name,
                                                               const void* caller) noexcept;
void* ucudnnAnswerLookUp(void* handle, const char* name, const void* caller) noexcept {
  if (findNextFunction() == nullptr || name == nullptr) return nullptr;
  if (::strncmp(name, "cudnn", kPrefix) != 0 || handle == RTLD_NEXT || handle == RTLD_DEFAULT)
    return nullptr;
  const std::size_t index = indexOf(name);
  if (index == kCount) return nullptr;
  // cuDNN's main library looks up its parts' functions, which have the same names.
  const link_map* const object = objectAt(caller);
  if (object == nullptr || majorInName(object->l_name) > 0) return nullptr;
  void* const found = nextLookUp(handle, name);
  if (found == nullptr || found == kServed[index].ours) return found;
  if (!isPlannedCudnns(found, index)) return found;
  return object == between[index].load(std::memory_order_acquire) ? found : kServed[index].ours;
}

}  // extern "C"

}  // namespace ucudnn::preload

// dlsym. It keeps its arguments, asks ucudnnAnswerLookUp, and without an answer jumps on, so that
// the next dlsym returns to the program itself.
#if defined(__x86_64__)
__asm__(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  push %rdi
  .cfi_adjust_cfa_offset 8
  push %rsi
  .cfi_adjust_cfa_offset 8
  sub $8, %rsp
  .cfi_adjust_cfa_offset 8
  mov 24(%rsp), %rdx
  call ucudnnAnswerLookUp
  add $8, %rsp
  .cfi_adjust_cfa_offset -8
  pop %rsi
  .cfi_adjust_cfa_offset -8
  pop %rdi
  .cfi_adjust_cfa_offset -8
  test %rax, %rax
  jne 1f
  mov ucudnnNextLookUp(%rip), %rdx
  test %rdx, %rdx
  je 1f
  jmp *%rdx
1:
  ret
  .cfi_endproc
  .size dlsym, . - dlsym
)");
#elif defined(__aarch64__)
__asm__(R"(
  .text
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  hint #34
  stp x29, x30, [sp, #-32]!
  .cfi_adjust_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  stp x0, x1, [sp, #16]
  mov x29, sp
  mov x2, x30
  bl ucudnnAnswerLookUp
  mov x9, x0
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_adjust_cfa_offset -32
  .cfi_restore 29
  .cfi_restore 30
  cbnz x9, 1f
  adrp x16, ucudnnNextLookUp
  ldr x16, [x16, #:lo12:ucudnnNextLookUp]
  cbz x16, 1f
  br x16
1:
  mov x0, x9
  ret
  .cfi_endproc
  .size dlsym, . - dlsym
)");
#else
#error "libucudnn_preload.so has no dlsym for this processor"
#endif
