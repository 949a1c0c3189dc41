#include "tool/simulator_control.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace ucudnn::tool {
namespace {

// Not linked: NVIDIA's runtime has no such symbol, and the loader decides which of the two is
// there.
using SetArithmetic = void (*)(int);
SetArithmetic findSetArithmetic() {
  return reinterpret_cast<SetArithmetic>(dlsym(RTLD_DEFAULT, "ucudnnSimulatorSetArithmetic"));
}

// The simulator does about a hundred million multiply-adds a second on one core, and a check
// computes the output three times.
constexpr double kMostFullMultiplyAdds = 3e7;
// A check reads the output ten times, at a hundred million elements a second.
constexpr double kMostSampledElements = 1.28e8;

}  // namespace

const char* toText(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kFull:
      return "full";
    case Arithmetic::kSampled:
      return "sampled";
    default:
      return "off";
  }
}

bool onSimulator() {
  return findSetArithmetic() != nullptr;
}

std::string simulatorProfile() {
  const char* const profile = std::getenv("UCUDNN_SIMULATOR_PROFILE");
  return profile != nullptr ? profile : "";
}

void setArithmetic(Arithmetic arithmetic) {
  if (const SetArithmetic function = findSetArithmetic()) function(static_cast<int>(arithmetic));
}

Arithmetic automaticArithmetic(double multiplyAdds, double elements) {
  if (elements > kMostSampledElements) return Arithmetic::kOff;
  return multiplyAdds <= kMostFullMultiplyAdds ? Arithmetic::kFull : Arithmetic::kSampled;
}

}  // namespace ucudnn::tool
