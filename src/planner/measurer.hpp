// When a problem is measured, and how.
#pragma once

#include <cstdint>

#include "planner/device_reservations.hpp"
#include "planner/measurement_store.hpp"
#include "planner/measuring_budget.hpp"
#include "planner/request.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// Has problems measured where that was asked for or pays. Thread-safe.
class Measurer {
 public:
  Measurer(MeasurementStore& store, Statistics& statistics)
      : store_(store), statistics_(statistics) {}

  /// Measures what the question needs, if that is due and the device is free. Throws Error.
  void measureIfDue(const PlanRequest& request, Measuring measuring);

  /// What is known after that. Empty where not even the undivided kernels could
  /// be measured. Throws Error.
  Measurements measurements(const PlanRequest& request, Measuring measuring);

  /// How often a problem is called before it is measured.
  std::uint64_t repetitionsOf(const PlanRequest& request, Measuring measuring) const;

  /// Whether to measure before answering. REQUIRES: the store's lock.
  bool mustMeasure(const PlanRequest& request,
                   Measuring measuring,
                   const Known& known,
                   const KnownQuestion& asked,
                   std::uint64_t repetitions) const;

  /// The request's calls pay for measuring. REQUIRES: the store's lock.
  void addCalls(const PlanRequest& request, KnownQuestion& asked);
  /// So do convolutions that were not looked at one by one.
  void addTime(double timeMs) { budget_.addTime(timeMs); }

 private:
  bool isToBeMeasured(const PlanRequest& request, Measuring measuring);
  void measure(const PlanRequest& request, Measuring measuring);

  MeasurementStore& store_;
  Statistics& statistics_;
  MeasuringBudget budget_;
  DeviceReservations devices_;
};

}  // namespace ucudnn
