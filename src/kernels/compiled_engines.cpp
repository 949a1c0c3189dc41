#include "kernels/compiled_engines.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "cuda/error.hpp"
#include "support/fork.hpp"

namespace ucudnn {
namespace {

/// A process's plans have few more. An engine takes up to 1 MiB.
constexpr std::size_t kMostKept = 16;

struct Compiled {
  int device = 0;
  Problem problem;
  EngineConfiguration engine;
  Calls calls = Calls::kAll;
  std::shared_ptr<const BuiltKernel> built;

  bool isFor(const Compiled& wanted) const noexcept {
    return device == wanted.device && calls == wanted.calls && engine == wanted.engine &&
           problem == wanted.problem;
  }
};

/// Never destroyed: handles are used in static destructors.
struct Kept {
  ForkMutex mutex;
  std::list<Compiled> last;  ///< built or used; the latest first
};

Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

}  // namespace

std::shared_ptr<const BuiltKernel> compiledOnce(
    const Problem& problem,
    const EngineConfiguration& engine,
    Calls calls,
    const std::function<std::shared_ptr<const BuiltKernel>()>& build) {
  Compiled wanted{0, problem, engine, calls, nullptr};
  UCUDNN_CHECK_CUDA(cudaGetDevice(&wanted.device));
  Kept& all = kept();
  {
    const std::lock_guard lock(all.mutex);
    const auto known = std::find_if(
        all.last.begin(), all.last.end(), [&](const Compiled& one) { return one.isFor(wanted); });
    if (known != all.last.end()) {
      all.last.splice(all.last.begin(), all.last, known);
      return known->built;
    }
  }
  wanted.built = build();
  std::list<Compiled> one, dropped;  // which cuDNN frees without the lock
  one.push_back(std::move(wanted));
  const std::lock_guard lock(all.mutex);
  all.last.splice(all.last.begin(), one);
  std::shared_ptr<const BuiltKernel> built = all.last.front().built;
  if (all.last.size() > kMostKept)
    dropped.splice(dropped.begin(), all.last, std::prev(all.last.end()));
  return built;
}

}  // namespace ucudnn
