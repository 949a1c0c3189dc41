#include "context/context.hpp"

#include <algorithm>

#include "executor/equivalence.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// Clients without a limit of their own keep bytes / 4 in an int (CLIENTS, "At run time", 12).
constexpr std::size_t kMaximumDefaultLimit = (std::size_t{8} << 30) - kWorkspaceGranularity;

constexpr std::size_t roundDownWorkspace(std::size_t bytes) noexcept {
  return bytes / kWorkspaceGranularity * kWorkspaceGranularity;
}

/// Reads what bias_activation_forward has besides. False: not planned (z is not laid out as y is,
/// so that it cannot be cut in step).
bool readFused(const ConvolutionCall& call, Problem& problem) noexcept {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  double coefficient = 0;
  if (cudnnGetActivationDescriptor(call.fused->activation, &mode, &nan, &coefficient) !=
      CUDNN_STATUS_SUCCESS)
    return false;
  problem.activation = mode;
  if (call.pointers.beta == nullptr) return false;
  const double alpha2 = problem.xType == CUDNN_DATA_DOUBLE
                            ? *static_cast<const double*>(call.pointers.beta)
                            : *static_cast<const float*>(call.pointers.beta);
  problem.addsZ = alpha2 != 0 ? 1 : 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int dimensions = 0;
  Problem::Sizes sizes{};
  Problem::Sizes strides{};
  return cudnnGetTensorNdDescriptor(call.fused->zDescriptor,
                                    Problem::kMaxDimensions,
                                    &type,
                                    &dimensions,
                                    sizes.data(),
                                    strides.data()) == CUDNN_STATUS_SUCCESS &&
         type == problem.yType && dimensions == problem.dimensions && sizes == problem.ySizes &&
         strides == problem.yStrides;
}

}  // namespace

Context::Context(cudnnHandle_t handle, int device, Settings settings, Origin origin)
    : handle_(handle),
      device_(device),
      machine_(planner().machines().ofDevice(device)),
      origin_(origin) {
  setSettings(std::move(settings));
}

void Context::setSettings(Settings settings) {
  benchmarkDevices_ = benchmarkDevices(
      settings.benchmarkDevices, settings.allBenchmarkDevices, device_, planner().machines());
  std::shared_ptr<WorkspaceOwner> owner;
  if (settings.totalWorkspaceBytes > 0)
    owner = workspaceOwner({device_,
                            settings.totalWorkspaceBytes,
                            settings.totalWorkspacePolicy,
                            settings.batchSizePolicy,
                            settings.deterministic});
  hotPlans_.clear();
  owner_ = std::move(owner);
  settings_ = std::move(settings);
  defaultLimits_.clear();
}

PlanRequest Context::request(const Problem& problem,
                             std::size_t limitBytes,
                             bool deterministic) const {
  PlanRequest request;
  request.handle = handle_;
  request.machine = machine_;
  request.problem = problem;
  request.limitBytes = limitBytes;
  request.deterministic = deterministic || settings_.deterministic;
  request.settings = &settings_;
  request.benchmarkDevices = &benchmarkDevices_;
  return request;
}

/// The limit of a client that gives none: below 8 GiB, and within what was free when it was first
/// asked for.
std::size_t Context::defaultLimit(const Problem& problem) {
  const auto [place, isNew] = defaultLimits_.try_emplace(problem, 0);
  if (isNew) {
    std::size_t freeBytes = 0;
    std::size_t totalBytes = 0;
    UCUDNN_CHECK_CUDA(cudaMemGetInfo(&freeBytes, &totalBytes));
    place->second = roundDownWorkspace(
        std::min({settings_.defaultWorkspaceLimitBytes, kMaximumDefaultLimit, freeBytes}));
  }
  return place->second;
}

bool Context::isCapturing() const {
  cudaStream_t stream = nullptr;
  UCUDNN_CHECK_CUDNN(cudnnGetStream(handle_, &stream));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  // The legacy default stream cannot be asked while another stream is captured, and is never
  // captured itself.
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return true;
  }
  return status != cudaStreamCaptureStatusNone;
}

std::shared_ptr<const Plan> Context::planForQuery(const PlanRequest& request) {
  std::shared_ptr<const Plan> plan;
  if (isCapturing())
    plan = planner().planWithoutMeasuring(request).value_or(nullptr);
  else
    plan = planner().plan(request);
  if (plan) planner().setLimit(machine_, request.problem, request.limitBytes);
  return plan;
}

std::vector<AlgorithmPerformance> Context::algorithms(Operation operation,
                                                      const ConvolutionDescriptors& descriptors,
                                                      std::optional<std::size_t> limitBytes,
                                                      const TensorBuffers* buffers,
                                                      LayerId layer) {
  Problem problem;
  if (!readProblem(operation, descriptors, problem)) return {};
  if (ownsWorkspace()) {
    std::vector<AlgorithmPerformance> answer;
    if (!addToNetwork(problem, descriptors, layer, &answer)) return {};
    if (ownsWorkspace()) return answer;
  }
  PlanRequest query = request(problem, 0, false);
  query.limitBytes = limitBytes ? roundDownWorkspace(*limitBytes) : defaultLimit(problem);
  query.buffers = buffers;
  const std::shared_ptr<const Plan> plan = planForQuery(query);
  if (!plan) return {};

  const auto mathType = static_cast<cudnnMathType_t>(problem.mathType);
  std::vector<AlgorithmPerformance> answer;
  answer.push_back({plan->algorithm,
                    CUDNN_STATUS_SUCCESS,
                    static_cast<float>(plan->predictedMs),
                    roundUpWorkspace(plan->algorithmBytes),
                    plan->isDeterministic() ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC,
                    mathType});
  std::vector<Measurement> undivided = planner().undivided(query);
  std::sort(undivided.begin(), undivided.end(), [](const Measurement& a, const Measurement& b) {
    return a.timeMs < b.timeMs;
  });
  for (const Measurement& kernel : undivided) {
    const bool same = kernel.kernel.algorithm == answer.front().algorithm &&
                      roundUpWorkspace(kernel.workspaceBytes) == answer.front().memory;
    if (same || (query.deterministic && !kernel.deterministic)) continue;
    answer.push_back({kernel.kernel.algorithm,
                      CUDNN_STATUS_SUCCESS,
                      static_cast<float>(kernel.timeMs),
                      roundUpWorkspace(kernel.workspaceBytes),
                      kernel.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC,
                      mathType});
  }
  return answer;
}

std::optional<std::size_t> Context::workspaceBytes(Operation operation,
                                                   const ConvolutionDescriptors& descriptors,
                                                   int algorithm,
                                                   LayerId layer) {
  Problem problem;
  if (!readProblem(operation, descriptors, problem)) return std::nullopt;
  if (ownsWorkspace()) {
    if (!addToNetwork(problem, descriptors, layer, nullptr)) return std::nullopt;
    if (ownsWorkspace()) return 0;
  }
  const std::optional<std::size_t> queried = planner().limit(machine_, problem);
  const std::size_t limit = queried ? *queried : defaultLimit(problem);
  const auto plan = planForQuery(request(problem, limit, isDeterministic(operation, algorithm)));
  if (!plan) return std::nullopt;
  return roundUpWorkspace(plan->algorithmBytes);
}

/// The plan of the latest query's limit when the workspace at the call holds it; otherwise one
/// under that workspace. Without a query the workspace at the call is the limit. Empty: it would
/// have to be measured during a capture.
std::optional<std::shared_ptr<const Plan>> Context::lookUpPlan(const HotPlans::Key& key) {
  const bool capturing = isCapturing();
  const auto planWithin =
      [&](std::size_t limitBytes) -> std::optional<std::shared_ptr<const Plan>> {
    const PlanRequest wanted = request(key.problem, limitBytes, key.deterministic);
    if (capturing) return planner().planWithoutMeasuring(wanted);
    return planner().plan(wanted);
  };
  const std::size_t limit = planner().limit(machine_, key.problem).value_or(key.workspaceBytes);
  const auto plan = planWithin(limit);
  if (!plan || !*plan || (*plan)->workspaceBytes <= key.workspaceBytes) return plan;
  return planWithin(std::min(limit, key.workspaceBytes));
}

std::shared_ptr<const Plan> Context::planForCall(const HotPlans::Key& key,
                                                 std::uint64_t epoch) noexcept {
  try {
    std::shared_ptr<const Plan> plan;
    try {
      const DeviceScope scope = useDevice();
      const auto found = lookUpPlan(key);
      if (!found) return nullptr;
      if (*found && checkedPlans_.accepts(handle_, **found, key.workspaceBytes)) plan = *found;
    } catch (const std::exception& error) {
      logWarn("{} is left to cuDNN: {}", key.problem.text(), error.what());
    }
    hotPlans_.put(key, epoch, plan);
    return plan;
  } catch (...) {  // out of memory for the table, or for the warning
    return nullptr;
  }
}

cudnnStatus_t Context::convolve(Operation operation,
                                const ConvolutionCall& call,
                                LayerId layer) noexcept {
  HotPlans::Key& key = callsKey_;
  key.workspaceBytes = 0;
  if (!readProblem(operation, call.descriptors, key.problem) ||
      (call.fused != nullptr && !readFused(call, key.problem)))
    return bypass(operation, call);
  key.deterministic = isDeterministic(operation, call.algorithm);
  if (owner_ && !followDevice()) return bypass(operation, call);
  if (ownsWorkspace()) {
    HotPlans::Key owned = key;
    owned.layer = layer;
    if (const auto status = convolveInOwned(owned, call)) return *status;
  }
  key.workspaceBytes = call.pointers.workspace != nullptr ? call.pointers.workspaceBytes : 0;

  const std::uint64_t epoch = planner().epoch();
  const HotPlans::Entry* const hot = hotPlans_.find(key, epoch);
  if (hot != nullptr)
    return hot->plan ? runPlanned(key, *hot->plan, call, call) : bypass(operation, call);
  const std::shared_ptr<const Plan> plan = planForCall(key, epoch);
  return plan ? runPlanned(key, *plan, call, call) : bypass(operation, call);
}

cudnnStatus_t Context::runPlanned(const HotPlans::Key& key,
                                  const Plan& plan,
                                  const ConvolutionCall& call,
                                  const ConvolutionCall& clients) noexcept {
  int enqueued = 0;
  const cudnnStatus_t status = settings_.equivalenceTest && plan.isDivided()
                                   ? runTested(handle_, device_, plan, call, &enqueued)
                                   : runPlan(handle_, plan, call, &enqueued);
  if (status != CUDNN_STATUS_SUCCESS) return recover(key, plan, call, clients, status, enqueued);
  Statistics& statistics = planner().statistics();
  auto& counter = plan.isDivided() ? statistics.splitCalls : statistics.undividedCalls;
  counter.fetch_add(1, std::memory_order_relaxed);
  return status;
}

cudnnStatus_t Context::recover(const HotPlans::Key& key,
                               const Plan& plan,
                               const ConvolutionCall& call,
                               const ConvolutionCall& clients,
                               cudnnStatus_t refusal,
                               int enqueued) noexcept {
  cudnnStatus_t status = refusal;
  if (enqueued == 0 || isRepeatable(plan.problem, clients)) {
    status = bypass(plan.problem.operation, clients);
    // Where cuDNN alone refuses it too, the call is at fault and not the plan.
    if (enqueued == 0 && status != CUDNN_STATUS_SUCCESS) return status;
  } else if (!mayHaveRun(refusal)) {
    const Determinism determinism = settings_.deterministic ? Determinism::kRequired
                                    : key.deterministic     ? Determinism::kPreferred
                                                            : Determinism::kAny;
    if (completePlan(handle_, plan, call, enqueued, determinism) == CUDNN_STATUS_SUCCESS) {
      status = CUDNN_STATUS_SUCCESS;
      planner().statistics().splitCalls.fetch_add(1, std::memory_order_relaxed);
    }
  }
  giveUp(plan, refusal);
  return status;
}

void Context::giveUp(const Plan& plan, cudnnStatus_t refusal) noexcept {
  try {
    logWarn("{} N={}: {} was refused ({}): left to cuDNN",
            plan.problem.text(),
            plan.problem.batch(),
            toText(plan),
            cudnnGetErrorString(refusal));
    checkedPlans_.refuse(plan);
  } catch (const std::bad_alloc&) {  // it may be refused once more
  }
  hotPlans_.clear();
}

cudnnStatus_t Context::bypass(Operation operation, const ConvolutionCall& call) noexcept {
  planner().statistics().bypassedCalls.fetch_add(1, std::memory_order_relaxed);
  const cudnnStatus_t status =
      runNative(handle_, operation, ownsWorkspace() ? runnable(operation, call) : call);
  if (status == CUDNN_STATUS_SUCCESS) return status;
  Problem problem;
  if (!readProblem(operation, call.descriptors, problem) ||
      (call.fused != nullptr && !readFused(call, problem)))
    return status;
  return substitutes_.run(handle_, problem, call, settings_.deterministic).value_or(status);
}

std::shared_ptr<const Plan> Context::describePlan(const Problem& problem, std::size_t limitBytes) {
  return planner().plan(request(problem, limitBytes, false));
}

Measurements Context::describeCandidates(const Problem& problem) {
  return planner().measurements(request(problem, kMaximumDefaultLimit, false));
}

std::vector<Configuration> Context::describeFront(const Problem& problem) {
  return planner().front(request(problem, kMaximumDefaultLimit, false));
}

}  // namespace ucudnn
