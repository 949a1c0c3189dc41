// Ctrl-C, and what ends a program politely, as `timeout` does.
#pragma once

namespace ucudnn::tool {

/// While it lives, the first SIGINT or SIGTERM is noted, so that what has been measured can be
/// written. A second one ends the program. What is ignored, as under nohup, stays so. One at a
/// time.
class Interruption {
 public:
  Interruption() noexcept;
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  bool happened() const noexcept;
};

}  // namespace ucudnn::tool
