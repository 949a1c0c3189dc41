#include "cache/kept_files.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>

namespace ucudnn {
namespace {

constexpr std::string_view kEnding = ".db";
constexpr std::time_t kSecondsInDay = 86400;
constexpr std::time_t kUnusedAfter = 90 * kSecondsInDay;

std::string parentOf(const std::string& path) {
  return path.substr(0, path.find_last_not_of('/', path.rfind('/')) + 1);
}

/// The text's letters and digits, with a hyphen for everything between them.
std::string plainName(const std::string& text) {
  constexpr std::size_t kLongest = 64;
  std::string name;
  for (const char c : text) {
    const bool isPlain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (isPlain)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  name.resize(std::min(name.size(), kLongest));
  return name.substr(0, name.find_last_not_of('-') + 1);
}

/// Returns why nothing may be kept in the folder. A folder of root's is as good as one's own. In
/// another user's, root would leave files that their owner can't remove: `sudo` may keep HOME.
std::string whyNotIn(const std::string& folder, bool isOurs) {
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) return folder + ": " + std::strerror(errno);
  if (!S_ISDIR(found.st_mode)) return folder + " is no folder";
  if (found.st_uid != ::geteuid() && (isOurs || found.st_uid != 0))
    return folder + " is another user's";
  if (isOurs && (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return folder + " can be written by other users";
  return "";
}

}  // namespace

bool namesFolder(const std::string& path) noexcept {
  return !path.empty() && path.back() == '/';
}

std::string fileOfMachine(const std::string& folder, const MachineKey& machine) {
  // A later schema has files of its own, because both versions may be in use.
  return fmt::format("{}{}_sm{}_{}_driver{}_cuda{}_cudnn{}{}.v{}{}",
                     folder,
                     plainName(machine.deviceName),
                     machine.computeCapability,
                     machine.multiprocessorCount,
                     machine.driverVersion,
                     machine.cudaVersion,
                     machine.cudnnVersion,
                     machine.simulated ? "_simulated" : "",
                     kSchemaVersion,
                     kEnding);
}

std::string whyNotKept(const std::string& file) {
  const std::string folder = parentOf(file), around = parentOf(folder);
  for (const std::string& missing : {around, folder}) {
    if (::access(missing.c_str(), F_OK) == 0) continue;
    if (std::string reason = whyNotIn(parentOf(missing), false); !reason.empty()) return reason;
    ::mkdir(missing.c_str(), S_IRWXU);
  }
  if (std::string reason = whyNotIn(folder, true); !reason.empty()) return reason;
  struct stat found {};
  if (::lstat(file.c_str(), &found) != 0)
    return errno == ENOENT ? "" : file + ": " + std::strerror(errno);
  return S_ISREG(found.st_mode) && found.st_uid == ::geteuid() ? "" : "it is not this user's file";
}

std::string shippedFile() {
  Dl_info self{};
  const bool isFound = ::dladdr(reinterpret_cast<void*>(&shippedFile), &self) != 0;
  if (!isFound || self.dli_fname == nullptr) return "";
  const std::string library = self.dli_fname;
  const std::string file =
      library.substr(0, library.rfind('/') + 1) + UCUDNN_SHARE + "/measurements.db";
  return ::access(file.c_str(), R_OK) == 0 ? file : "";
}

void noteUse(const std::string& file) noexcept {
  struct stat own {};
  const std::time_t now = std::time(nullptr);
  // Once a day, because a write, if only of the folder's entry, is more than all else that a start
  // needs.
  if (::stat(file.c_str(), &own) != 0 || own.st_mtime > now - kSecondsInDay) return;
  if (::utimensat(AT_FDCWD, file.c_str(), nullptr, 0) != 0) return;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(parentOf(file))) {
      const std::string other = entry.path().string();
      struct stat found {};
      if (entry.path().extension() == kEnding && ::lstat(other.c_str(), &found) == 0 &&
          S_ISREG(found.st_mode) && found.st_mtime < now - kUnusedAfter)
        ::unlink(other.c_str());
    }
  } catch (...) {  // Out of memory, or the folder is gone: they stay.
  }
}

}  // namespace ucudnn
