// The measurements that a database holds for one problem alone.
#pragma once

#include <string>
#include <utility>

#include "cache/database.hpp"

namespace ucudnn::test {

/// Without the measurements of texts that begin with the problem's.
template <typename AnyDatabase>
StoredMeasurements loadOwn(AnyDatabase&& database,
                           const MachineKey& machine,
                           const std::string& problem,
                           bool* isLocked = nullptr) {
  StoredProblem all = database.loadAll(machine, problem, isLocked);
  return std::move(all[""]);
}

}  // namespace ucudnn::test
