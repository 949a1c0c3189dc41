#include "benchmark/measurement.hpp"

#include <algorithm>

namespace ucudnn {

bool isDominated(const Measurement& kernel,
                 const std::vector<Measurement>& kernels,
                 double factor) {
  return std::any_of(kernels.begin(), kernels.end(), [&](const Measurement& other) {
    return !(other.kernel == kernel.kernel) && other.workspaceBytes <= kernel.workspaceBytes &&
           other.timeMs * factor <= kernel.timeMs &&
           (other.deterministic || !kernel.deterministic) && (other.accurate || !kernel.accurate);
  });
}

}  // namespace ucudnn
