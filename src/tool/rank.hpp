// `ucudnn bench --data-parallel`: a process for each device, as data-parallel training has.
//
// Nothing that fails in one lets the others wait: the first failure ends them all.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tool/gradient_sum.hpp"
#include "tool/options.hpp"

namespace ucudnn::tool {

/// A rank is made with this.
struct RankOptions {
  int device = 0;
  int multiprocessors = 0;  ///< 0: all
  std::size_t limitBytes = 0;
};

/// A question to a rank. All ranks that exchange gradients are asked at the same time.
struct RankQuestion {
  enum class What : int {
    kDescribe,  ///< its device's name, and how it exchanges
    kPlan,      ///< a step of so many samples
    kRun        ///< steps of so many samples; of none: only exchanges
  };
  What what = What::kDescribe;
  int samples = 0;
  int steps = 0;
  bool exchanges = false;  ///< gradients, behind each step
};

struct RankAnswer {
  double ms = 0;  ///< of a step
  std::size_t workspaceBytes = 0;
  int multiprocessors = 0;
  char text[240] = {};
};

/// The processes. Made before this process has used a device: a forked child can't use one else.
class Ranks {
 public:
  /// Throws DeviceError.
  Ranks(const std::vector<Layer>& layers,
        const ConvolutionOptions& options,
        const std::vector<RankOptions>& ranks);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  std::size_t size() const noexcept { return processes_.size(); }
  std::size_t gradientBytes() const noexcept { return memory_.bytes(); }

  /// Asks those that have a question, all at the same time. Throws DeviceError, BadInput of the
  /// first that fails.
  std::vector<std::optional<RankAnswer>> ask(
      const std::vector<std::optional<RankQuestion>>& questions);

 private:
  struct Process {
    pid_t id;
    int socket;
    int device;
  };
  RankAnswer receive(const Process& process) const;

  RankMemory memory_;
  std::vector<Process> processes_;
  bool hasFailed_ = false;  ///< one of them: others may wait for it for ever
};

}  // namespace ucudnn::tool
