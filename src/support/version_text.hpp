// Versions as people write them.
#pragma once

#include <cstddef>
#include <string>

namespace ucudnn {

/// "9.19.0" for what cudnnGetVersion answers, "13.0" for what CUDA's version functions do.
std::string cudnnVersionText(std::size_t version);
std::string cudaVersionText(int version);

}  // namespace ucudnn
