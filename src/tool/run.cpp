// `ucudnn run`
#include <dlfcn.h>
#include <fmt/format.h>
#include <ucudnn/ucudnn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "support/text.hpp"
#include "tool/commands.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {
namespace {

constexpr const char* kLibrary = "libucudnn_preload.so";

/// It lies beside libucudnn.so, in the build tree as where it is installed.
std::string preloadLibrary() {
  Dl_info ours{};
  if (::dladdr(reinterpret_cast<void*>(&ucudnnGetVersionString), &ours) == 0)
    throw BadInput("libucudnn.so can't be found");
  const auto path =
      std::filesystem::absolute(ours.dli_fname).lexically_normal().replace_filename(kLibrary);
  if (!std::filesystem::exists(path)) throw BadInput(path.string() + " is missing");
  // The loader takes both for the end of a name.
  if (path.string().find_first_of(" :") != std::string::npos)
    throw BadInput(
        fmt::format("\"{}\" can't be loaded: it has a space or a colon", excerpt(path.string())));
  return path.string();
}

void setVariable(const char* name, const std::string& value) {
  if (::setenv(name, value.c_str(), 1) != 0) throw std::bad_alloc();
}

/// The program may change its folder.
void setFile(const char* name, const std::string& file) {
  if (!file.empty()) setVariable(name, std::filesystem::absolute(file).string());
}

}  // namespace

std::vector<std::string> takeCommand(std::vector<std::string>& arguments,
                                     const std::function<bool(const std::string&)>& takesValue) {
  std::size_t place = 1;
  while (place < arguments.size() && arguments[place][0] == '-' && arguments[place] != "--")
    place += takesValue(arguments[place]) ? 2 : 1;
  place = std::min(place, arguments.size());
  const bool isMarked = place < arguments.size() && arguments[place] == "--";
  const auto end = arguments.begin() + static_cast<std::ptrdiff_t>(place);
  std::vector<std::string> command(end + (isMarked ? 1 : 0), arguments.end());
  arguments.erase(end, arguments.end());
  return command;
}

int run(const RunOptions& options) {
  if (options.limitBytes)
    setVariable("UCUDNN_WORKSPACE_LIMIT", std::to_string(*options.limitBytes));
  if (options.totalBytes)
    setVariable("UCUDNN_TOTAL_WORKSPACE_SIZE", std::to_string(*options.totalBytes));
  setFile("UCUDNN_DATABASE", options.database);
  setFile("UCUDNN_TRACE", options.trace);
  if (options.report) setVariable("UCUDNN_REPORT", "1");
  // Behind others: some (AddressSanitizer's) must be the first, and a profiler's is to see the
  // program's calls.
  const char* const others = std::getenv("LD_PRELOAD");
  const std::string before = others != nullptr && *others != '\0' ? std::string(others) + ":" : "";
  setVariable("LD_PRELOAD", before + preloadLibrary());

  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int error = errno;
  fmt::print(stderr, "ucudnn: {}: {}\n", excerpt(options.command[0]), std::strerror(error));
  return error == ENOENT ? 127 : 126;
}

}  // namespace ucudnn::tool
