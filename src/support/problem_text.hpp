// Convolutions as people write them.
#pragma once

#include <string>

namespace ucudnn {

/// "bwd data 64x27x27 k192 5x5 pad 2x2 stride 1x1, float" for a problem's text, as databases and
/// traces have it ("backward_data x=float:*,64,27,27/..."): C, H and W of x, the number of filters
/// and their size. Values that most convolutions have are left out, and so are strides in memory.
/// A text of another form is returned as it is, because anybody may have written it.
std::string shortProblemText(const std::string& problem);

}  // namespace ucudnn
