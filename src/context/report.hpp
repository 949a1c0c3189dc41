// Sums up a process's convolution calls, on one screen at its end: UCUDNN_REPORT.
#pragma once

#include <atomic>
#include <chrono>
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

  /// A line that sums up, what measuring has cost and gained, why calls were left to cuDNN, and a
  /// line for each of the convolutions that took longest. Without calls it says that there were
  /// none; empty in a forked child that made none. Throws std::bad_alloc.
  std::string text() const;

 private:
  struct Calls {
    long long count = 0, split = 0, replayed = 0, unmeasured = 0, left = 0, beyond = 0;
    std::size_t beyondBytes = 0;  ///< the most that one of `beyond` was told beyond the cap
    double predictedMs = 0;
    double undividedMs = 0;  ///< as predictedMs where it is not known
    double ownMs = 0;        ///< of the program's own kernels, else of the fastest undivided ones
    CallRecord last;
  };
  using Convolutions = std::unordered_map<Problem, Calls, ProblemHash>;

  std::string sumsText() const;
  std::string textOf(const Convolutions::value_type& entry) const;

  /// The process whose calls these are, as fork_gate::generation, or none: a forked child begins
  /// anew. Read without the lock, which another thread of the parent may have held at the fork.
  std::atomic<std::uint64_t> process_{~std::uint64_t{0}};
  const std::uint64_t maker_ = fork_gate::generation();  ///< the process that made this
  mutable ForkMutex mutex_;                              ///< guards what follows
  std::chrono::steady_clock::time_point begin_;          ///< of the first call
  Calls all_;
  Convolutions convolutions_;
  std::map<std::string_view, long long> reasons_;  ///< why calls were left to cuDNN
};

/// Says how much measuring has cost and gained so far, and when it pays back at that rate.
/// `runningSeconds`: since the first call.
std::string payBackText(double spentSeconds, double gainedSeconds, double runningSeconds);

/// The process's, printed to stderr when the process ends by `exit`.
Report& report();

}  // namespace ucudnn
