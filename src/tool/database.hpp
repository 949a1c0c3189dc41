// `ucudnn db`
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/database.hpp"
#include "tool/options.hpp"

namespace ucudnn::tool {

/// Carries out what the options say; returns the exit status. `machineOf` names the machine of a
/// device, for `prune --other-machines` alone. Throws BadInput.
int maintainDatabase(const DatabaseOptions& options,
                     const std::function<MachineKey(int device)>& machineOf);

/// The file itself, or the databases in the folder. Throws BadInput if there are none.
std::vector<std::string> databasesIn(const std::string& path);

}  // namespace ucudnn::tool
