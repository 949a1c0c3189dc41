// Runs a function in a process of its own: what the library and the simulator know of a process
// starts afresh, and a crash or a hang ends only that process.
#pragma once

#include <functional>
#include <string>

namespace ucudnn::test {

/// The child's way to say something to its parent; each text arrives even when the child crashes
/// afterwards.
class Answer {
 public:
  explicit Answer(int descriptor) : descriptor_(descriptor) {}
  void write(const std::string& text) const;

 private:
  int descriptor_;
};

struct ForkResult {
  int status = -1;     ///< 128 and more: killed by a signal (142: out of time)
  std::string answer;  ///< what the function wrote to its Answer
  std::string output;  ///< what the process printed on stdout and stderr
};

/// REQUIRES: this process has no other thread and has called no CUDA function. An exception in the
/// child is status 3, with its text in `answer`. Under a sanitizer it has more time (slowness.hpp).
ForkResult runForked(const std::function<void(const Answer&)>& function, unsigned seconds);

}  // namespace ucudnn::test
