#include "cuda/cudnn.hpp"

#include <mutex>
#include <type_traits>
#include <utility>

#include "support/fork.hpp"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {

Cudnn detail::cudnnFunctions = {
#define UCUDNN_ADDRESS(NAME, FUNCTION) &::FUNCTION,
    UCUDNN_FOR_EACH_CUDNN_FUNCTION(UCUDNN_ADDRESS)
#undef UCUDNN_ADDRESS
#if CUDNN_VERSION >= 90000
        & ::cudnnGetLastErrorString,
#endif
};

void setCudnn(const Cudnn& functions) noexcept {
  detail::cudnnFunctions = functions;
}

bool lookUpCudnn(void* (*find)(const char* name)) noexcept {
  static ForkMutex mutex;
  static bool isSet = false;
  Cudnn found{};
  bool all = true;
  const auto assign = [&](auto& member, const char* name) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(find(name));
    all = all && member != nullptr;
  };
#define UCUDNN_FIND(NAME, FUNCTION) assign(found.NAME, #FUNCTION);
  UCUDNN_FOR_EACH_CUDNN_FUNCTION(UCUDNN_FIND)
#undef UCUDNN_FIND
#if CUDNN_VERSION >= 90000
  assign(found.getLastErrorString, "cudnnGetLastErrorString");
#endif
  // Whoever comes second calls through the table at once: it must be whole by then.
  const std::lock_guard lock(mutex);
  if (all && !std::exchange(isSet, true)) setCudnn(found);
  return all;
}

}  // namespace ucudnn
