#include "tool/failure.hpp"
#include "tool/stored_times.hpp"

namespace ucudnn::tool {

std::vector<StepPlan> storedSteps(const std::string&,
                                  const std::string&,
                                  const std::vector<Layer>&,
                                  const ConvolutionOptions&,
                                  std::size_t) {
  throw BadInput("--machine needs a build with UCUDNN_USE_SQLITE=ON");
}

}  // namespace ucudnn::tool
