// Workspaces that clients were told of for plans of graphs, where those are smaller than cuDNN's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "graph/client_graph.hpp"
#include "support/fork.hpp"

#if UCUDNN_HAS_ENGINES

namespace ucudnn {

/// A client may ask one plan for its workspace and run another like it in so much. Plans are alike
/// if their problem, their own engine's workspace, and whether that is deterministic are. Grows
/// with the problems that a cap concerns. Thread-safe.
class GrantedWorkspaces {
 public:
  /// Keeps what the client was told. Throws std::bad_alloc.
  void add(const ClientConvolution& answered);
  /// Answers as one like it was; the smallest workspace of several. Returns false if nobody was
  /// told of less than it needs.
  bool answerAlike(ClientConvolution& unasked) const;
  /// Grows with each that is kept. 0: none was.
  std::uint64_t additions() const noexcept { return additions_.load(std::memory_order_acquire); }

 private:
  struct Plan {
    Problem problem;
    std::size_t neededBytes;
    bool deterministic;
    bool operator==(const Plan& other) const noexcept {
      return neededBytes == other.neededBytes && deterministic == other.deterministic &&
             problem == other.problem;
    }
  };
  struct Hash {
    std::size_t operator()(const Plan& plan) const noexcept {
      return plan.problem.hash() ^ (plan.neededBytes * 0x9E3779B97F4A7C15U);
    }
  };
  struct Answer {
    std::size_t bytes;
    int algorithm;  ///< as ClientConvolution has it
    bool isMeasured;
  };
  static Plan planOf(const ClientConvolution& convolution) {
    return {convolution.problem, convolution.neededBytes, convolution.deterministic};
  }

  mutable ForkMutex mutex_;
  std::unordered_map<Plan, Answer, Hash> all_;
  std::atomic<std::uint64_t> additions_{0};
};

/// Never destroyed: plans run in static destructors.
GrantedWorkspaces& grantedWorkspaces();

}  // namespace ucudnn

#endif
