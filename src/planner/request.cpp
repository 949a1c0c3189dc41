#include "planner/request.hpp"

#include <fmt/format.h>

namespace ucudnn {

std::string toText(const QuestionKey& question) {
  std::string text = fmt::format("asked {}", toText(question.policy));
  if (question.kernels != Kernels::kLegacy)
    text += fmt::format(" kernels={}", toText(question.kernels));
  if (question.tuning != Tuning::kExhaustive)
    text += fmt::format(" tuning={}", toText(question.tuning));
  if (question.errors) text += " errors";
  if (question.borrows) text += " borrows";
  return text;
}

std::vector<int> sizesFor(const Problem& problem, BatchSizePolicy policy) {
  const bool roundsSums =
      problem.operation == Operation::kBackwardFilter && isRounded(problem.wType);
  return microBatchSizes(roundsSums ? BatchSizePolicy::kUndivided : policy, problem.batch());
}

}  // namespace ucudnn
