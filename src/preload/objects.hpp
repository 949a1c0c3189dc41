// Facts that the loader knows about the libraries that call us.
#pragma once

#include <link.h>

namespace ucudnn::preload {

/// The library or program that contains an address; null if none does. Takes no lock if the C
/// library can tell without one.
const link_map* objectAt(const void* address) noexcept;

/// Whether it is itself linked with a library whose name begins so. Indirect needs don't count.
bool needs(const link_map& object, const char* name) noexcept;

/// The major version in the name of one of cuDNN's libraries, as libcudnn.so.9 or
/// libcudnn_cnn.so.9.1.0, behind whatever folder. 0: it is none of cuDNN's.
int majorInName(const char* path) noexcept;

/// The major version of the cuDNN that it is linked with, or is a part of. 0: of none.
int majorNeededBy(const link_map& object) noexcept;

}  // namespace ucudnn::preload
