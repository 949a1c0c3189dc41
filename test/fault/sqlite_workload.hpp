// The data that the program under fault injection stores, and that the test looks for afterwards.
#pragma once

#include <string>

#include "cache/database.hpp"

namespace ucudnn::test {

constexpr int kProblems = 4;

inline MachineKey faultMachine() {
  MachineKey key;
  key.deviceName = "device";
  key.computeCapability = 90;
  return key;
}

inline std::string faultProblem(int i) {
  return "problem " + std::to_string(i);
}

inline StoredMeasurements faultMeasurements(int i) {
  return {{1, {100, {{"a", 1.0 + i, 10, true}, {"b", 2.0 + i, 20, false}}}}, {2, {200, {}}}};
}

/// Whether they are exactly the i-th problem's; the kernels come in the order of their names.
inline bool isWhole(const StoredMeasurements& found, int i) {
  const StoredMeasurements expected = faultMeasurements(i);
  if (found.size() != expected.size()) return false;
  for (const auto& [batch, size] : expected) {
    const auto other = found.find(batch);
    if (other == found.end() || other->second.coveredBytes != size.coveredBytes ||
        other->second.kernels.size() != size.kernels.size()) {
      return false;
    }
    for (std::size_t k = 0; k < size.kernels.size(); ++k) {
      const StoredMeasurement& a = size.kernels[k];
      const StoredMeasurement& b = other->second.kernels[k];
      if (a.kernel != b.kernel || a.timeMs != b.timeMs || a.workspaceBytes != b.workspaceBytes ||
          a.deterministic != b.deterministic || a.deviceMs != b.deviceMs) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace ucudnn::test
