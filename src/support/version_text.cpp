#include "support/version_text.hpp"

#include <fmt/format.h>

namespace ucudnn {

std::string cudnnVersionText(std::size_t version) {
  // cuDNN 9 counts in ten-thousands, those before it in thousands.
  const std::size_t major = version >= 90000 ? 10000 : 1000;
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

std::string cudaVersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace ucudnn
