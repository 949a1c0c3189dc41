// The files that nobody names: the kept ones, one for each machine, and the shipped one.
#pragma once

#include <string>

#include "cache/database.hpp"

namespace ucudnn {

/// Whether a path in UCUDNN_DATABASE names a folder: it ends in a slash.
bool namesFolder(const std::string& path) noexcept;

/// The file of a machine in a folder. Two machines may share one, because its rows name theirs.
std::string fileOfMachine(const std::string& folder, const MachineKey& machine);

/// Makes the file's folder, and the folder around it, if they are missing, for their owner only.
/// Returns why nothing may be kept there; empty: it may. Nobody but this user can then have put the
/// file there, or replaced it.
std::string whyNotKept(const std::string& file);

/// The file of measurements that was installed with this library. Empty if there is none.
std::string shippedFile();

/// Notes that the file is in use. Removes the other files of its folder that have not been used for
/// 90 days: they belong to a former driver or cuDNN, which nobody has any more.
void noteUse(const std::string& file) noexcept;

}  // namespace ucudnn
