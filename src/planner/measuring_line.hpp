// What a person sees who waits for `ucudnn run --tune`.
#pragma once

#include "support/settings.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// While a call waits for a measurement: a line on stderr with what was measured before. It is
/// drawn only on a terminal, in a program that does not know of us and measures each problem when
/// first seen. Erased at the end.
class MeasuringLine {
 public:
  MeasuringLine(const Settings& settings, const Statistics& statistics);
  ~MeasuringLine();
  MeasuringLine(const MeasuringLine&) = delete;
  MeasuringLine& operator=(const MeasuringLine&) = delete;

 private:
  bool isVisible_;
};

}  // namespace ucudnn
