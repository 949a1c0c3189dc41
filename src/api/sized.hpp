// Structs of the C ABI that begin with their size, so that later versions can add members at the
// end. A client of another version knows fewer members, or more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace ucudnn {

/// Whether the client has set `size`, in an array that of the first struct.
template <typename Struct>
bool isSized(const Struct* structs) noexcept {
  return structs != nullptr && structs->size > sizeof(structs->size);
}

/// Writes the members that the client knows. `size` then says which of them we know.
/// REQUIRES: isSized(to).
template <typename Struct>
void writeSized(Struct from, Struct* to) noexcept {
  from.size = std::min(to->size, sizeof(from));
  std::memcpy(to, &from, from.size);
}

/// A client's array. Its structs lie as far apart as the first one's `size` says, and each has that
/// size afterwards. Members that we don't know are 0.
template <typename Struct>
class SizedArray {
 public:
  /// REQUIRES: isSized(structs), or nothing is written.
  explicit SizedArray(Struct* structs) noexcept
      : bytes_(reinterpret_cast<char*>(structs)), size_(structs != nullptr ? structs->size : 0) {}

  void write(int place, Struct from) const noexcept {
    char* const to = bytes_ + static_cast<std::size_t>(place) * size_;
    from.size = size_;
    std::memset(to, 0, size_);
    std::memcpy(to, &from, std::min(size_, sizeof(from)));
  }

 private:
  char* bytes_;
  std::size_t size_;
};

}  // namespace ucudnn
