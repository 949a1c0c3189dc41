#include "support/policies.hpp"

#include <stdexcept>

namespace ucudnn {

const char* toText(BatchSizePolicy policy) noexcept {
  switch (policy) {
    case BatchSizePolicy::kUndivided:
      return "undivided";
    case BatchSizePolicy::kPowerOfTwo:
      return "powerOfTwo";
    case BatchSizePolicy::kAll:
      return "all";
  }
  return "unknown";
}

BatchSizePolicy batchSizePolicyFromText(const std::string& text) {
  for (const BatchSizePolicy policy : kBatchSizePolicies)
    if (text == toText(policy)) return policy;
  throw std::invalid_argument("it is no batch size policy");
}

const char* toText(Kernels kernels) noexcept {
  switch (kernels) {
    case Kernels::kLegacy:
      return "legacy";
    case Kernels::kEngines:
      return "engines";
    case Kernels::kAll:
      return "all";
  }
  return "unknown";
}

Kernels kernelsFromText(const std::string& text) {
  for (const Kernels kernels : {Kernels::kLegacy, Kernels::kEngines, Kernels::kAll})
    if (text == toText(kernels)) return kernels;
  throw std::invalid_argument("it is none of them");
}

const char* toText(Tuning tuning) noexcept {
  switch (tuning) {
    case Tuning::kExhaustive:
      return "exhaustive";
    case Tuning::kFast:
      return "fast";
  }
  return "unknown";
}

Tuning tuningFromText(const std::string& text) {
  for (const Tuning tuning : {Tuning::kExhaustive, Tuning::kFast})
    if (text == toText(tuning)) return tuning;
  throw std::invalid_argument("it is neither");
}

const char* toText(TotalWorkspacePolicy policy) noexcept {
  switch (policy) {
    case TotalWorkspacePolicy::kDivide:
      return "divide";
    case TotalWorkspacePolicy::kShare:
      return "share";
    case TotalWorkspacePolicy::kAuto:
      return "auto";
  }
  return "unknown";
}

TotalWorkspacePolicy totalWorkspacePolicyFromText(const std::string& text) {
  for (const TotalWorkspacePolicy policy :
       {TotalWorkspacePolicy::kDivide, TotalWorkspacePolicy::kShare, TotalWorkspacePolicy::kAuto}) {
    if (text != toText(policy)) continue;
#ifndef UCUDNN_HAVE_DIVISION
    if (policy == TotalWorkspacePolicy::kDivide)
      throw std::invalid_argument(
          "this build divides no workspace; rebuild with -DUCUDNN_DIVIDE=ON, or use share");
#endif
    return policy;
  }
  throw std::invalid_argument("it is no such policy");
}

}  // namespace ucudnn
