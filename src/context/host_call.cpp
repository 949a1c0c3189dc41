#include "context/host_call.hpp"

#include <algorithm>
#include <optional>

#include "context/call_path.hpp"
#include "context/tile_kernels.hpp"
#include "host/pipeline.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

constexpr LayerId kAnyLayer = -1;
// A search whose winner's time becomes known is repeated, as another may win then. Times that are
// not known are hoped to be better than known ones, so that they become known where that may pay;
// in the end they are taken for worse.
constexpr int kSearches = 5;
constexpr double kHope = 0.95, kDoubt = 1.05;
// The first call that looks for times again.
constexpr std::uint32_t kFirstAgain = 4;

/// CUDA takes a null pointer for pageable memory.
void require(const void* tensor) {
  if (tensor == nullptr) throw Error(CUDNN_STATUS_BAD_PARAM, "a tensor is missing");
}

/// Where the call's tensors are. Throws Error.
HostOperands placesOf(const ConvolutionCall& call) {
  for (const void* tensor : {call.pointers.x, call.pointers.w, call.pointers.y}) require(tensor);
  HostOperands operands;
  operands.places = {placeOf(call.pointers.x), placeOf(call.pointers.w), placeOf(call.pointers.y)};
  if (call.fused == nullptr) return operands;
  require(call.fused->bias);
  operands.bias = placeOf(call.fused->bias);
  if (call.fused->z != nullptr) operands.z = placeOf(call.fused->z);
  return operands;
}

/// Whether the factors make the call read its output, or z.
void readFactors(const Problem& problem, const ConvolutionCall& call, HostOperands& operands) {
  const bool isZeroed = isZero(call.pointers.beta, problem);
  if (call.fused == nullptr)
    operands.readsOutput = !isZeroed;
  else if (isZeroed)
    operands.z.reset();
  else
    require(call.fused->z);
}

/// Reads the bias's type: it is cut with the filters. Returns false if it can't be.
bool readBias(const ConvolutionCall& call, HostOperands& operands) noexcept {
  if (call.fused == nullptr) return true;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int dimensions = 0;
  Problem::Sizes sizes{};
  Problem::Sizes strides{};
  if (cudnn().getTensorNdDescriptor(call.fused->biasDescriptor,
                                    Problem::kMaxDimensions,
                                    &type,
                                    &dimensions,
                                    sizes.data(),
                                    strides.data()) != CUDNN_STATUS_SUCCESS)
    return false;
  operands.biasElementBytes = elementBytes(type);
  return operands.biasElementBytes > 0 && strides[1] == 1;
}

bool areSeparate(const Problem& problem) {
  return !layoutOfX(problem).overlaps() && !layoutOfY(problem).overlaps();
}

}  // namespace

std::optional<cudnnStatus_t> HostCall::run(Context& context,
                                           Operation operation,
                                           const ConvolutionCall& call,
                                           LayerId layer) noexcept {
  try {
    if (call.execution != nullptr || !context.followDevice()) return std::nullopt;
    HostOperands operands = placesOf(call);
    if (!operands.isOnHost()) return std::nullopt;
    Problem& problem = context.problem_;
    const bool isKnown = problemOf(operation, call, problem) != nullptr;
    if (isKnown) readFactors(problem, call, operands);
    if (!isKnown || !readRest(call, problem) || !readBias(call, operands) ||
        !areSeparate(problem)) {
      logWarn("a {} on host memory is refused: its tensors can't be cut", toText(operation));
      return CUDNN_STATUS_NOT_SUPPORTED;
    }
    const DeviceScope scope(context.now_->device);
    return HostCall(context, problem, call, layer).run(operands);
  } catch (const Error& error) {
    logWarn("a {} on host memory fails: {}", toText(operation), error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    return CUDNN_STATUS_ALLOC_FAILED;
  } catch (const std::exception& error) {
    logWarn("a {} on host memory fails: {}", toText(operation), error.what());
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
}

bool HostCall::refuses(const Context& context, const ConvolutionPointers& pointers) noexcept {
  if (!context.now_->staging) return false;
  try {
    return placesOf({{}, pointers}).isOnHost();
  } catch (const std::exception&) {  // cuDNN says more
    return false;
  }
}

cudnnStatus_t HostCall::convolve(Context& context,
                                 const Problem& problem,
                                 const ConvolutionPointers& pointers,
                                 const void* bias) {
  const DeviceScope scope = context.useDevice();
  ConvolutionCall call{{}, pointers, nullptr, kAnyAlgorithm};
  BiasActivation fused;
  TensorDescriptor biasDescriptor;
  ActivationDescriptor activation;
  if (bias != nullptr) {
    biasDescriptor = makeBiasDescriptor(problem, problem.ySizes[1], problem.yType);
    activation = makeOwned<ActivationDescriptor>(cudnn().createActivationDescriptor);
    UCUDNN_CHECK_CUDNN(cudnn().setActivationDescriptor(
        activation.get(), modeOf(problem), CUDNN_NOT_PROPAGATE_NAN, 0));
    fused = {nullptr, nullptr, biasDescriptor.get(), bias, activation.get()};
    call.fused = &fused;
    call.algorithm = kFusedAlgorithm;
  }
  HostOperands operands = placesOf(call);
  readFactors(problem, call, operands);
  if (!operands.isOnHost() && !problem.isLarge()) {
    const ProblemDescriptors descriptors(problem);
    call.descriptors = descriptors.get();
    fused.zDescriptor = call.descriptors.y;
    fused.z = pointers.y;
    return CallPath::runOnDevice(context, problem.operation, call, kAnyLayer);
  }
  if (!context.now_->staging)
    throw Error(CUDNN_STATUS_NOT_SUPPORTED, "UCUDNN_DEVICE_MEMORY is not set");
  if (!readBias(call, operands)) return CUDNN_STATUS_NOT_SUPPORTED;
  fused.z = pointers.y;
  return HostCall(context, problem, call, kAnyLayer).run(operands);
}

cudnnStatus_t HostCall::run(const HostOperands& operands) {
  const CallStream stream = streamOf(context_.handle_);
  const std::lock_guard lock(staging().mutex());
  std::shared_ptr<const HostPlan> plan;
  if (stream.capturing) {
    plan = planForCapture(stream, operands);
  } else {
    staging().prepare();
    plan = findPlan(operands);
  }
  Lane& lane = stream.capturing ? laneOfCapture(stream) : staging().lane();
  lane.reserve(plan->bytes(), stream.capturing);
  return runOnHostTensors(
      *plan, call_, stream.stream, staging(), lane, [&](const ConvolutionCall& tile) {
        return CallPath::runOnDevice(context_, problem_.operation, tile, layer_);
      });
}

std::shared_ptr<const HostPlan> HostCall::planForCapture(const CallStream& stream,
                                                         const HostOperands& operands) const {
  const KnownHostPlan* const known = context_.hostPlans_.find({problem_, operands});
  checkCapture(stream, operands.isPageable(), known != nullptr && known->plan);
  return known->plan;
}

/// Makes an estimated plan anew, at calls ever farther apart, because its tiles' kernels may have
/// been measured meanwhile. Keeps it if all calls must give the same bits.
std::shared_ptr<const HostPlan> HostCall::findPlan(const HostOperands& operands) {
  KnownHostPlan& known = context_.hostPlans_[{problem_, operands}];
  const std::uint32_t calls = known.calls++;
  const bool mayChange = !known.measured && !context_.settings().deterministic;
  const bool isDue = calls >= kFirstAgain && (calls & (calls - 1)) == 0;
  if (known.plan && !(mayChange && isDue)) return known.plan;
  try {
    known.plan = makePlan(operands);
    known.measured = !knownMs_.empty();
  } catch (const std::exception&) {
    if (!known.plan) throw;
  }
  return known.plan;
}

/// The time of a tile's kernels is the one that the planner knows, else an estimate.
std::shared_ptr<const HostPlan> HostCall::makePlan(const HostOperands& operands) {
  const std::size_t biasBytes = HostPlan::biasBytes(problem_, operands);
  const DeviceBudget budget = staging().budget(context_.settings().deviceMemoryBytes, biasBytes);
  double unknown = 1;  // what an estimate is multiplied by
  std::unordered_map<Problem, std::size_t, ProblemHash> least;
  const TileKernels kernels{[&](const Problem& tile, std::size_t workspaceBytes) {
                              const auto known = knownMs_.find(tile);
                              if (known != knownMs_.end()) return known->second;
                              return tileMs(tile, workspaceBytes) * ratio_ * unknown;
                            },
                            [&](const Problem& tile) {
                              const auto [place, isNew] = least.emplace(tile, 0);
                              if (isNew)
                                place->second =
                                    leastTileWorkspace(context_.handle_, context_.settings(), tile);
                              return place->second;
                            }};
  const auto search = [&] {
    return std::make_shared<HostPlan>(
        problem_, operands, chooseDivision(problem_, operands, staging().link(), budget, kernels));
  };
  std::shared_ptr<const HostPlan> plan = search();
  for (int i = 0; i < kSearches && askForTime(*plan); ++i) {
    unknown = kHope;
    plan = search();
  }
  if (!knownMs_.empty()) {
    unknown = kDoubt;
    plan = search();
  }
  logInfo("{} N={} on host memory: {}, {} bytes, {} ms",
          problem_.text(),
          problem_.batch(),
          plan->text(),
          plan->bytes(),
          plan->division.predictedMs);
  return plan;
}

/// In the slots and the workspace that the plan has.
std::shared_ptr<const Plan> HostCall::measure(const HostPlan& plan, PlanRequest request) {
  staging().lane().reserve(plan.bytes(), false);
  loadFirstTile(plan, call_, streamOf(context_.handle_).stream, staging());
  const ConvolutionPointers pointers = firstTile(plan, call_, staging());
  const TensorBuffers buffers{const_cast<void*>(pointers.x),
                              const_cast<void*>(pointers.w),
                              const_cast<void*>(pointers.y),
                              pointers.workspace,
                              pointers.workspaceBytes};
  const bool isFree = plan.slots.isStaged(outputTensorOf(problem_.operation)) ||
                      (!plan.operands.readsOutput && call_.fused == nullptr);
  if (isFree) request.buffers = &buffers;
  return planner().plan(request);
}

/// Returns whether the time of the plan's tiles has become known.
bool HostCall::askForTime(const HostPlan& plan) {
  const HostPlan::Shape& shape = plan.shapes[plan.steps.front().shape];
  const Problem packed = plan.tiles.tile({}).problem;
  if (knownMs_.count(packed) > 0) return false;
  const Snapshot& now = *context_.now_;
  PlanRequest request = now.queryFor(shape.problem, plan.division.workspaceBytes, false);
  std::shared_ptr<const Plan> found;
  if (now.settings.benchmarkShare == kMeasureAlways)
    found = measure(plan, request);
  else
    found = planner().planWithoutMeasuring(request).value_or(nullptr);
  if (!found || !found->measured || found->predictedMs <= 0) return false;
  knownMs_[packed] = found->predictedMs;
  const double ratio = found->predictedMs / tileMs(packed);
  ratio_ = knownMs_.size() == 1 ? ratio : std::min(ratio_, ratio);
  return true;
}

}  // namespace ucudnn
