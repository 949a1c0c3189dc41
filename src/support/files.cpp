#include "support/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "support/settings.hpp"
#include "support/sizes.hpp"

namespace ucudnn {
namespace {

[[noreturn]] void refuse() {
  throw std::runtime_error(std::strerror(errno));
}

/// An open file.
class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)) {
    if (number_ < 0) refuse();
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  /// Returns 0 at the end of the file.
  std::size_t read(char* to, std::size_t most) const {
    for (;;) {
      const ssize_t bytes = ::read(number_, to, most);
      if (bytes >= 0) return static_cast<std::size_t>(bytes);
      if (errno != EINTR) refuse();
    }
  }

 private:
  int number_;
};

}  // namespace

void expectFile(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse();
  if (!S_ISREG(status.st_mode)) throw std::runtime_error("it is no regular file");
}

std::string readFile(const std::string& path, std::size_t mostBytes) {
  constexpr std::size_t kPartBytes = std::size_t{1} << 16;
  const Descriptor file(path);
  std::string text;
  for (std::size_t size = 0;;) {
    text.resize(size + kPartBytes);
    const std::size_t bytes = file.read(&text[size], kPartBytes);
    size += bytes;
    if (size > mostBytes)
      throw std::runtime_error(fmt::format("it is larger than {}", formatSize(mostBytes)));
    text.resize(size);
    if (bytes == 0) return text;
  }
}

}  // namespace ucudnn
