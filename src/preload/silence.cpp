#include "preload/silence.hpp"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "preload/objects.hpp"

namespace ucudnn::preload {
namespace {

std::atomic<bool> hasHandle{false};

int findCudnn(dl_phdr_info* object, std::size_t, void* found) noexcept {
  if (object->dlpi_name != nullptr && majorInName(object->dlpi_name) > 0)
    *static_cast<bool*>(found) = true;
  return 0;
}

/// At the end of the program that `ucudnn run --report` has started; others that it starts would
/// say too much.
__attribute__((destructor)) void reportSilence() {
  const char* const process = ::getenv("UCUDNN_RUN_PROCESS");
  if (process == nullptr || ::atol(process) != ::getpid() || hasHandle) return;
  bool isLoaded = false;
  ::dl_iterate_phdr(findCudnn, &isLoaded);
  ::fprintf(stderr,
            "ucudnn: no convolution call came by: %s\n",
            isLoaded ? "the program loaded cuDNN, but made no handle that μ-cuDNN sees.\n"
                       "        See UCUDNN_DISABLE, and the log at UCUDNN_LOG_LEVEL=info"
                     : "the program did not load cuDNN.\n"
                       "        It may be linked with it statically. Programs that it has started "
                       "report by themselves");
}

}  // namespace

void noteHandle() noexcept {
  hasHandle = true;
}

}  // namespace ucudnn::preload
