// Sums up a process's convolution calls, on one screen at its end: UCUDNN_REPORT.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "context/trace.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// Thread-safe.
class Report {
 public:
  /// `problem` is null if it could not be read. If memory runs out, the call is not counted.
  void add(const Problem* problem, const CallRecord& record) noexcept;

  /// A line with the sums, lines that say why calls were left to cuDNN, and a line for each of the
  /// convolutions that took longest. Empty if this process made no calls. Throws std::bad_alloc.
  std::string text() const;

 private:
  struct Calls {
    long long count = 0, split = 0, replayed = 0, unmeasured = 0, left = 0, beyond = 0;
    std::size_t beyondBytes = 0;  ///< the most that one of `beyond` was told beyond the cap
    double predictedMs = 0;
    double undividedMs = 0;  ///< as predictedMs if it is not known
    CallRecord last;
  };
  using Convolutions = std::unordered_map<Problem, Calls, ProblemHash>;

  std::string textOf(const Convolutions::value_type& convolution) const;

  /// The process whose calls these are, as fork_gate::generation, or none: a forked child begins
  /// anew. Read without the lock, which another thread of the parent may have held at the fork.
  std::atomic<std::uint64_t> process_{~std::uint64_t{0}};
  mutable ForkMutex mutex_;  ///< guards what follows
  Calls all_;
  Convolutions convolutions_;
  std::map<std::string_view, long long> reasons_;  ///< why calls were left to cuDNN
};

/// The process's report. Printed to stderr when the process ends by `exit`.
Report& report();

}  // namespace ucudnn
