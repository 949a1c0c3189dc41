// Keeps LeakSanitizer from reporting what cuDNN 9.19 leaks when it is asked for engines.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>

/// cuDNN leaks a cuBLASLt handle of some engines, and a descriptor of each graph that its
/// heuristics look at. Leaked descriptors of ours have none of these libraries on their stack.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcublasLt.so\n"
         "leak:libcudnn_heuristic.so\n";
}

namespace {

/// cuDNN loads NVRTC for each graph, and unloads it: the memory of the C++ runtime in it is left
/// behind then, with a stack that names no library. It may be loaded once, and stay.
[[maybe_unused]] void* const kNvrtc = dlopen(
    ("libnvrtc.so." + std::to_string(CUDART_VERSION / 1000)).c_str(), RTLD_LAZY | RTLD_NODELETE);

}  // namespace
