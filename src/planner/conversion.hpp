// Between the planner's neighbours: measurements to the optimizer's candidates and to the
// database's rows, and the optimizer's configuration to a plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmark/measurement.hpp"
#include "cache/database.hpp"
#include "cuda/error.hpp"
#include "optimizer/configuration.hpp"
#include "optimizer/policy.hpp"
#include "plan/plan.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// The time of one more launch in a plan. Kernels are timed among calls enqueued back to back, so
/// each time holds its own launch already; this much is kept so that equally fast configurations do
/// not differ by launches alone.
constexpr double kLaunchMs = 1e-4;

// Timings repeat within half a percent (median prediction error of misc/results/*.json, H200); two
// of them are compared.
constexpr double kSplitGain = 1.01;

// A plan that gains less does not replace the client's own kernel: a call by it costs the host as
// much more than one that is left alone, and times of short kernels differ by as much.
constexpr double kLeastGainMs = 5e-4;

// What is less a framework's allocator has anyway: PyTorch's hands out up to 10 MiB of blocks of
// 20, and for more it keeps the largest block that a plan asked for.
constexpr std::size_t kWorthSaving = std::size_t{16} << 20;

/// What paces the micro-batches of a plan.
enum class Pace {
  kHost,   ///< each is enqueued
  kDevice  ///< all are replayed, where that gains
};

/// REQUIRES: the group is of a configuration of these measurements.
const Measurement& measurementOf(const MicroBatches& group, const Measurements& measurements);

bool isDivided(const Configuration& configuration) noexcept;

/// Whether a call that repeats is replayed. REQUIRES: as `measurementOf`.
bool paysToReplay(const Configuration& configuration, const Measurements& measurements);

/// What a call takes that is not replayed. REQUIRES: the same.
double enqueuedMs(const Configuration& configuration, const Measurements& measurements);

/// The micro-batch sizes that the policy tries for a problem, ascending; the last is the
/// mini-batch. A filter gradient in half or bfloat16 is not split: each micro-batch would round
/// what it adds.
std::vector<int> sizesFor(const Problem& problem, BatchSizePolicy policy);

/// About how long a convolution takes that nobody has timed: rather too short, on an H200.
double estimatedMs(const Problem& problem);

/// What the database keeps a question under, behind the problem's own text and a space.
std::string toText(const QuestionKey& question);

/// Kernels are numbered by their place in the size's list, their times those at the pace. Where
/// only deterministic ones are asked for others are left out, and so are those whose error is not
/// within the largest that is allowed, and those that are not accurate at batch sizes below
/// `accurateBelow`.
CandidateTable candidates(const PlanRequest& request,
                          const Measurements& measurements,
                          int accurateBelow,
                          Pace pace);

/// Those measured at one batch size that need no more than the limit; a larger one may have been
/// measured as well, here or by another process.
std::vector<Measurement> kernelsWithin(const Measurements& measurements,
                                       int batch,
                                       std::size_t limitBytes);

StoredMeasurements toStored(const Problem& problem, const Measurements& measurements);

/// Adds or replaces kernels one by one.
void addMeasurements(SizeMeasurements& to, const SizeMeasurements& from);

/// Drops another question's engines: they decide nothing where no plan may have them, and are not
/// asked about.
void dropEngines(Measurements& measurements);

/// A kernel that cuDNN names, but can't make ready to run.
class RefusedKernel : public Error {
 public:
  RefusedKernel(const Error& error, int ofBatch, Kernel refused)
      : Error(error), batch(ofBatch), kernel(refused) {}
  int batch;
  Kernel kernel;
};

/// Chooses what a query names as the plan's algorithm: the fastest undivided one that is as
/// deterministic as the plan (naming a deterministic algorithm at the call asks for a deterministic
/// plan) and runs within the plan's own workspace, or else needs the least.
void nameAlgorithm(Plan& plan, const PlanRequest& request, const Measurements& measurements);

/// Builds the kernels. A query names no algorithm that is not deterministic where only those are
/// asked for. `enqueued`: what runs where the call is not replayed; null: the same.
/// REQUIRES: the configuration comes from `candidates` of the same request and pace. Throws
/// RefusedKernel, or another Error.
std::shared_ptr<const Plan> buildPlan(const PlanRequest& request,
                                      const Configuration& configuration,
                                      Pace pace,
                                      const Measurements& measurements,
                                      std::shared_ptr<const Plan> enqueued = nullptr);

/// The same plan, for all calls. Null: its engines need more workspace to add, or it borrows.
/// Throws Error.
std::shared_ptr<const Plan> forAllCalls(PreparedKernels& kernels, const Plan& plan);

}  // namespace ucudnn
