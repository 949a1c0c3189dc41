// Workspaces that clients were told of for plans of graphs, where those are smaller than cuDNN's.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "problem/problem.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// A client may ask one plan for its workspace and run another like it in so much. Plans are alike
/// if their problem and their own engine's workspace are. Grows with the problems that a cap
/// concerns. Thread-safe.
class ToldWorkspaces {
 public:
  struct Told {
    std::size_t bytes = 0;
    int algorithm = -1;  ///< as ClientConvolution has it
  };
  /// Throws std::bad_alloc.
  void add(const Problem& problem, std::size_t neededBytes, Told told);
  /// The smallest. Empty: nobody was told of less than the plan needs.
  std::optional<Told> find(const Problem& problem, std::size_t neededBytes) const;
  bool isEmpty() const noexcept { return isEmpty_.load(std::memory_order_acquire); }

 private:
  struct Plan {
    Problem problem;
    std::size_t neededBytes;
    bool operator==(const Plan& other) const noexcept {
      return neededBytes == other.neededBytes && problem == other.problem;
    }
  };
  struct Hash {
    std::size_t operator()(const Plan& plan) const noexcept {
      return plan.problem.hash() ^ (plan.neededBytes * 0x9E3779B97F4A7C15U);
    }
  };
  mutable ForkMutex mutex_;
  std::unordered_map<Plan, Told, Hash> all_;
  std::atomic<bool> isEmpty_{true};
};

/// Never destroyed: plans run in static destructors.
ToldWorkspaces& toldWorkspaces();

}  // namespace ucudnn
