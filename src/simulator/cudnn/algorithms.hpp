// The simulated algorithms: which there are, what each can do, needs and costs.
#pragma once

#include <cstddef>

#include "simulator/cudnn/problem.hpp"
#include "simulator/cudnn/profile_fields.hpp"

namespace ucudnn::simulator {

/// How an algorithm computes; the three operations number their algorithms differently.
enum class Method {
  kNone,             ///< in cuDNN's enumeration only
  kImplicitGemm,     ///< no workspace, ordinary units, slow
  kSplitGemm,        ///< backward filter's ALGO_3: implicit, with partial sums in the workspace
  kPrecomputedGemm,  ///< index tables or copies in another layout; the one that uses tensor cores
  kExplicitGemm,     ///< the whole unfolded input in memory
  kFft,
  kFftTiling,
  kWinograd,
  kWinogradNonfused,
};

/// How many algorithms cuDNN's enumeration has for the operation.
int algorithmCount(Operation operation);

/// kNone for numbers outside the enumeration.
Method methodOf(Operation operation, int algorithm);

/// False for the algorithms that cuDNN documents as not reproducible: backward data's ALGO_0,
/// backward filter's ALGO_0 and ALGO_3. (The simulator's own results are always reproducible.)
bool isDeterministic(Operation operation, int algorithm);

/// Whether the method can compute the problem: the limits of cuDNN's documentation.
bool isSupported(const ConvolutionProblem& problem, Method method);

/// Workspace by the formulas of the method. REQUIRES: isSupported.
std::size_t modelWorkspaceBytes(const ConvolutionProblem& problem, Method method);

/// Time on the device by the model. REQUIRES: isSupported.
double modelTimeMs(const ConvolutionProblem& problem, Method method, const DeviceModel& device);

/// How many kernels one call launches.
int launchCount(const ConvolutionProblem& problem, Method method);

/// The algorithm's cost by the profile or the model, which cuDNN's heuristics use; false when it
/// cannot compute the problem.
bool expectedCost(const ConvolutionProblem& problem,
                  int algorithm,
                  const DeviceModel& device,
                  Cost* cost);

/// The algorithm's real cost: as expected, unless times are random.
bool findCost(const ConvolutionProblem& problem,
              int algorithm,
              const DeviceModel& device,
              Cost* cost);

/// Bytes that a kernel moves which reads or writes the whole tensor once.
double tensorBytes(const TensorShape& shape);

/// Time of a kernel that does nothing but move `bytes`.
double memoryTimeMs(double bytes, const DeviceModel& device);

}  // namespace ucudnn::simulator
