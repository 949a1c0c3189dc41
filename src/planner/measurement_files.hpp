// Reads measurements of problems from databases, and stores them there.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "cache/database.hpp"
#include "cache/kept_files.hpp"
#include "planner/knowledge.hpp"
#include "planner/machines.hpp"
#include "planner/request.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// A database's contents about a problem.
struct StoredKnowledge {
  bool isLocked = false;  ///< others held it, so nothing was read
  Measurements measurements;
  struct Answered {
    QuestionKey question;
    Coverage coverage;
  };
  std::vector<Answered> answered;
  std::set<int> accurateFirst;
  // What checks have found on this machine (Known).
  KernelSet right, repeated;
  std::set<Kernel> wrong, unrepeatable;
  /// On another machine: worth trying first, but no answer.
  Measurements elsewhere;
};

/// The databases that requests name. Turns questions and results into rows, and back. Takes only
/// times and errors from rows, and only possible ones (measurement_rows.hpp). Thread-safe.
class MeasurementFiles {
 public:
  explicit MeasurementFiles(const Machines& machines, const std::string& shipped = shippedFile())
      : machines_(machines), shipped_(shipped, DatabaseUse::kShipped) {}

  StoredKnowledge read(const PlanRequest& request);
  /// Stores the question as answered only if nothing was left untried and nothing failed.
  void add(const PlanRequest& request, const BenchmarkResult& result);
  void addAccurateFirst(const PlanRequest& request);
  // What checks have found (Known). A kernel that repeats its bits is right, too.
  void addRight(const PlanRequest& request, const KernelSet& kernels);
  void addRepeated(const PlanRequest& request, const KernelSet& kernels);
  void addWrong(const PlanRequest& request, int batch, Kernel kernel);
  void addUnrepeatable(const PlanRequest& request, int batch, Kernel kernel);
  /// Warns that rows say something about the request's problem that cuDNN denies.
  void warnOfLies(const PlanRequest& request);

 private:
  Database& database(const PlanRequest& request);
  void addRows(const PlanRequest& request, Database& file, StoredKnowledge& stored) const;
  void addChecked(const PlanRequest& request, const char* text, const KernelSet& kernels);
  /// The problem's measurements on another machine. The first of a file are told.
  Measurements elsewhere(const PlanRequest& request, Database& file);

  const Machines& machines_;
  ForkMutex mutex_;
  /// The files by the request's path and, if that is a folder, by the machine.
  std::map<std::pair<std::string, int>, std::unique_ptr<Database>> databases_;
  Database shipped_;
  std::set<std::pair<const Database*, int>> told_;  ///< files and machines
};

}  // namespace ucudnn
