#include "kernels/engine_proposals.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>
#include <mutex>

#include "kernels/engine_calls.hpp"
#include "support/bounded_map.hpp"
#include "support/fork.hpp"

namespace ucudnn {
namespace {

/// Configurations that run nearly any problem. cuDNN takes longest to name them (12 ms), so it is
/// asked once for a problem. It leaves out those that its first choice holds, so it is asked at a
/// large batch, where the first choice is short. One of them mostly can't add to the output, which
/// cuDNN takes 10 ms to say (both on an H200), so this too is asked once, for calls that add.
/// Thread-safe. REQUIRES: the handle's device is current.
class Fallbacks {
 public:
  std::vector<EngineConfiguration> of(const EngineDevice& device,
                                      const Problem& problem,
                                      Calls calls) {
    Key key{kDescribed, calls, atLargeBatch(problem)};
    if (device.handle != nullptr) UCUDNN_CHECK_CUDA(cudaGetDevice(&key.device));
    {
      const std::lock_guard lock(mutex_);
      if (const auto* const known = known_.find(key)) return *known;
    }
    const OperationGraph graph(device, key.problem, 0, kEngineAlignment);
    auto found = graph.proposals(device, CUDNN_HEUR_MODE_FALLBACK);
    if (calls == Calls::kAll) keepThoseThatAdd(device, key.problem, found);
    const std::lock_guard lock(mutex_);
    return known_[key] = std::move(found);
  }

 private:
  static constexpr int kDescribed = -1;  ///< no device, but a description of one
  static constexpr std::size_t kMost = 1024;
  static constexpr int kLargeBatch = 256;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 31;  ///< many engines take no more

  static Problem atLargeBatch(const Problem& problem) {
    int batch = kLargeBatch;
    Problem large = problem.withBatch(batch);
    while (batch > 1 && std::max(large.xBytes(), large.yBytes()) >= kMostBytes)
      large = problem.withBatch(batch /= 2);
    return large;
  }

  static void keepThoseThatAdd(const EngineDevice& device,
                               const Problem& problem,
                               std::vector<EngineConfiguration>& values) {
    if (problem.operation == Operation::kBiasActivationForward) return;
    const OperationGraph graph(device, problem, 1, kEngineAlignment);
    const auto refuses = [&](const EngineConfiguration& value) {
      try {
        graph.configuration(device, value);
        return false;
      } catch (const Error& error) {
        return isRefusal(error.status());
      }
    };
    values.erase(std::remove_if(values.begin(), values.end(), refuses), values.end());
  }

  struct Key {
    int device;
    Calls calls;
    Problem problem;
    bool operator==(const Key& other) const noexcept {
      return device == other.device && calls == other.calls && problem == other.problem;
    }
    struct Hash {
      std::size_t operator()(const Key& key) const noexcept { return key.problem.hash(); }
    };
  };

  ForkMutex mutex_;
  BoundedMap<Key, std::vector<EngineConfiguration>, Key::Hash> known_{kMost};
};

}  // namespace

// Mode B is not asked. For 351 problems recorded on an H200 (misc/profiles/h200_engines.csv), its
// further engines make the fastest 0.02 % faster, and asking takes 4 ms each.
std::vector<EngineConfiguration> engineProposals(const EngineDevice& device,
                                                 const Problem& problem,
                                                 const OperationGraph& graph,
                                                 Calls calls) {
  static Fallbacks& fallbacks = *new Fallbacks;
  std::vector<EngineConfiguration> all = graph.proposals(device, CUDNN_HEUR_MODE_A);
  for (EngineConfiguration& value : fallbacks.of(device, problem, calls))
    if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(std::move(value));
  return all;
}

}  // namespace ucudnn

#endif
