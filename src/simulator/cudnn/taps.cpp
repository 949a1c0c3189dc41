#include "simulator/cudnn/taps.hpp"

namespace ucudnn::simulator {

Taps::Taps(const ConvolutionProblem& problem) {
  const bool backward = problem.operation == Operation::kBackwardData;
  const auto& convolution = problem.convolution;
  const auto rank = static_cast<std::size_t>(problem.spatialRank());
  for (std::size_t dim = 0; dim < 3; ++dim) {
    if (dim < 3 - rank) {
      table[dim] = {0};  // a 4-D tensor's depth: one tap at one position
      continue;
    }
    const std::size_t i = dim - (3 - rank);
    const int input = problem.x.dims[i + 2];
    const int output = problem.y.dims[i + 2];
    filter[dim] = problem.w.dims[i + 2];
    source[dim] = backward ? output : input;
    destination[dim] = backward ? input : output;
    table[dim].reserve(static_cast<std::size_t>(filter[dim] * destination[dim]));
    for (int tap = 0; tap < filter[dim]; ++tap) {
      // A true convolution meets the filter's elements in reverse.
      const int place = convolution.mode == CUDNN_CONVOLUTION ? filter[dim] - 1 - tap : tap;
      const int shift = place * convolution.dilation[i] - convolution.pad[i];
      for (int position = 0; position < destination[dim]; ++position) {
        int meets;
        if (backward) {
          const int distance = position - shift;
          meets = distance >= 0 && distance % convolution.stride[i] == 0
                      ? distance / convolution.stride[i]
                      : -1;
        } else {
          meets = position * convolution.stride[i] + shift;
        }
        table[dim].push_back(meets >= 0 && meets < source[dim] ? meets : -1);
      }
    }
  }
}

}  // namespace ucudnn::simulator
