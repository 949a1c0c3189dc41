#include "planner/neighbours.hpp"

#include <algorithm>
#include <cmath>

#include "planner/measured_kernels.hpp"

namespace ucudnn {
namespace {

// So many problems of a form are kept, the latest ones, because a program's sizes wander.
constexpr std::size_t kMostOfAForm = 64;
// So many kernels are taken: timing more would take as long as asking cuDNN for all.
constexpr std::size_t kMostKernels = 3;

/// The layout of a tensor without gaps: 1 channels first, 2 channels last; 0: it has gaps.
int layoutOf(const Problem::Sizes& sizes, const Problem::Strides& strides, int dimensions) {
  // Begins at the innermost dimension. The batch size may be 0; its stride is that of a sample.
  const auto isDense = [&](bool isChannelsLast) {
    std::int64_t stride = 1;
    const auto takes = [&](int i) {
      const auto place = static_cast<std::size_t>(i);
      const bool isSo = sizes[place] == 1 || strides[place] == stride;
      stride *= sizes[place];
      return isSo;
    };
    if (isChannelsLast && !takes(1)) return false;
    for (int i = dimensions - 1; i >= 2; --i)
      if (!takes(i)) return false;
    if (!isChannelsLast && !takes(1)) return false;
    return strides[0] == stride;
  };
  return isDense(false) ? 1 : isDense(true) ? 2 : 0;
}

/// The problem without its image's size. Empty if a tensor has gaps.
std::optional<KnownKey> formOf(const KnownKey& key) {
  KnownKey form = key;
  Problem& problem = form.problem;
  const int x = layoutOf(problem.xSizes, problem.xStrides, problem.dimensions);
  const int y = layoutOf(problem.ySizes, problem.yStrides, problem.dimensions);
  if (x == 0 || y == 0) return std::nullopt;
  std::fill(problem.xSizes.begin() + 2, problem.xSizes.end(), 0);
  std::fill(problem.ySizes.begin() + 2, problem.ySizes.end(), 0);
  problem.xStrides = {x};
  problem.yStrides = {y};
  return form;
}

double logSize(const Problem& problem) {
  double size = 0;
  for (int i = 2; i < problem.dimensions; ++i)
    size += std::log(problem.ySizes[static_cast<std::size_t>(i)]);
  return size;
}

}  // namespace

void Neighbours::add(const KnownKey& key) {
  const auto form = formOf(key);
  if (!form) return;
  std::vector<KnownKey>& all = byForm_[*form];
  if (std::find(all.begin(), all.end(), key) != all.end()) return;
  if (all.size() >= kMostOfAForm) all.erase(all.begin());
  all.push_back(key);
}

std::vector<KnownKey> Neighbours::nearest(const KnownKey& key) const {
  const auto form = formOf(key);
  const std::vector<KnownKey>* const all = form ? byForm_.peek(*form) : nullptr;
  if (all == nullptr) return {};
  std::vector<KnownKey> others = *all;
  others.erase(std::remove(others.begin(), others.end(), key), others.end());
  const double size = logSize(key.problem);
  std::stable_sort(others.begin(), others.end(), [&](const KnownKey& a, const KnownKey& b) {
    return std::abs(logSize(a.problem) - size) < std::abs(logSize(b.problem) - size);
  });
  return others;
}

std::vector<Kernel> kernelsOfPlans(const KnownQuestion& asked, std::size_t limitBytes) {
  std::vector<const Plan*> plans;
  for (const auto* list : {&asked.plans, &asked.formerPlans})
    for (const KnownPlan& made : *list)
      if (made.plan && made.plan->workspaceBytes <= limitBytes) plans.push_back(made.plan.get());
  std::stable_sort(plans.begin(), plans.end(), [](const Plan* a, const Plan* b) {
    return a->workspaceBytes > b->workspaceBytes;
  });
  std::vector<Kernel> kernels;
  const auto add = [&](Kernel kernel) {
    if (kernels.size() < kMostKernels && !contains(kernels, kernel)) kernels.push_back(kernel);
  };
  for (const Plan* const plan : plans)
    for (const Plan::Step& step : plan->steps) add(step.kernel);
  return kernels;
}

}  // namespace ucudnn
