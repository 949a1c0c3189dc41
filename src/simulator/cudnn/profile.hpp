// Algorithms, times and workspaces recorded on a real GPU: UCUDNN_SIMULATOR_PROFILE.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulator/cudnn/profile_fields.hpp"

namespace ucudnn::simulator {

/// Recorded algorithms, with these columns. Immutable once loaded.
constexpr const char* kAlgorithmHeader =
    "layer,operation,math,batch,c,h,w,k,kh,kw,pad_h,pad_w,stride_h,stride_w,algorithm,"
    "algorithm_name,math_type,deterministic,time_ms,workspace_bytes";

class Profile {
 public:
  enum class Match { kNone, kUnavailable, kAvailable };

  /// Reads more rows, below the header; of rows for the same problem, batch size and algorithm the
  /// first counts. Throws std::runtime_error("FILE:LINE: why") or ("FILE: cannot be opened").
  void load(const std::string& path);

  /// kNone: the problem was not recorded. Otherwise whether `algorithm` was available. Between
  /// recorded batch sizes both neighbours must have it, time and workspace are linear, the
  /// workspace rounded up; above the largest both grow in proportion, below the smallest they stay.
  Match find(const ConvolutionProblem& problem, int algorithm, Cost* cost) const;

 private:
  struct Row {
    int batch;
    Cost cost;
  };
  struct Entry {
    std::vector<int> batches;                     ///< sorted
    std::map<int, std::vector<Row>> byAlgorithm;  ///< rows sorted by batch
  };

  void addLine(const std::string& line);

  std::map<RecordedProblem, Entry> entries_;
};

}  // namespace ucudnn::simulator
