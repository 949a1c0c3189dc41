// When a problem is measured, and how.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "planner/device_reservations.hpp"
#include "planner/measurement_store.hpp"
#include "planner/measuring_budget.hpp"
#include "planner/ongoing_measurement.hpp"
#include "planner/request.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// Has problems measured where that was asked for, at once; or where it pays, a slice in each of
/// their calls, one problem at a time on a device. Thread-safe.
class Measurer {
 public:
  Measurer(MeasurementStore& store, Statistics& statistics)
      : store_(store), statistics_(statistics) {}

  /// Measures what the question needs, if that is due and the device is free. Throws Error.
  void measureIfDue(const PlanRequest& request, Measuring measuring);

  /// What is known after that. Empty where not even the undivided kernels could
  /// be measured. Throws Error.
  Measurements measurements(const PlanRequest& request, Measuring measuring);

  /// Whether to measure before answering. REQUIRES: the store's lock.
  bool mustMeasure(const PlanRequest& request,
                   Measuring measuring,
                   const Known& known,
                   const KnownQuestion& asked) const;

  /// The request's calls pay for measuring. REQUIRES: the store's lock.
  void addCalls(const PlanRequest& request, KnownQuestion& asked);
  /// So do convolutions that were not looked at one by one.
  void addTime(double timeMs) { budget_.addTime(timeMs); }

 private:
  using Clock = KnownQuestion::Clock;
  struct Begun {
    Begun(const PlanRequest& request, const BenchmarkRequest& benchmark, KnownBefore before)
        : measurement(request, benchmark, std::move(before)) {}
    OngoingMeasurement measurement;
    Clock::time_point wanted{};  ///< by a call, the last time
  };
  /// The latest begun last. Of a device, for whoever has reserved it.
  using Ongoing = std::list<Begun>;

  bool isToBeMeasured(const PlanRequest& request, Measuring measuring);
  /// All at once. Who has waited for the device long enough has not reserved it.
  void measure(const PlanRequest& request, bool isReserved);
  void measureSlice(const PlanRequest& request);
  /// Null: another problem's measurement comes first.
  Begun* ongoingOf(const PlanRequest& request, const BenchmarkRequest& benchmark);
  Ongoing& ongoingOn(int device);
  KnownBefore knownBefore(const PlanRequest& request);
  void conclude(const PlanRequest& request,
                BenchmarkResult result,
                const std::optional<Kernel>& own,
                std::string why,
                const KnownBefore& before);
  /// Of a problem like it, what may be faster than the call's own kernel. Empty: nothing is known.
  /// REQUIRES: the store's lock.
  std::optional<std::vector<Kernel>> hopesOf(const PlanRequest& request) const;

  MeasurementStore& store_;
  Statistics& statistics_;
  MeasuringBudget budget_;
  DeviceReservations devices_;
  ForkMutex ongoingMutex_;
  std::map<int, Ongoing> ongoing_;  ///< by device
};

}  // namespace ucudnn
