// Algorithms, times and workspaces recorded on a real GPU: UCUDNN_SIMULATOR_PROFILE.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "simulator/cudnn/problem.hpp"

namespace ucudnn::simulator {

/// What one algorithm costs for one problem.
struct Cost {
  double timeMs = 0;
  std::size_t workspaceBytes = 0;
};

/// Recorded tables, with the columns of misc/profiles/h200_legacy_algorithms.csv. Immutable once
/// loaded.
class Profile {
 public:
  enum class Match { kNone, kUnavailable, kAvailable };

  /// Reads more rows; of rows for the same problem, batch size and algorithm the first counts.
  /// Throws std::runtime_error("FILE:LINE: why") or ("FILE: cannot be opened").
  void load(const std::string& path);

  /// kNone: the problem was not recorded. Otherwise whether `algorithm` was available. Between
  /// recorded batch sizes both neighbours must have it, time and workspace are linear, the
  /// workspace rounded up; above the largest both grow in proportion, below the smallest they stay.
  Match find(const ConvolutionProblem& problem, int algorithm, Cost* cost) const;

  bool valid() const { return valid_; }
  void markInvalid() { valid_ = false; }

 private:
  struct Row {
    int batch;
    Cost cost;
  };
  struct Key {
    int operation;
    int math;
    std::array<int, 10> numbers;  ///< c, h, w, k, kh, kw, pad_h, pad_w, stride_h, stride_w
    bool operator<(const Key& other) const;
  };
  struct Entry {
    std::vector<int> batches;                     ///< sorted
    std::map<int, std::vector<Row>> byAlgorithm;  ///< rows sorted by batch
  };

  void addLine(const std::string& line);

  std::map<Key, Entry> entries_;
  bool valid_ = true;
};

/// The tables that UCUDNN_SIMULATOR_PROFILE (a comma-separated list of files) names; read once. On
/// an error one line on stderr says which file and line, and the profile is not valid.
const Profile& recordedProfile();

}  // namespace ucudnn::simulator
