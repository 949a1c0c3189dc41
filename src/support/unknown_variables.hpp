// Environment variables that look like ours and are not.
#pragma once

#include <string>
#include <vector>

namespace ucudnn {

/// One warning for each of `names` that begins with UCUDNN_ and that neither μ-cuDNN nor its
/// simulator knows, with the nearest setting's name where one is close. The last of many says how
/// many there are.
std::vector<std::string> unknownVariableWarnings(const std::vector<std::string>& names);

}  // namespace ucudnn
