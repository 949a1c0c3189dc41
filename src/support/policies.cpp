#include "support/policies.hpp"

#include "support/names.hpp"

namespace ucudnn {
namespace {

constexpr const char* kBatchSizePolicyNames[] = {"undivided", "powerOfTwo", "all"};
constexpr const char* kKernelsNames[] = {"legacy", "engines", "all"};
constexpr const char* kTuningNames[] = {"exhaustive", "fast"};
constexpr const char* kTotalWorkspacePolicyNames[] = {"divide", "share", "auto"};

}  // namespace

const char* toText(BatchSizePolicy policy) noexcept {
  return nameOf(policy, kBatchSizePolicyNames);
}

BatchSizePolicy batchSizePolicyFromText(const std::string& text) {
  return named<BatchSizePolicy>(text, kBatchSizePolicyNames, "it is no batch size policy");
}

const char* toText(Kernels kernels) noexcept {
  return nameOf(kernels, kKernelsNames);
}

Kernels kernelsFromText(const std::string& text) {
  return named<Kernels>(text, kKernelsNames, "it names no kind of kernels");
}

const char* toText(Tuning tuning) noexcept {
  return nameOf(tuning, kTuningNames);
}

Tuning tuningFromText(const std::string& text) {
  return named<Tuning>(text, kTuningNames, "it is neither");
}

const char* toText(TotalWorkspacePolicy policy) noexcept {
  return nameOf(policy, kTotalWorkspacePolicyNames);
}

TotalWorkspacePolicy totalWorkspacePolicyFromText(const std::string& text) {
  const auto policy =
      named<TotalWorkspacePolicy>(text, kTotalWorkspacePolicyNames, "it is no policy for a total");
#ifndef UCUDNN_HAVE_DIVISION
  if (policy == TotalWorkspacePolicy::kDivide)
    throw std::invalid_argument(
        "this build divides no workspace; rebuild with -DUCUDNN_DIVIDE=ON, or use share");
#endif
  return policy;
}

}  // namespace ucudnn
