#include "context/host_pass.hpp"

#include <algorithm>
#include <string>

#include "context/tile_kernels.hpp"
#include "kernels/factor.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

/// A small call as a pass.
class SmallPass {
 public:
  explicit SmallPass(const SmallCall& call) : call_(call) {
    for (const SmallCall::Tensor& tensor : call) add(tensor, &tensor + 1 == call.end());
    pass_.sizes = pass_.tensors[indexes_[call.whole]].layout.sizes;
    cut();
  }

  const Pass& pass() const noexcept { return pass_; }
  const std::vector<void*>& pointers() const noexcept { return pointers_; }
  /// Which of the pass's tensors an operand is.
  const std::vector<std::size_t>& indexes() const noexcept { return indexes_; }
  std::int32_t type() const noexcept { return type_; }

 private:
  /// A tensor that is named twice is copied once.
  void add(const SmallCall::Tensor& named, bool isOutput) {
    PassTensor tensor = HostPass::read(named.operand.descriptor);
    if (isOutput) type_ = tensor.type;
    const bool isRead = !isOutput || valueOf(call_.beta, type_) != 0;
    for (std::size_t i = 0; i < pointers_.size(); ++i) {
      PassTensor& known = pass_.tensors[i];
      if (pointers_[i] != named.operand.pointer || !(known.layout == tensor.layout)) continue;
      known.isRead = known.isRead || isRead;
      known.isWritten = known.isWritten || isOutput;
      indexes_.push_back(i);
      return;
    }
    tensor.place = placeOf(named.operand.pointer);
    tensor.isRead = isRead;
    tensor.isWritten = isOutput;
    indexes_.push_back(pass_.tensors.size());
    pass_.tensors.push_back(tensor);
    pointers_.push_back(named.operand.pointer);
    mayRepeat_.push_back(named.mayRepeat);
  }

  /// An output in half or bfloat16 is not added to: each addition would be rounded.
  void cut() {
    const int dimensions = pass_.tensors.front().layout.dimensions;
    for (const PassTensor& tensor : pass_.tensors)
      if (tensor.layout.dimensions != dimensions)
        throw Error(CUDNN_STATUS_BAD_PARAM, "its tensors' numbers of dimensions differ");
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimensions); ++axis) {
      if ((call_.axes >> axis & 1U) == 0) continue;
      bool isRounded = false;
      for (std::size_t i = 0; i < pass_.tensors.size(); ++i) {
        PassTensor& tensor = pass_.tensors[i];
        const std::int32_t size = tensor.layout.sizes[axis];
        tensor.isCut[axis] = size == pass_.sizes[axis];
        if (!tensor.isCut[axis] && !(mayRepeat_[i] && size == 1))
          throw Error(CUDNN_STATUS_BAD_PARAM, "its tensors' sizes differ");
        if (!tensor.isCut[axis] && tensor.isWritten && ucudnn::isRounded(tensor.type))
          isRounded = true;
      }
      if (isRounded)
        for (PassTensor& tensor : pass_.tensors) tensor.isCut[axis] = false;
      else
        pass_.axes.push_back(axis);
    }
  }

  const SmallCall& call_;
  Pass pass_;
  std::int32_t type_ = 0;  ///< of the output
  std::vector<void*> pointers_;
  std::vector<bool> mayRepeat_;
  std::vector<std::size_t> indexes_;
};

bool isAnyNull(const SmallCall& call) noexcept {
  return call.beta == nullptr || std::any_of(call.begin(), call.end(), [](const auto& tensor) {
           return tensor.operand.descriptor == nullptr || tensor.operand.pointer == nullptr;
         });
}

bool isAnyOnHost(const SmallCall& call) {
  return std::any_of(call.begin(), call.end(), [](const auto& tensor) {
    return placeOf(tensor.operand.pointer) != Place::kDevice;
  });
}

}  // namespace

std::optional<cudnnStatus_t> HostPass::run(Context& context,
                                           const SmallCall& call,
                                           const RunOperands& run) noexcept {
  try {
    if (isAnyNull(call) || !context.followDevice() || !isAnyOnHost(call)) return std::nullopt;
    const SmallPass small(call);
    const DeviceScope scope(context.now_->device);
    std::vector<Operand> operands(small.indexes().size());
    return HostPass::run(
        context, call.name, small.pass(), small.pointers(), [&](const PassPart& part) {
          for (std::size_t i = 0; i < operands.size(); ++i)
            operands[i] = part.tensors[small.indexes()[i]];
          return run(operands.data(), part.adds ? Factor::one(small.type()).get() : call.beta);
        });
  } catch (const Error& error) {
    logWarn("{} on host memory fails: {}", call.name, error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    return CUDNN_STATUS_ALLOC_FAILED;
  } catch (const std::exception& error) {
    logWarn("{} on host memory fails: {}", call.name, error.what());
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
}

cudnnStatus_t HostPass::run(Context& context,
                            const char* name,
                            const Pass& pass,
                            const std::vector<void*>& pointers,
                            const RunPart& run) {
  Staging& staging = *context.now_->staging;
  const CallStream stream = streamOf(context.handle_);
  const std::lock_guard lock(staging.mutex());
  const std::shared_ptr<const PassPlan> plan = findPlan(context, name, pass, stream);
  Lane& lane = stream.capturing ? laneOfCapture(stream) : staging.lane();
  lane.reserve(plan->bytes(), stream.capturing);
  return runPass(*plan, pointers, stream.stream, staging, lane, run);
}

std::shared_ptr<const PassPlan> HostPass::findPlan(Context& context,
                                                   const char* name,
                                                   const Pass& pass,
                                                   const CallStream& stream) {
  const std::shared_ptr<const PassPlan>* const known = context.passPlans_.find(pass);
  if (stream.capturing) checkCapture(stream, pass.isPageable(), known != nullptr);
  if (known != nullptr) return *known;
  Staging& staging = *context.now_->staging;
  staging.prepare();
  const TileKernels kernels{
      [](const Problem& part, std::size_t bytes) { return tileMs(part, bytes); },
      [&](const Problem& part) {
        return leastTileWorkspace(context.handle_, context.settings(), part);
      }};
  std::shared_ptr<const PassPlan> plan = planPass(
      name, pass, staging.link(), staging.budget(context.settings().deviceMemoryBytes, 0), kernels);
  logInfo("{} on host memory: {} parts, {} bytes, {} ms",
          name,
          plan->steps().size(),
          plan->bytes(),
          plan->predictedMs());
  return context.passPlans_[pass] = std::move(plan);
}

PassTensor HostPass::read(cudnnTensorDescriptor_t descriptor) {
  PassTensor tensor;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int, CUDNN_DIM_MAX> sizes{};
  std::array<int, CUDNN_DIM_MAX> strides{};
  int dimensions = 0;
  UCUDNN_CHECK_CUDNN(cudnn().getTensorNdDescriptor(
      descriptor, CUDNN_DIM_MAX, &type, &dimensions, sizes.data(), strides.data()));
  tensor.type = type;
  Layout& layout = tensor.layout;
  layout.dimensions = dimensions;
  layout.elementBytes = elementBytes(type);
  if (layout.elementBytes == 0 || dimensions > Problem::kMaxDimensions)
    throw Error(CUDNN_STATUS_NOT_SUPPORTED, "a tensor's type, or its dimensions, are not served");
  std::copy_n(sizes.begin(), dimensions, layout.sizes.begin());
  std::copy_n(strides.begin(), dimensions, layout.strides.begin());
  if (layout.overlaps()) throw Error(CUDNN_STATUS_NOT_SUPPORTED, "a tensor's elements overlap");
  return tensor;
}

}  // namespace ucudnn
