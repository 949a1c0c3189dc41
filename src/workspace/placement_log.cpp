#include "workspace/placement_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "planner/planner.hpp"
#include "support/log.hpp"
#include "support/sizes.hpp"

namespace ucudnn {

void PlacementLog::add(const PlanRequest& request,
                       long long layer,
                       const Plan* plan,
                       std::size_t totalBytes,
                       std::string& latest) {
  if (plan == nullptr || !Log::instance().enabled(LogLevel::kInfo)) return;
  const std::vector<Measurement> undivided =
      planner().undivided(request.within(std::numeric_limits<std::size_t>::max()));
  const std::string line =
      fmt::format("layer {} {} N={}: {}, {:.3f} ms in {}, {:.1f} % of the total",
                  layer,
                  request.problem.text(),
                  request.problem.batch(),
                  toText(*plan),
                  plan->predictedMs,
                  formatSize(plan->workspaceBytes),
                  100.0 * static_cast<double>(plan->workspaceBytes) /
                      static_cast<double>(std::max<std::size_t>(totalBytes, 1)));
  Sums sums;
  {
    const std::lock_guard lock(mutex_);
    ++sums_.convolutions;
    sums_.timeMs += plan->predictedMs;
    if (const Measurement* const fastest = fastestOf(undivided)) {
      sums_.nativeMs += fastest->timeMs;
      sums_.nativeBytes += fastest->workspaceBytes;
    }
    if (std::exchange(latest, line) == line) return;
    sums = sums_;
  }
  logInfo("{}", line);
  logInfo("  {} placed so far: {:.3f} ms; cuDNN's own, undivided: {:.3f} ms in {}",
          sums.convolutions,
          sums.timeMs,
          sums.nativeMs,
          formatSize(sums.nativeBytes));
}

}  // namespace ucudnn
