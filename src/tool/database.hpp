// `ucudnn db`
#pragma once

#include <functional>

#include "cache/database.hpp"
#include "tool/options.hpp"

namespace ucudnn::tool {

/// Carries out what the options say; returns the exit status. `machineOf` names the machine of a
/// device, for `prune --other-machines` alone. Throws BadInput.
int maintainDatabase(const DatabaseOptions& options,
                     const std::function<MachineKey(int device)>& machineOf);

}  // namespace ucudnn::tool
