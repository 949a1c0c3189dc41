// Ctrl-C, and what ends a program politely, as `timeout` does.
#pragma once

namespace ucudnn::tool {

/// While it lives, the first SIGINT or SIGTERM is noted, so that the measurements so far can be
/// written. A later one ends the program. An ignored signal, as under nohup, stays ignored. One at
/// a time.
class Interruption {
 public:
  Interruption() noexcept;
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  bool happened() const noexcept;
};

}  // namespace ucudnn::tool
