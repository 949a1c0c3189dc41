#include "host/pass.hpp"

#include <algorithm>
#include <utility>

#include "kernels/engine_calls.hpp"
#include "support/alignment.hpp"

namespace ucudnn {
namespace {

/// The box of one step.
struct Box {
  Problem::Sizes first{}, count{};
};

Problem::Sizes partSizes(const PassTensor& tensor, const Problem::Sizes& box) noexcept {
  Problem::Sizes sizes = tensor.layout.sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (tensor.isCut[i]) sizes[i] = box[i];
  return sizes;
}

/// A part as kernels see it.
Layout partOf(const PassTensor& tensor, const Problem::Sizes& box) {
  Layout part = tensor.layout;
  part.sizes = partSizes(tensor, box);
  if (tensor.isStaged()) part.strides = packedLike(tensor.layout, part.sizes);
  return part;
}

std::int32_t partsAlong(const Pass& pass, const PassTiling& tiling, std::size_t axis) noexcept {
  return (pass.sizes[axis] + tiling.size[axis] - 1) / tiling.size[axis];
}

/// Kernels may read as many bytes at once as engines do.
bool areAligned(const Pass& pass, const PassTiling& tiling, const PassTensor& tensor) noexcept {
  return std::none_of(pass.axes.begin(), pass.axes.end(), [&](std::size_t axis) {
    const std::int64_t stepBytes = tiling.size[axis] * tensor.layout.strides[axis] *
                                   static_cast<std::int64_t>(tensor.layout.elementBytes);
    return tensor.isCut[axis] && partsAlong(pass, tiling, axis) > 1 &&
           stepBytes % kEngineAlignment != 0;
  });
}

/// Tensors on the device get slots if their parts would not be aligned, or if their strides would
/// differ from those in the slots of a tensor that has the same strides otherwise: cuDNN refuses
/// gradients whose strides are not those of their tensors.
Pass withPartsForKernels(Pass pass, const PassTiling& tiling) {
  for (PassTensor& tensor : pass.tensors)
    tensor.isMoved = tensor.place == Place::kDevice && !areAligned(pass, tiling, tensor);
  for (PassTensor& tensor : pass.tensors) {
    const auto isStagedTwin = [&](const PassTensor& other) {
      return other.isStaged() && other.layout == tensor.layout;
    };
    tensor.isMoved =
        tensor.isMoved ||
        (tensor.place == Place::kDevice &&
         packedLike(tensor.layout, partSizes(tensor, tiling.size)) != tensor.layout.strides &&
         std::any_of(pass.tensors.begin(), pass.tensors.end(), isStagedTwin));
  }
  return pass;
}

std::int64_t partsOf(const Pass& pass, const PassTiling& tiling, const PassTensor& tensor) {
  std::int64_t parts = 1;
  for (const std::size_t axis : pass.axes)
    if (tensor.isCut[axis]) parts *= partsAlong(pass, tiling, axis);
  return parts;
}

std::int64_t stepsOf(const Pass& pass, const PassTiling& tiling) {
  std::int64_t steps = 1;
  for (const std::size_t axis : pass.axes) steps *= partsAlong(pass, tiling, axis);
  return steps;
}

std::size_t slotsOf(const Pass& pass, const PassTiling& tiling, const PassTensor& tensor) {
  if (!tensor.isStaged()) return 0;
  if (!tensor.place) return 1;  // kernels follow each other
  return static_cast<std::size_t>(
      std::min<std::int64_t>(tiling.slots, partsOf(pass, tiling, tensor)));
}

std::size_t slotBytesOf(const PassTensor& tensor, const Problem::Sizes& box) {
  return roundUpToAlignment(partOf(tensor, box).bytes());
}

std::size_t slotBytesOf(const Pass& pass, const PassTiling& tiling) {
  std::size_t bytes = 0;
  for (const PassTensor& tensor : pass.tensors)
    bytes += slotsOf(pass, tiling, tensor) * slotBytesOf(tensor, tiling.size);
  return bytes;
}

/// The loops from the outermost to the innermost. Axes along which a tensor is not cut are
/// innermost: its part stays on the device until all steps have used it.
std::vector<std::size_t> loopsOf(const Pass& pass) {
  std::vector<std::size_t> loops = pass.axes;
  std::stable_partition(loops.begin(), loops.end(), [&](std::size_t axis) {
    return std::all_of(pass.tensors.begin(), pass.tensors.end(), [&](const PassTensor& tensor) {
      return tensor.isCut[axis] || !tensor.place;
    });
  });
  return loops;
}

void forEachBox(const Pass& pass,
                const PassTiling& tiling,
                const std::function<void(const Box&, const Problem::Sizes& index)>& visit) {
  const std::vector<std::size_t> loops = loopsOf(pass);
  Problem::Sizes index{};
  auto axis = loops.rend();
  do {
    Box box{{}, pass.sizes};
    for (const std::size_t each : loops) {
      box.first[each] = index[each] * tiling.size[each];
      box.count[each] = std::min(tiling.size[each], pass.sizes[each] - box.first[each]);
    }
    visit(box, index);
    for (axis = loops.rbegin(); axis != loops.rend(); ++axis) {
      if (++index[*axis] < partsAlong(pass, tiling, *axis)) break;
      index[*axis] = 0;
    }
  } while (axis != loops.rend());
}

TensorDescriptor describe(const PassTensor& tensor, const Layout& part) {
  if (tensor.isFilter) return nullptr;
  std::array<int, Problem::kMaxDimensions> strides{};
  std::transform(part.strides.begin(), part.strides.end(), strides.begin(), [](std::int64_t each) {
    return static_cast<int>(each);
  });
  auto descriptor = makeOwned<TensorDescriptor>(cudnn().createTensorDescriptor);
  UCUDNN_CHECK_CUDNN(cudnn().setTensorNdDescriptor(descriptor.get(),
                                                   static_cast<cudnnDataType_t>(tensor.type),
                                                   part.dimensions,
                                                   part.sizes.data(),
                                                   strides.data()));
  return descriptor;
}

}  // namespace

bool PassTensor::operator==(const PassTensor& other) const noexcept {
  return layout == other.layout && type == other.type && isCut == other.isCut &&
         place == other.place && isRead == other.isRead && isWritten == other.isWritten &&
         isFilter == other.isFilter && isMoved == other.isMoved;
}

bool Pass::isOnHost() const noexcept {
  return std::any_of(
      tensors.begin(), tensors.end(), [](const PassTensor& each) { return each.isCopied(); });
}

bool Pass::isPageable() const noexcept {
  return std::any_of(tensors.begin(), tensors.end(), [](const PassTensor& each) {
    return each.place == Place::kPageable;
  });
}

std::size_t Pass::hash() const noexcept {
  std::size_t hash = tensors.size();
  for (const PassTensor& each : tensors) {
    for (const std::int32_t size : each.layout.sizes)
      hash = hash * 31 + static_cast<std::size_t>(size);
    hash = hash * 31 + (each.place ? static_cast<std::size_t>(*each.place) : 7);
  }
  for (const PassConvolution& each : convolutions) hash = hash * 31 + each.problem.hash();
  return hash;
}

PassPlan::PassPlan(Pass pass, const PassTiling& tiling, std::size_t workspaceBytes, double ms)
    : pass_(withPartsForKernels(std::move(pass), tiling)),
      workspaceBytes_(workspaceBytes),
      predictedMs_(ms) {
  struct Slots {
    std::size_t first = 0, count = 0, offset = 0, bytes = 0;
    std::int64_t part = -1, parts = 0;
  };
  std::vector<Slots> all;
  for (const PassTensor& tensor : pass_.tensors) {
    const std::size_t count = slotsOf(pass_, tiling, tensor);
    all.push_back({slotCount_, count, slotBytes_, slotBytesOf(tensor, tiling.size)});
    slotCount_ += count;
    slotBytes_ += count * all.back().bytes;
  }
  const std::vector<std::size_t> loops = loopsOf(pass_);
  forEachBox(pass_, tiling, [&](const Box& box, const Problem::Sizes& index) {
    Step step;
    step.shape = findShape(box.count);
    for (std::size_t i = 0; i < pass_.tensors.size(); ++i) {
      const PassTensor& tensor = pass_.tensors[i];
      Slots& slots = all[i];
      std::int64_t part = 0;
      Use use;
      for (const std::size_t axis : loops) {
        if (!tensor.isCut[axis]) continue;
        part = part * partsAlong(pass_, tiling, axis) + index[axis];
        use.offset += static_cast<std::size_t>(box.first[axis]) *
                      static_cast<std::size_t>(tensor.layout.strides[axis]) *
                      tensor.layout.elementBytes;
      }
      use.isNew = part != slots.part;
      if (use.isNew && !steps_.empty()) steps_.back().uses[i].isLast = true;
      slots.parts += use.isNew ? 1 : 0;
      slots.part = part;
      if (slots.count > 0) {
        const std::size_t slot = static_cast<std::size_t>(slots.parts - 1) % slots.count;
        use.slot = slots.first + slot;
        use.slotOffset = slots.offset + slot * slots.bytes;
      }
      step.adds = step.adds || (tensor.isWritten && tensor.place && !use.isNew);
      step.uses.push_back(use);
    }
    steps_.push_back(std::move(step));
  });
  for (Use& use : steps_.back().uses) use.isLast = true;
}

std::size_t PassPlan::findShape(const Problem::Sizes& box) {
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    if (shapes_[i].box == box) return i;
  Shape shape;
  shape.box = box;
  for (const PassTensor& tensor : pass_.tensors) {
    shape.parts.push_back(partOf(tensor, box));
    shape.descriptors.push_back(describe(tensor, shape.parts.back()));
  }
  shapes_.push_back(std::move(shape));
  return shapes_.size() - 1;
}

namespace {

// Parts are made smaller down to this number of steps where larger ones fit.
constexpr std::int64_t kManySteps = 512;
// More steps have to be faster by that.
constexpr double kStepsGain = 0.99;
// What the kernels of a step take beside their bytes.
constexpr double kStepMs = 0.02;

/// Tries sizes of parts, the largest first.
class PassSearch {
 public:
  PassSearch(Pass pass, const Link& link, const DeviceBudget& budget, const TileKernels& kernels)
      : pass_(std::move(pass)), link_(link), budgetBytes_(budget.forTiles()), kernels_(kernels) {}

  void run() {
    PassTiling tiling{pass_.sizes};
    tryOne(tiling);
    for (const std::size_t axis : pass_.axes) {
      const std::int32_t all = pass_.sizes[axis];
      for (std::int32_t parts = 2; parts < 2 * all; parts += parts) {
        for (const std::int32_t each : {parts, parts + parts / 2}) {
          tiling.size[axis] = std::max(1, (all + each - 1) / each);
          tryOne(tiling);
        }
      }
      tiling.size[axis] = 1;
    }
  }

  bool isFound() const noexcept { return best_.size[0] > 0; }
  std::size_t leastBytes() const noexcept { return leastBytes_; }
  std::shared_ptr<const PassPlan> plan() const {
    return std::make_shared<const PassPlan>(pass_, best_, workspaceBytes_, ms_);
  }

 private:
  /// With two slots where they fit: copies run beside kernels.
  void tryOne(PassTiling tiling) {
    const std::int64_t steps = stepsOf(pass_, tiling);
    if (isFound() && steps > kManySteps) return;
    pass_ = withPartsForKernels(std::move(pass_), tiling);
    tiling.slots = 2;
    if (slotBytesOf(pass_, tiling) > budgetBytes_) tiling.slots = 1;
    if (isFound() && tiling.slots == 1) return;
    const std::size_t slotBytes = slotBytesOf(pass_, tiling);
    const bool isOut = slotBytes > budgetBytes_;
    if (isOut && slotBytes >= leastBytes_) return;
    std::size_t workspaceBytes = isOut ? 0 : workspaceFor(tiling, budgetBytes_ - slotBytes);
    const double ms = isOut ? 0 : msOf(tiling, workspaceBytes);
    if (isFound() && (steps > steps_ ? ms >= ms_ * kStepsGain : ms >= ms_)) return;
    const std::size_t least = leastWorkspace(tiling);
    if (least == kNoWorkspace) return;
    leastBytes_ = std::min(leastBytes_, slotBytes + least);
    if (slotBytes + least > budgetBytes_) return;
    workspaceBytes_ = std::max(workspaceBytes, least);
    best_ = tiling;
    steps_ = steps;
    ms_ = ms;
  }

  /// A convolution of a full part, or of the last ones.
  Problem problemOf(const PassConvolution& convolution, const Problem::Sizes& box) const {
    Problem problem = convolution.problem.withBatch(box[0]);
    problem.xStrides = partOf(pass_.tensors[convolution.x], box).strides;
    problem.yStrides = partOf(pass_.tensors[convolution.y], box).strides;
    return problem;
  }

  std::size_t workspaceFor(const PassTiling& tiling, std::size_t leftBytes) const {
    std::size_t most = 0;
    for (const PassConvolution& each : pass_.convolutions)
      most = std::max(most, usefulWorkspace(problemOf(each, tiling.size)));
    return roundDownToAlignment(std::min(leftBytes, most));
  }

  std::size_t leastWorkspace(const PassTiling& tiling) const {
    std::size_t most = 0;
    Problem::Sizes last = tiling.size;
    if (!pass_.convolutions.empty() && pass_.sizes[0] % tiling.size[0] != 0)
      last[0] = pass_.sizes[0] % tiling.size[0];
    for (const PassConvolution& each : pass_.convolutions)
      for (const Problem::Sizes& box : {tiling.size, last})
        most = std::max(most, kernels_.leastWorkspace(problemOf(each, box)));
    return most == kNoWorkspace ? most : roundUpToAlignment(most);
  }

  /// What a step's copies take in each direction, and its kernels; and what is copied once.
  double msOf(const PassTiling& tiling, std::size_t workspaceBytes) const {
    double copies[2] = {0, 0}, once = 0, kernels = kStepMs;
    const std::int64_t steps = stepsOf(pass_, tiling);
    for (const PassTensor& tensor : pass_.tensors) {
      const Layout part = partOf(tensor, tiling.size);
      kernels += static_cast<double>(part.bytes()) / link_.deviceBytesPerMs;
      if (!tensor.isCopied()) continue;
      const std::int64_t parts = partsOf(pass_, tiling, tensor);
      for (const std::size_t direction : {0, 1}) {
        if (direction == 0 ? !tensor.isRead : !tensor.isWritten) continue;
        const double ms = copyMs(tensor, part, direction);
        if (parts == steps)
          copies[direction] += ms;
        else
          once += ms * static_cast<double>(parts);
      }
    }
    for (const PassConvolution& each : pass_.convolutions)
      kernels += kernels_.ms(problemOf(each, tiling.size), workspaceBytes);
    const double all = copies[0] + kernels + copies[1];
    const double next = tiling.slots > 1 ? std::max({copies[0], kernels, copies[1]}) : all;
    return once + all + static_cast<double>(steps - 1) * next;
  }

  double copyMs(const PassTensor& tensor, const Layout& part, std::size_t direction) const {
    const double rate = tensor.isMoved                     ? link_.deviceBytesPerMs / 2
                        : tensor.place == Place::kPageable ? link_.pageableBytesPerMs
                                                           : link_.bytesPerMs[direction];
    double ms = static_cast<double>(part.bytes()) / rate;
    for (const Rows& rows : rowsOf(part.sizes, tensor.layout, 0, part.strides, 0))
      ms += link_.copyMs + static_cast<double>(rows.height) * link_.rowMs;
    return ms;
  }

  Pass pass_;
  const Link& link_;
  const std::size_t budgetBytes_;
  const TileKernels& kernels_;
  PassTiling best_;
  std::int64_t steps_ = 0;
  std::size_t workspaceBytes_ = 0, leastBytes_ = kNoWorkspace;
  double ms_ = 0;
};

}  // namespace

std::shared_ptr<const PassPlan> planPass(const char* name,
                                         const Pass& pass,
                                         const Link& link,
                                         const DeviceBudget& budget,
                                         const TileKernels& kernels) {
  PassSearch search(pass, link, budget, kernels);
  search.run();
  if (search.isFound()) return search.plan();
  if (search.leastBytes() == kNoWorkspace)
    throw Error(CUDNN_STATUS_NOT_SUPPORTED,
                std::string("cuDNN has no algorithm for parts of ") + name);
  throw Error(CUDNN_STATUS_ALLOC_FAILED,
              std::string("the smallest parts of ") + name + " on host memory need " +
                  std::to_string(search.leastBytes() + budget.otherBytes) +
                  " bytes of device memory, and UCUDNN_DEVICE_MEMORY is " +
                  std::to_string(budget.bytes));
}

}  // namespace ucudnn
