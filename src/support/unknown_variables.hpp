// Environment variables that look like settings and are none.
#pragma once

#include <string>
#include <vector>

namespace ucudnn {

/// One warning for each of `names` that begins with UCUDNN_ and that neither μ-cuDNN nor its
/// simulator knows. The warning names the nearest setting if one is close. If there are more than
/// ten, the last warning says how many there are.
std::vector<std::string> unknownVariableWarnings(const std::vector<std::string>& names);

}  // namespace ucudnn
