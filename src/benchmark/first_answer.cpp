#include "benchmark/first_answer.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <tuple>

#include "kernels/engines.hpp"
#include "kernels/source.hpp"
#include "support/fork.hpp"

namespace ucudnn {
namespace {

/// What decides about the tables, and by size and activation whether cuDNN has algorithms at all.
using AskedKind = std::tuple<Operation, int, int, int, int, int, int, int, Transform, bool, bool>;

AskedKind askedKindOf(const Problem& problem, bool withEngines) {
  return {problem.operation,
          problem.dimensions,
          problem.xType,
          problem.yType,
          problem.computeType,
          problem.mathType,
          problem.wFormat,
          problem.activation,
          problem.transform,
          withEngines,
          problem.isLarge()};
}

/// Never destroyed: a thread may measure while the process ends. Thread-safe.
class AnsweredKinds {
 public:
  static AnsweredKinds& instance() {
    static AnsweredKinds& kinds = *new AnsweredKinds;
    return kinds;
  }
  bool has(const AskedKind& kind) const {
    const std::lock_guard lock(mutex_);
    return kinds_.count(kind) != 0;
  }
  void add(const AskedKind& kind) {
    const std::lock_guard lock(mutex_);
    kinds_.insert(kind);
  }

 private:
  mutable ForkMutex mutex_;
  std::set<AskedKind> kinds_;
};

bool asksForAlgorithms(const BenchmarkRequest& request) {
  return request.look == nullptr ||
         std::any_of(request.look->kernels.begin(), request.look->kernels.end(), [](Kernel kernel) {
           return kernel.source != kEngines;
         });
}

}  // namespace

FirstAnswer::FirstAnswer(const BenchmarkRequest& request)
    : problem_(request.problem.withBatch(request.sizes.front())),
      withEngines_(request.withEngines()),
      asksAlgorithms_(asksForAlgorithms(request)),
      calls_(request.callsAt(problem_.batch())) {}

bool FirstAnswer::isThere() {
  if (!asksAlgorithms_) return true;
  const AskedKind kind = askedKindOf(problem_, withEngines_);
  if (AnsweredKinds::instance().has(kind)) return true;
  if (!asked_)
    asked_.emplace([kind, problem = problem_, engines = withEngines_, calls = calls_](
                       cudnnHandle_t handle) {
      offeredKernels(handle, problem, ProblemDescriptors(problem).get(), engines, nullptr, calls);
      AnsweredKinds::instance().add(kind);
      return true;
    });
  return asked_->isDone();
}

}  // namespace ucudnn
