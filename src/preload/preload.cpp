// cuDNN's functions as unmodified programs call them: answered by libucudnn.so, or passed through.
#include "preload/functions.hpp"

using ucudnn::preload::Functions;
using ucudnn::preload::Route;
using ucudnn::preload::route;

namespace {

/// Calls of ours that this thread is in. What μ-cuDNN calls there, or cuDNN itself, passes through.
/// Read on every call: the library is loaded when the program starts, so it may have its place in
/// the threads' first block.
__attribute__((tls_model("initial-exec"))) thread_local int depth = 0;

class CallScope {
 public:
  CallScope() noexcept { ++depth; }
  ~CallScope() { --depth; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
};

/// As cuDNN, where the program calls what its cuDNN does not have, or has no cuDNN.
constexpr cudnnStatus_t kNoFunction = CUDNN_STATUS_NOT_SUPPORTED;
constexpr cudnnStatus_t kNoCudnn = CUDNN_STATUS_NOT_INITIALIZED;

template <auto member, typename... Arguments>
cudnnStatus_t callNative(const Route& to, Arguments... arguments) noexcept {
  const auto function = to.native->*member;
  return function != nullptr ? function(arguments...) : kNoFunction;
}

template <auto member, typename... Arguments>
cudnnStatus_t call(Arguments... arguments) noexcept {
  const Route* const to = route();
  if (to == nullptr) return kNoCudnn;
  if (to->planned == nullptr || depth > 0) return callNative<member>(*to, arguments...);
  const CallScope scope;
  return (to->planned->*member)(arguments...);
}

/// A program must not fail for our settings: the log says what is wrong with them.
cudnnStatus_t create(cudnnHandle_t* handle) noexcept {
  const cudnnStatus_t status = call<&Functions::Create>(handle);
  const Route* const to = route();
  if (status == CUDNN_STATUS_SUCCESS || to == nullptr || to->planned == nullptr) return status;
  const CallScope scope;
  return callNative<&Functions::Create>(*to, handle);
}

}  // namespace

extern "C" {

#define UCUDNN_EXPORT __attribute__((visibility("default")))

UCUDNN_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return create(handle);
}

UCUDNN_EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return call<&Functions::Destroy>(handle);
}

#define UCUDNN_DOOR(NAME, PARAMETERS, ARGUMENTS)                                            \
  UCUDNN_EXPORT cudnnStatus_t cudnn##NAME(cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS) { \
    return call<&Functions::NAME>(handle, UCUDNN_UNPACK ARGUMENTS);                         \
  }
UCUDNN_FOR_EACH_FUNCTION(UCUDNN_DOOR)
#undef UCUDNN_DOOR

}  // extern "C"
