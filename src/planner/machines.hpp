// The devices of this process as the benchmark database knows them.
#pragma once

#include <map>
#include <vector>

#include "cache/database.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// Numbers the kinds of device: devices of one model share measurements and plans. Thread-safe.
class Machines {
 public:
  /// The number of a device's kind. Throws Error.
  int ofDevice(int device);
  /// REQUIRES: ofDevice has returned the number.
  MachineKey key(int machine) const;

 private:
  mutable ForkMutex mutex_;
  std::map<int, int> byDevice_;
  std::vector<MachineKey> keys_;
};

/// The devices other than `device` that UCUDNN_BENCHMARK_DEVICES names and that are of its kind:
/// each kind is measured on its own. Throws BadSetting if an id does not exist.
std::vector<int> benchmarkDevices(const std::vector<int>& ids,
                                  bool all,
                                  int device,
                                  Machines& machines);

}  // namespace ucudnn
