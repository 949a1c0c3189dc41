// Engines, times and workspaces recorded on a real GPU: UCUDNN_SIMULATOR_PROFILE.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "simulator/cudnn/engines.hpp"
#include "simulator/cudnn/profile_fields.hpp"

namespace ucudnn::simulator {

/// The second line of a table of engines; the first is kProblemHeader. Below, each problem has a
/// line with the first one's columns, and each of its engines a line with the second one's.
constexpr const char* kEngineHeader = "modes,engine,time_ms,workspace_bytes";

/// One engine with its knobs, as heuristics proposed it.
struct RecordedEngine {
  std::string text;   ///< "eng46_k2=0_k5=2_k14=3": the index, and knobs by their types' numbers
  std::string modes;  ///< A, B, F (FALLBACK): which modes proposed it
  EngineChoice choice;
  Cost cost;
};

/// The text of a configuration in the tables.
std::string engineText(const EngineChoice& choice);

/// Recorded tables; nothing is added once one was searched.
class EngineProfile {
 public:
  /// As Profile::load.
  void load(const std::string& path);

  /// The recorded engines for the problem, in the order of the table; null if nothing was recorded,
  /// for good. Between recorded batch sizes: the larger size's engines that the smaller size has
  /// too, equal but for the number of splits; time and workspace are linear. Above the largest size
  /// both grow in proportion; below the smallest they stay.
  const std::vector<RecordedEngine>* find(const ConvolutionProblem& problem) const;

 private:
  using Engines = std::vector<RecordedEngine>;
  using Batches = std::map<int, Engines>;

  static Engines interpolated(const Batches& batches, int batch);

  std::map<RecordedProblem, Batches> problems_;
  mutable std::mutex mutex_;
  mutable std::map<RecordedProblem, Batches> interpolated_;  ///< guarded by mutex_
};

}  // namespace ucudnn::simulator
