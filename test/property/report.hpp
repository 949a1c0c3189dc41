// The faults that a client of the property test found, printed at once so that they survive a
// crash.
#pragma once

#include <mutex>
#include <string>

#include "forked.hpp"

namespace ucudnn::test {

class Report {
 public:
  Report(const Answer& answer, bool traces) : answer_(answer), traces_(traces) {}

  /// `where` names the problem. Thread-safe, as `trace` is.
  void fail(const std::string& where, const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    answer_.write("FAILED " + what + ": " + where + "\n");
  }

  /// A step that is about to be taken; said only where that was asked for.
  void trace(const std::string& step) {
    if (!traces_) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    answer_.write("  " + step + "\n");
  }

 private:
  std::mutex mutex_;
  const Answer& answer_;
  bool traces_;
};

}  // namespace ucudnn::test
