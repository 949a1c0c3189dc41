// The results of `ucudnn bench`, and their two forms: a table and JSON.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ucudnn::tool {

/// Part of a configuration: `count` micro-batches of `batch` samples, each run by `kernel`.
struct MicroBatches {
  int batch = 0;
  std::string kernel;
  int count = 0;
  bool borrows = false;  ///< its workspace is in the output, beyond the limit
};

/// One layer's operation. Times are of one call, back to back; empty: not known.
struct Row {
  std::string layer;
  std::string operation;
  std::string shape;
  std::size_t limitBytes = 0;

  std::optional<double> cudnnMs;  ///< cuDNN undivided under the limit
  std::string cudnnKernel;
  std::size_t cudnnWorkspaceBytes = 0;

  std::optional<double> predictedMs, ucudnnMs;
  std::optional<double> replayed;  ///< of the calls of ucudnnMs, the part that was replayed
  std::vector<MicroBatches> configuration;
  std::size_t workspaceBytes = 0;  ///< what GetWorkspaceSize answered and the call was given
  std::optional<double> planningMs;

  std::optional<double> undividedMs;  ///< the fastest undivided kernel, engines included, under it
  std::string undividedKernel;
  std::size_t undividedWorkspaceBytes = 0;
  long long comparedKernels = 0;  ///< timed to find it

  std::optional<double> unlimitedMs;  ///< cuDNN undivided without a limit
  std::string unlimitedKernel;
  std::size_t unlimitedWorkspaceBytes = 0;

  std::optional<double> engineMs;  ///< the fastest of cuDNN's own engines without a limit
  std::string engineKernel;
  std::size_t engineWorkspaceBytes = 0;

  std::string pickedKernel;  ///< what cuDNN's heuristics put first, without a limit

  // Normalized L2 distances to the output of the plainest kernel with FMA math: of μ-cuDNN's
  // output, and of those of the three kernels above.
  std::optional<double> relativeError;
  std::optional<double> cudnnRelativeError, unlimitedRelativeError, pickedRelativeError;

  std::string error;  ///< empty: the row ran

  std::optional<double> speedup() const;          ///< cudnn / ucudnn
  bool isEngineBest() const;                      ///< faster than unlimited
  std::optional<double> bestMs() const;           ///< cuDNN's undivided best at any workspace
  std::optional<double> bestSpeedup() const;      ///< best / ucudnn
  std::optional<double> predictionError() const;  ///< predicted / ucudnn - 1
  /// Whether a split's error is above that of the kernels cuDNN picks without a limit, measuring or
  /// by its heuristics, by more than another order of summation makes: a tenth and 1e-6. False
  /// where it is not known.
  bool isLessAccurate() const;
};

/// Sums over the rows that have all of cudnnMs, ucudnnMs and unlimitedMs, so that they compare.
struct Totals {
  std::size_t rows = 0, failed = 0;
  std::size_t lessAccurate = 0;  ///< of Row::isLessAccurate
  double cudnnMs = 0, ucudnnMs = 0, unlimitedMs = 0, predictedMs = 0;
  std::optional<double> undividedMs;  ///< where all of these rows have it
  double bestMs = 0;                  ///< of Row::bestMs
  std::optional<double> speedup, geometricMeanSpeedup, maximumSpeedup;
  double planningMs = 0;                                                ///< over all rows
  std::optional<double> predictionMedianError, predictionMaximumError;  ///< of absolute values
};
Totals computeTotals(const std::vector<Row>& rows);

/// How a limit's rows compare with cuDNN's undivided best at any workspace.
struct AgainstBest {
  std::size_t limitBytes = 0;
  std::size_t rows = 0;                          ///< that ran
  std::optional<double> geometricMean, minimum;  ///< of Row::bestSpeedup
  std::string minimumRow;                        ///< "layer operation"
};
/// In the order of the rows' limits.
std::vector<AgainstBest> compareWithBest(const std::vector<Row>& rows);

struct Report {
  nlohmann::ordered_json machine;
  nlohmann::ordered_json settings;
  std::vector<Row> rows;
  long long kernelsMeasured = 0, kernelsLoaded = 0;
  long long replayedCalls = 0;  ///< of all calls, timed or not
  long long graphs = 0, graphBytes = 0;
  std::vector<std::string> remarks;  ///< lines that the table begins with
};

nlohmann::ordered_json toJson(const Report& report);
nlohmann::ordered_json toJson(const std::vector<MicroBatches>& configuration);
/// null where it is not known, or empty.
nlohmann::ordered_json orNull(const std::optional<double>& value);
nlohmann::ordered_json orNull(const std::string& text);
/// The text as it is written to files. Replaces bytes that are not UTF-8, which may be in a file's
/// name: no result is lost for them.
std::string toText(const nlohmann::ordered_json& json);
/// No wider than kMostColumns, but for names and errors. `verbose`: each row's kernels, too.
void writeTable(std::ostream& stream, const Report& report, bool verbose);

/// The names in a table: at most 16 and 10 columns.
std::string layerName(const std::string& layer);
std::string operationName(const std::string& operation);
/// "88 + 2 x 84", without the kernels; "undivided". "88 + 5 more" if it would be wider than
/// `columns`.
std::string splitText(const std::vector<MicroBatches>& configuration, std::size_t columns);
/// A line for each part, with its kernel.
void writeConfiguration(std::ostream& stream,
                        const std::vector<MicroBatches>& configuration,
                        const std::string& indent);

}  // namespace ucudnn::tool
