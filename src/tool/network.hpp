// A layer list as one network whose convolutions share one workspace total.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "division/workspace_division.hpp"
#include "tool/convolution.hpp"
#include "tool/layer_list.hpp"
#include "tool/options.hpp"
#include "tool/plan_description.hpp"
#include "tool/report.hpp"

namespace ucudnn::tool {

/// The ways to spend a total that are compared: each convolution has an equal part of it (WR),
/// `divide`, and `share`, which is also `auto`.
enum class Way { kReuse, kDivide, kShare };
constexpr std::array<Way, 3> kWays = {Way::kReuse, Way::kDivide, Way::kShare};
const char* toText(Way way);
/// REQUIRES: not kReuse.
ucudnnTotalWorkspacePolicy_t policyOf(Way way);

/// A convolution by one of the ways.
struct NetworkChoice {
  PlanDescription plan;
  std::optional<double> measuredMs;  ///< by itself, back to back
  std::optional<double> replayed;    ///< of the calls of measuredMs, the part that was replayed
};

struct NetworkRow {
  std::string layer, operation, shape;
  std::array<std::optional<NetworkChoice>, kWays.size()> choices;  ///< by Way; empty: left out
};

struct NetworkTimes {
  double predictedMs = 0;
  std::optional<double> measuredMs;
  std::optional<double> replayed;  ///< of the timed convolutions, the part that was replayed
  std::optional<double> hostMs;    ///< to enqueue it; a GPU's alone
};

/// One way's.
struct NetworkTotals {
  NetworkTimes summed;  ///< each convolution by itself, back to back
  /// All of them in the order of training, one iteration behind the other. The host runs ahead
  /// there, so that the device needs the sum of its own times; unless enqueueing takes longer.
  /// Predicted for one stream.
  NetworkTimes iteration;
  std::size_t workspaceBytes = 0;  ///< of device memory that is needed
};

struct NetworkReport {
  nlohmann::ordered_json machine, settings;
  std::size_t totalBytes = 0;
  std::size_t eachBytes = 0;  ///< a convolution's equal part
  std::vector<NetworkRow> rows;
  std::array<std::optional<NetworkTotals>, kWays.size()> totals;
  double planningMs = 0;  ///< host time of plan(): all is measured there
  long long kernelsMeasured = 0, kernelsLoaded = 0;
  long long replayedCalls = 0;  ///< of all calls, timed or not
  long long graphs = 0, graphBytes = 0;
  bool optimal = true;    ///< the division is proven to be the best
  double divisionMs = 0;  ///< host time to find it, Pareto fronts not included
};

/// The convolutions in the order of training: forward, then backward from the last layer.
class Network {
 public:
  /// Throws DeviceError.
  Network(const std::vector<Layer>& layers, const ConvolutionOptions& options);

  std::size_t size() const noexcept { return convolutions_.size(); }
  const Convolution& convolution(std::size_t i) const { return *convolutions_[i]; }
  std::string name(std::size_t i) const { return rows_[i].layer + " " + rows_[i].operation; }

  /// Whether two convolutions are of one layer, and both forward or both backward.
  bool isSamePass(std::size_t i, std::size_t j) const;

  /// Plans each convolution by each of the ways. Measures what is not known yet. Throws
  /// DeviceError.
  NetworkReport plan(cudnnHandle_t handle, const std::vector<Way>& ways, std::size_t totalBytes);
  /// The Pareto fronts that plan() has found.
  const std::vector<DivisionItem>& fronts() const noexcept { return fronts_; }

 private:
  void findFronts(cudnnHandle_t handle, std::size_t totalBytes);
  void divide(NetworkReport& report, cudnnHandle_t handle);

  std::vector<std::unique_ptr<Convolution>> convolutions_;
  std::vector<NetworkRow> rows_;
  std::vector<std::size_t> layers_;  ///< by convolution
  std::vector<DivisionItem> fronts_;
};

/// Which ways a policy asks for: kAuto for all.
std::vector<Way> waysOf(TotalWorkspacePolicy policy);

nlohmann::ordered_json toJson(const NetworkReport& report);
/// Per convolution, then the totals side by side.
void writeTable(std::ostream& stream, const NetworkReport& report);
/// The division as bars. `verbose`: its kernels, too.
void writeBars(std::ostream& stream, const NetworkReport& report, bool verbose);

}  // namespace ucudnn::tool
