// Decides when a problem is measured, and how.
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
#include "planner/measuring_queue.hpp"
#include "planner/ongoing_measurement.hpp"
#include "planner/request.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// Measures problems. If that was asked for, it measures at once; otherwise, if it pays, a slice in
/// each of the problem's calls, one problem at a time on a device. Thread-safe.
class Measurer {
 public:
  Measurer(MeasurementStore& store, Statistics& statistics)
      : store_(store), statistics_(statistics) {}

  /// Measures what the question needs, if that is due and the device is free. Throws Error.
  void measureIfDue(const PlanRequest& request, Measuring measuring);

  /// The known measurements after that. Empty if not even the undivided kernels could be measured.
  /// Throws Error.
  Measurements measurements(const PlanRequest& request, Measuring measuring);

  /// Whether to measure before answering. REQUIRES: the store's lock.
  bool mustMeasure(const PlanRequest& request,
                   Measuring measuring,
                   const Known& known,
                   const KnownQuestion& asked);

  /// Counts the request's calls, which pay for measuring. REQUIRES: the store's lock.
  void addCalls(const PlanRequest& request, KnownQuestion& asked);
  /// Counts convolutions that were not looked at one by one; they pay for measuring, too.
  void addTime(double timeMs) { budget_.addTime(timeMs); }

 private:
  using Clock = KnownQuestion::Clock;
  struct Begun {
    Begun(const PlanRequest& request, const BenchmarkRequest& benchmark, KnownBefore before)
        : measurement(request, benchmark, std::move(before)) {}
    OngoingMeasurement measurement;
    Clock::time_point wanted{};  ///< when a call wanted it last
    double keptMs = 0;           ///< the time spent when its findings were kept
  };
  /// The latest begun is last. Only the thread that has reserved the device uses its list.
  using Ongoing = std::list<Begun>;

  bool isToBeMeasured(const PlanRequest& request, Measuring measuring);
  /// Measures all at once. A thread that has waited for the device long enough has not reserved it.
  void measure(const PlanRequest& request, bool isReserved);
  bool hasFailed(const PlanRequest& request) const;
  void measureSlice(const PlanRequest& request);
  /// Null if another problem's measurement comes first.
  Begun* ongoingOf(const PlanRequest& request, const BenchmarkRequest& benchmark);
  Ongoing& ongoingOn(int device);
  KnownBefore knownBefore(const PlanRequest& request);
  void conclude(const PlanRequest& request,
                BenchmarkResult result,
                const std::optional<Kernel>& own,
                std::string why,
                const KnownBefore& before);
  /// How many times over it pays to measure the problem now. REQUIRES: the store's lock.
  double payback(const PlanRequest& request, const KnownQuestion& asked, double callsMs) const;

  MeasurementStore& store_;
  Statistics& statistics_;
  MeasuringBudget budget_;
  MeasuringQueue queue_;
  DeviceReservations devices_;
  ForkMutex ongoingMutex_;
  std::map<int, Ongoing> ongoing_;  ///< by device
};

}  // namespace ucudnn
