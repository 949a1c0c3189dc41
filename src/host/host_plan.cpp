#include "host/host_plan.hpp"

#include <algorithm>

#include "support/alignment.hpp"

namespace ucudnn {
namespace {

Layout layoutOf(const Problem& problem, Tensor tensor) noexcept {
  return tensor == kTensorX   ? layoutOfX(problem)
         : tensor == kTensorW ? layoutOfW(problem)
                              : layoutOfY(problem);
}

/// Fills the steps of a plan.
class StepBuilder {
 public:
  explicit StepBuilder(HostPlan& plan) : plan_(plan), whole_(plan.whole) {}

  /// Adds the copies of each part's bias, if filters are cut.
  void addBiases() {
    if (!plan_.operands.bias || !plan_.tiles.isCut(kOuts)) return;
    const bool isDouble = plan_.operands.biasElementBytes == sizeof(double);
    const bool isHalf = plan_.operands.biasElementBytes == 2;
    const std::int32_t type = isDouble ? CUDNN_DATA_DOUBLE
                              : isHalf ? whole_.yType
                                       : std::int32_t{CUDNN_DATA_FLOAT};
    for (HostPlan::Shape& shape : plan_.shapes)
      shape.bias = makeBiasDescriptor(whole_, shape.problem.ySizes[1], type);
  }

  void add(const Visit& visit) {
    const Tile tile = plan_.tiles.tile(visit.index);
    HostPlan::Step step;
    step.visit = visit;
    step.adds = tile.adds;
    step.shape = shapeOf(tile.problem);
    if (whole_.operation == Operation::kBiasActivationForward && plan_.tiles.isCut(kOuts)) {
      const auto first =
          static_cast<std::size_t>(plan_.tiles.range(kOuts, visit.index[kOuts]).first);
      const auto perGroup = static_cast<std::size_t>(whole_.wSizes[0] / whole_.groups);
      step.biasOffset = whole_.groups > 1 ? first * perGroup : first;
    }
    for (const Tensor tensor : {kTensorX, kTensorW, kTensorY})
      if (plan_.slots.isStaged(tensor) && visit.uses[tensor].isNew) addLoads(step, tile, tensor);
    const Tensor output = outputTensorOf(whole_.operation);
    if (visit.isLast && plan_.slots.isStaged(output))
      step.store = partRows(tile, output, visit.uses[output].slot);
    plan_.steps.push_back(std::move(step));
  }

 private:
  std::size_t shapeOf(const Problem& tile) {
    const Problem problem = plan_.slots.inPlace(whole_, tile);
    for (std::size_t i = 0; i < plan_.shapes.size(); ++i)
      if (plan_.shapes[i].problem == problem) return i;
    plan_.shapes.push_back({problem, std::make_unique<ProblemDescriptors>(problem), nullptr});
    return plan_.shapes.size() - 1;
  }

  /// The offset of a row of a part in its slot. Rows of zeros may come before the part's own.
  std::size_t slotOffset(const Tile& tile, Tensor tensor, int slot, std::int32_t row) const {
    const Layout layout = layoutOf(tile.problem, tensor);
    const std::size_t dimension = 2 + plan_.tiles.tiling().spatial;
    return plan_.slots.offset(tensor, slot) +
           static_cast<std::size_t>(row) * static_cast<std::size_t>(layout.strides[dimension]) *
               layout.elementBytes;
  }

  std::vector<Rows> partRows(const Tile& tile, Tensor tensor, int slot) const {
    const TilePart& part = tile.parts[tensor];
    return rowsOf(part.sizes,
                  layoutOf(whole_, tensor),
                  part.offset,
                  layoutOf(tile.problem, tensor).strides,
                  slotOffset(tile, tensor, slot, part.before));
  }

  void addLoads(HostPlan::Step& step, const Tile& tile, Tensor tensor) {
    const int slot = step.visit.uses[tensor].slot;
    const bool isOutput = tensor == outputTensorOf(whole_.operation);
    if (tensor == haloTensorOf(whole_.operation))
      addHaloLoad(step, tile, tensor);
    else if (!isOutput || plan_.operands.readsOutput)
      step.loads.push_back({tensor, false, slot, partRows(tile, tensor, slot)});
    if (tensor != kTensorY || !plan_.operands.z) return;
    std::vector<Rows> rows = partRows(tile, tensor, slot);
    for (Rows& each : rows)
      each.slot += plan_.slots.offsetOfZ(slot) - plan_.slots.offset(kTensorY, slot);
    step.loads.push_back({tensor, true, slot, std::move(rows)});
  }

  /// Adds the load of a part. The rows that its neighbour's slot has are copied from there.
  void addHaloLoad(HostPlan::Step& step, const Tile& tile, Tensor tensor) {
    const Visit::Use& use = step.visit.uses[tensor];
    const std::size_t dimension = 2 + plan_.tiles.tiling().spatial;
    const Layout slotLayout = layoutOf(tile.problem, tensor);
    const Layout wholeLayout = layoutOf(whole_, tensor);
    TilePart part = tile.parts[tensor];
    std::vector<Rows> halo;
    addZeros(step, slotLayout, tile, tensor, 0, part.before);
    addZeros(step, slotLayout, tile, tensor, part.before + part.sizes[dimension], part.after);
    if (use.haloSlot >= 0) {
      TileIndex neighbour = step.visit.index;
      --neighbour[kBand];
      const Tile other = plan_.tiles.tile(neighbour);
      const Range mine = plan_.tiles.bandRows(step.visit.index[kBand]).rows;
      const Tiles::BandRows others = plan_.tiles.bandRows(neighbour[kBand]);
      const std::int32_t shared = std::clamp(others.rows.end() - mine.first, 0, mine.count);
      Problem::Sizes sizes = part.sizes;
      sizes[dimension] = shared;
      halo = rowsOf(
          sizes,
          layoutOf(other.problem, tensor),
          slotOffset(other, tensor, use.haloSlot, others.before + mine.first - others.rows.first),
          slotLayout.strides,
          slotOffset(tile, tensor, use.slot, part.before));
      part.sizes[dimension] -= shared;
      part.before += shared;
      part.offset += static_cast<std::size_t>(shared) *
                     static_cast<std::size_t>(wholeLayout.strides[dimension]) *
                     wholeLayout.elementBytes;
    }
    step.loads.push_back({tensor,
                          false,
                          use.slot,
                          rowsOf(part.sizes,
                                 wholeLayout,
                                 part.offset,
                                 slotLayout.strides,
                                 slotOffset(tile, tensor, use.slot, part.before)),
                          std::move(halo)});
  }

  void addZeros(HostPlan::Step& step,
                const Layout& slotLayout,
                const Tile& tile,
                Tensor tensor,
                std::int32_t first,
                std::int32_t count) {
    Problem::Sizes sizes = slotLayout.sizes;
    sizes[2 + plan_.tiles.tiling().spatial] = count;
    const std::size_t offset = slotOffset(tile, tensor, step.visit.uses[tensor].slot, first);
    for (const Rows& rows : rowsOf(sizes, slotLayout, offset, slotLayout.strides, offset))
      step.zeros.push_back(rows);
  }

  HostPlan& plan_;
  const Problem& whole_;
};

}  // namespace

TensorDescriptor makeBiasDescriptor(const Problem& problem,
                                    std::int32_t filters,
                                    std::int32_t type) {
  const Problem::Sizes sizes{1, filters, 1, 1, 1};
  const Problem::Sizes strides{filters, 1, 1, 1, 1};
  auto descriptor = makeOwned<TensorDescriptor>(cudnn().createTensorDescriptor);
  UCUDNN_CHECK_CUDNN(cudnn().setTensorNdDescriptor(descriptor.get(),
                                                   static_cast<cudnnDataType_t>(type),
                                                   problem.dimensions,
                                                   sizes.data(),
                                                   strides.data()));
  return descriptor;
}

HostPlan::HostPlan(const Problem& problem,
                   const HostOperands& itsOperands,
                   const Division& itsDivision)
    : whole(problem),
      operands(itsOperands),
      division(itsDivision),
      tiles(problem, itsDivision.tiling),
      slots(tiles, operands) {
  StepBuilder builder(*this);
  forEachVisit(tiles, [&](const Visit& visit) {
    builder.add(visit);
    return true;
  });
  builder.addBiases();
}

std::size_t HostPlan::biasBytes(const Problem& problem, const HostOperands& operands) noexcept {
  if (operands.bias.value_or(Place::kDevice) == Place::kDevice) return 0;
  return roundUpToAlignment(static_cast<std::size_t>(problem.ySizes[1]) *
                            operands.biasElementBytes);
}

std::string HostPlan::text() const {
  std::string text = std::to_string(steps.size()) + " tiles of";
  for (const Axis axis : {kSamples, kBand, kOuts, kIns})
    text += (axis == kSamples ? " " : " x ") + std::to_string(division.tiling.size[axis]) +
            (axis != kBand                                           ? ""
             : whole.dimensions == 5 && division.tiling.spatial == 0 ? " planes"
                                                                     : " rows");
  for (const Tensor tensor : {kTensorX, kTensorW, kTensorY})
    text += (tensor == kTensorX ? " in " : "+") + std::to_string(division.tiling.slots[tensor]);
  return text + " slots";
}

}  // namespace ucudnn
