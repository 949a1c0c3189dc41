// A progress bar for people who wait.
#pragma once

#include <cstddef>
#include <string>

namespace ucudnn::tool {

/// Draws on stderr if it is a terminal, else nothing. Erased at the end.
class Progress {
 public:
  explicit Progress(std::size_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The next step begins, and what it works at.
  void begin(const std::string& label);

 private:
  bool visible_;
  std::size_t steps_;
  std::size_t done_ = 0;
};

/// "[#####.....]  3/6  label", cut to `columns`.
std::string progressLine(std::size_t done,
                         std::size_t steps,
                         const std::string& label,
                         std::size_t columns);

}  // namespace ucudnn::tool
