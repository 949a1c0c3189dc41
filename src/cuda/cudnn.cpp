#include "cuda/cudnn.hpp"

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

}  // namespace ucudnn
