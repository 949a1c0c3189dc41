#include "tool/stored_times.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>

#include "cache/maintenance.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/source.hpp"
#include "optimizer/workspace_reuse.hpp"
#include "problem/problem.hpp"
#include "support/text.hpp"
#include "tool/database.hpp"
#include "tool/failure.hpp"
#include "tool/network.hpp"
#include "tool/options.hpp"

namespace ucudnn::tool {
namespace {

/// The planner's time of a launch: of equally fast configurations the one with fewer launches is
/// taken.
constexpr double kLaunchMs = 1e-4;

/// A kind of device in one of the databases.
struct StoredMachine {
  std::string file;
  MachineKey key;
};

StoredMachine findMachine(const std::string& database, const std::string& name) {
  std::optional<StoredMachine> latest;
  std::int64_t measuredAt = 0;
  std::set<std::string> known;
  try {
    for (const std::string& file : databasesIn(database))
      for (const DatabaseEntry& entry : listDatabase(file)) {
        known.insert(entry.machine.deviceName);
        if (entry.machine.deviceName != name || entry.kernels == 0) continue;
        if (latest && entry.measuredAt <= measuredAt) continue;
        latest = StoredMachine{file, entry.machine};
        measuredAt = entry.measuredAt;
      }
  } catch (const std::runtime_error& error) {
    throw BadInput(error.what());
  }
  if (latest) return *latest;
  throw BadInput(fmt::format(
      "--machine: {} has nothing of \"{}\"; it has {}",
      printable(database),
      excerpt(name),
      known.empty() ? "no machine" : printable(fmt::format("{}", fmt::join(known, ", ")))));
}

/// One convolution's kernels as the database has them.
class StoredConvolution {
 public:
  StoredConvolution(const Problem& problem,
                    const StoredProblem& stored,
                    const ConvolutionOptions& options,
                    std::size_t limitBytes)
      : room_{limitBytes, Settings().borrowOutput ? problem.overwrittenSampleBytes() : 0},
        isSplit_(
            options.policy != BatchSizePolicy::kUndivided &&
            (problem.operation != Operation::kBackwardFilter || !isRounded(problem.outputType()))) {
    const bool isReplayed = options.graphMemoryBytes > 0;
    // As the planner has it: inaccurate kernels get into a split where cuDNN names one first.
    const bool mustBeAccurate = stored.count("accurate") > 0;
    const auto own = stored.find("");
    if (own == stored.end()) return;
    for (const auto& [batch, size] : own->second)
      for (const StoredMeasurement& row : size.kernels) {
        const auto offer = parseKernel(problem.withBatch(batch), row.kernel);
        if (!offer || !isAmong(problem, *offer, options.kernels)) continue;
        const double ms = isReplayed && row.deviceMs > 0 ? row.deviceMs : row.timeMs;
        undivided_[batch].push_back({0, ms, row.workspaceBytes});
        if (isSplit_ && (offer->accurate || !mustBeAccurate))
          split_[batch].push_back(undivided_[batch].back());
      }
  }

  /// Empty: what is stored does not make up so many samples.
  std::optional<Configuration> fastest(int samples) const {
    CandidateTable table(split_.begin(), split_.lower_bound(samples));
    if (const auto whole = undivided_.find(samples); whole != undivided_.end())
      table.insert(*whole);
    return fastestConfiguration(table, samples, room_, kLaunchMs);
  }

 private:
  static bool isAmong(const Problem& problem, const KernelOffer& offer, Kernels kernels) {
    return isAsked(offer.kernel.source, problem, kernels != Kernels::kLegacy) &&
           !(kernels == Kernels::kEngines && offer.kernel.source == kAlgorithms);
  }

  WorkspaceRoom room_;
  bool isSplit_;
  CandidateTable undivided_, split_;
};

}  // namespace

std::vector<StepPlan> storedSteps(const std::string& database,
                                  const std::string& machine,
                                  const std::vector<Layer>& layers,
                                  const ConvolutionOptions& options,
                                  std::size_t limitBytes) {
  const StoredMachine stored = findMachine(database, machine);
  Database file(stored.file);
  const Network network(layers, options);
  const int samples = layers.front().batch;
  std::vector<StepPlan> steps(static_cast<std::size_t>(samples) + 1);
  for (std::size_t i = 0; i < network.size(); ++i) {
    const Convolution& c = network.convolution(i);
    Problem problem;
    if (!readProblem(
            static_cast<Operation>(c.operation()), {c.x(), c.w(), c.convolution(), c.y()}, problem))
      throw BadInput(network.name(i) + ": not a convolution that is planned");
    const StoredConvolution convolution(
        problem, file.loadAll(stored.key, problem.text()), options, limitBytes);
    for (int share = 1; share <= samples; ++share) {
      StepPlan& step = steps[static_cast<std::size_t>(share)];
      const auto fastest = convolution.fastest(share);
      if (share == samples && !fastest)
        throw BadInput(fmt::format("{}: {} has not all kernels of {}",
                                   printable(database),
                                   excerpt(machine),
                                   network.name(i)));
      if (!fastest) {
        step.ms = std::numeric_limits<double>::infinity();
        continue;
      }
      step.ms += fastest->timeMs;
      step.workspaceBytes = std::max(step.workspaceBytes, fastest->workspaceBytes);
    }
  }
  return steps;
}

}  // namespace ucudnn::tool
