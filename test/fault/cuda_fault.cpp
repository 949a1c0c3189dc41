// libcuda_fault.so, for LD_PRELOAD: between μ-cuDNN and CUDA's runtime and cuDNN, and makes calls
// fail. Works with the simulator and with NVIDIA's libraries, and with any client:
//
//   LD_PRELOAD=libcuda_fault.so CUDA_FAULT_EVERY=7 PROGRAM                 linked with libucudnn
//   LD_PRELOAD="libucudnn_preload.so libcuda_fault.so" CUDA_FAULT_EVERY=7 PROGRAM
//
//   CUDA_FAULT_EVERY=N    each N-th call of a function below goes wrong; 0: none
//   CUDA_FAULT_AFTER=M    but none of the first M
//   CUDA_FAULT_KIND=error   it is not made, and fails (the default)
//                     late    it is made, and fails all the same
//                     slow    it is made after 20 ms
//                     sticky  from the first one on all fail, as after an illegal address
//   CUDA_FAULT_COUNT=1    "cuda calls: COUNT, FAULTS of them at fault" on stderr at exit
//
// Only calls out of a library whose file is named libucudnn* count: a client's own are made.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#ifndef __x86_64__
#error "the functions' entries are written for x86-64"
#endif

namespace {

enum class Kind { kError, kLate, kSlow, kSticky };

struct Settings {
  long every = 0, after = 0;
  Kind kind = Kind::kError;
  bool counts = false;
};

long numberOf(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : std::atol(text);
}

const Settings& settings() {
  static const Settings known = [] {
    Settings read;
    read.every = numberOf("CUDA_FAULT_EVERY");
    read.after = numberOf("CUDA_FAULT_AFTER");
    read.counts = numberOf("CUDA_FAULT_COUNT") != 0;
    const char* const text = std::getenv("CUDA_FAULT_KIND");
    const char* const kind = text == nullptr ? "error" : text;
    if (std::strcmp(kind, "late") == 0) read.kind = Kind::kLate;
    if (std::strcmp(kind, "slow") == 0) read.kind = Kind::kSlow;
    if (std::strcmp(kind, "sticky") == 0) read.kind = Kind::kSticky;
    return read;
  }();
  return known;
}

std::atomic<long> calls{0}, faults{0};
std::atomic<bool> isBroken{false};

bool isOurs(const void* caller) {
  Dl_info info{};
  if (::dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  return std::strncmp(slash == nullptr ? info.dli_fname : slash + 1, "libucudnn", 9) == 0;
}

void* realFunction(const char* name) {
  if (void* const next = ::dlsym(RTLD_NEXT, name)) return next;
  // Loaded by a module with a scope of its own, as Python's are.
  for (const char* const file : {"libcudnn.so.9", "libcudart.so.13", "libcudart.so.12"})
    if (void* const library = ::dlopen(file, RTLD_NOLOAD | RTLD_LAZY))
      if (void* const found = ::dlsym(library, name)) return found;
  std::fprintf(stderr, "libcuda_fault.so: there is no %s\n", name);
  std::abort();
}

__attribute__((destructor)) void report() {
  if (settings().counts)
    std::fprintf(stderr, "cuda calls: %ld, %ld of them at fault\n", calls.load(), faults.load());
}

}  // namespace

extern "C" {

/// An entry below hands this over.
struct FaultFunction {
  const char* name;
  void* real;
};

enum { kMake = 0, kMakeAndFail = 1, kFail = 2 };

__attribute__((visibility("hidden"))) int ucudnnFaultBefore(FaultFunction* function,
                                                            const void* caller) {
  if (function->real == nullptr) function->real = realFunction(function->name);
  if (settings().every <= 0 || !isOurs(caller)) return kMake;
  const long call = ++calls;
  const bool isDue = call > settings().after && call % settings().every == 0;
  if (!isDue && !isBroken) return kMake;
  ++faults;
  switch (settings().kind) {
    case Kind::kSlow:
      ::usleep(20000);
      return kMake;
    case Kind::kLate:
      return kMakeAndFail;
    case Kind::kSticky:
      isBroken = true;
      return kFail;
    default:
      return kFail;
  }
}

/// cudaErrorUnknown or CUDNN_STATUS_INTERNAL_ERROR; if sticky, cudaErrorIllegalAddress or
/// CUDNN_STATUS_EXECUTION_FAILED. cuDNN 8 has other numbers, which are failures, too.
__attribute__((visibility("hidden"))) int ucudnnFaultStatus(const FaultFunction* function) {
  const bool isCudnn = std::strncmp(function->name, "cudnn", 5) == 0;
  if (settings().kind == Kind::kSticky) return isCudnn ? 5000 : 700;
  return isCudnn ? 4000 : 999;
}

}  // extern "C"

// An entry keeps the registers that hold arguments, asks, and jumps to the real function with the
// caller's stack as it was. To fail late it calls it instead: that needs the arguments that lie on
// the stack, so functions with more than six can't fail late, and are made to fail at once.
#define FAULT_ENTRY(NAME, ON_STACK)                                                                \
  extern "C" {                                                                                     \
  __attribute__((visibility("hidden"), used)) FaultFunction ucudnnFault_##NAME = {#NAME, nullptr}; \
  }                                                                                                \
  asm(".text\n.globl " #NAME "\n.type " #NAME ", @function\n" #NAME                                \
      ":\n"                                                                                        \
      "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\n"                           \
      "sub $24, %rsp\n"                                                                            \
      "movsd %xmm0, (%rsp)\nmovsd %xmm1, 8(%rsp)\n"                                                \
      "lea ucudnnFault_" #NAME                                                                     \
      "(%rip), %rdi\n"                                                                             \
      "mov 72(%rsp), %rsi\n"                                                                       \
      "call ucudnnFaultBefore\n"                                                                   \
      "mov %eax, %r11d\n"                                                                          \
      "movsd (%rsp), %xmm0\nmovsd 8(%rsp), %xmm1\n"                                                \
      "add $24, %rsp\n"                                                                            \
      "pop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n"                                 \
      "test %r11d, %r11d\njne 1f\n"                                                                \
      "jmp *8+ucudnnFault_" #NAME                                                                  \
      "(%rip)\n"                                                                                   \
      "1:\nsub $8, %rsp\n"                                                                         \
      "cmp $" #ON_STACK                                                                            \
      ", %r11d\njne 2f\n"                                                                          \
      "call *8+ucudnnFault_" #NAME                                                                 \
      "(%rip)\n"                                                                                   \
      "2:\nlea ucudnnFault_" #NAME                                                                 \
      "(%rip), %rdi\n"                                                                             \
      "call ucudnnFaultStatus\nadd $8, %rsp\nret\n"                                                \
      ".size " #NAME ", .-" #NAME "\n");
// kMakeAndFail, or a number that is none of the answers.
#define FAULT(NAME) FAULT_ENTRY(NAME, 1)
#define FAULT_OF_MANY(NAME) FAULT_ENTRY(NAME, 9)

// All that src/cuda calls, but what can't fail or tells of failures.
FAULT(cudaDeviceGetAttribute)
FAULT(cudaDriverGetVersion)
FAULT(cudaEventCreate)
FAULT(cudaEventCreateWithFlags)
FAULT(cudaEventDestroy)
FAULT(cudaEventElapsedTime)
FAULT(cudaEventQuery)
FAULT(cudaEventRecord)
FAULT(cudaEventSynchronize)
FAULT(cudaFree)
FAULT(cudaGetDevice)
FAULT(cudaGetDeviceCount)
FAULT(cudaGetDeviceProperties)
FAULT(cudaGraphAddDependencies)
FAULT(cudaGraphDestroy)
FAULT(cudaGraphExecDestroy)
FAULT(cudaGraphInstantiateWithFlags)
FAULT(cudaGraphLaunch)
FAULT(cudaGraphRetainUserObject)
FAULT(cudaGraphUpload)
FAULT(cudaLaunchKernelExC)
FAULT(cudaLibraryGetKernel)
FAULT_OF_MANY(cudaLibraryLoadData)
FAULT(cudaMalloc)
FAULT(cudaMemGetInfo)
FAULT_OF_MANY(cudaMemcpy2DAsync)
FAULT(cudaMemcpyAsync)
FAULT(cudaMemsetAsync)
FAULT(cudaRuntimeGetVersion)
FAULT(cudaSetDevice)
FAULT(cudaStreamBeginCapture)
FAULT(cudaStreamCreateWithFlags)
FAULT(cudaStreamDestroy)
FAULT(cudaStreamEndCapture)
FAULT(cudaStreamIsCapturing)
FAULT(cudaStreamSynchronize)
FAULT(cudaStreamWaitEvent)
FAULT(cudaUserObjectCreate)
FAULT(cudnnBackendCreateDescriptor)
FAULT(cudnnBackendDestroyDescriptor)
FAULT(cudnnBackendExecute)
FAULT(cudnnBackendFinalize)
FAULT(cudnnBackendGetAttribute)
FAULT(cudnnBackendSetAttribute)
FAULT_OF_MANY(cudnnConvolutionBackwardData)
FAULT_OF_MANY(cudnnConvolutionBackwardFilter)
FAULT_OF_MANY(cudnnConvolutionBiasActivationForward)
FAULT_OF_MANY(cudnnConvolutionForward)
FAULT(cudnnCreate)
FAULT(cudnnCreateActivationDescriptor)
FAULT(cudnnCreateConvolutionDescriptor)
FAULT(cudnnCreateFilterDescriptor)
FAULT(cudnnCreateTensorDescriptor)
FAULT(cudnnDestroy)
FAULT(cudnnDestroyActivationDescriptor)
FAULT(cudnnDestroyConvolutionDescriptor)
FAULT(cudnnDestroyFilterDescriptor)
FAULT(cudnnDestroyTensorDescriptor)
FAULT_OF_MANY(cudnnGetConvolutionBackwardDataAlgorithm_v7)
FAULT_OF_MANY(cudnnGetConvolutionBackwardDataWorkspaceSize)
FAULT_OF_MANY(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
FAULT_OF_MANY(cudnnGetConvolutionBackwardFilterWorkspaceSize)
FAULT_OF_MANY(cudnnGetConvolutionForwardAlgorithm_v7)
FAULT_OF_MANY(cudnnGetConvolutionForwardWorkspaceSize)
FAULT(cudnnGetConvolutionGroupCount)
FAULT(cudnnGetConvolutionMathType)
FAULT_OF_MANY(cudnnGetConvolutionNdDescriptor)
FAULT(cudnnGetFilterNdDescriptor)
FAULT(cudnnGetStream)
FAULT(cudnnGetTensorNdDescriptor)
FAULT(cudnnSetActivationDescriptor)
FAULT(cudnnSetConvolutionGroupCount)
FAULT(cudnnSetConvolutionMathType)
FAULT_OF_MANY(cudnnSetConvolutionNdDescriptor)
FAULT(cudnnSetFilterNdDescriptor)
FAULT(cudnnSetStream)
FAULT(cudnnSetTensorNdDescriptor)
