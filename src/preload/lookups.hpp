// dlsym, which this library stands in front of: programs that look up cuDNN's functions in cuDNN's
// own handle, as XLA, TensorFlow and cudnn-frontend's Python do, get ours. All other look-ups are
// the next dlsym's, which sees the program as its caller: RTLD_NEXT and RTLD_DEFAULT depend on it.
#pragma once

namespace ucudnn::preload {

/// dlsym for ourselves: the C library's, in which RTLD_NEXT is what comes after us.
void* libcLookUp(void* handle, const char* name) noexcept;
/// The next dlsym in the loader's order, perhaps another preloaded library's.
void* nextLookUp(void* handle, const char* name) noexcept;

}  // namespace ucudnn::preload
