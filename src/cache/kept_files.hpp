// The files that nobody names: those that are kept, one for each machine, and the one that is
// shipped.
#pragma once

#include <string>

#include "cache/database.hpp"

namespace ucudnn {

/// Whether a path as UCUDNN_DATABASE has it names a folder: it ends in a slash.
bool namesFolder(const std::string& path) noexcept;

/// The file of a machine in a folder. Two machines may have the same one: its rows name theirs.
std::string fileOfMachine(const std::string& folder, const MachineKey& machine);

/// Makes the file's folder where that is missing, and the folder around it, for their owner only.
/// Returns why nothing may be kept there; empty: it may. No one but this user can have put the
/// file there, or put another into its place.
std::string whyNotKept(const std::string& file);

/// The file of measurements that was installed with this library. Empty: none was.
std::string shippedFile();

/// Notes that the file is in use, and removes the others of its folder that were not for 90 days:
/// of a former driver or cuDNN, which nobody has any more.
void noteUse(const std::string& file) noexcept;

}  // namespace ucudnn
