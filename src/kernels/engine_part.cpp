#include "kernels/engine_part.hpp"

#if UCUDNN_HAS_ENGINES

#include "kernels/blocks.hpp"
#include "kernels/channels_last.hpp"
#include "kernels/folds.hpp"
#include "kernels/gradient_sum.hpp"
#include "kernels/slices.hpp"
#include "kernels/sums.hpp"
#include "kernels/tiles.hpp"

namespace ucudnn {
namespace {

void require(bool exists, const char* otherwise) {
  if (!exists) throw Error(CUDNN_STATUS_NOT_SUPPORTED, otherwise);
}

std::vector<Part> partsOf(const Problem& problem, const EngineConfiguration& value) {
  std::vector<Part> parts = value.splits != 1 ? cutToSplit(problem, value.splits)
                            : value.sums != 1 ? cutToSum(problem, value.sums)
                                              : cutInTiles(problem, value.tiles);
  require(!parts.empty(), "the problem can't be cut into so many parts");
  return parts;
}

}  // namespace

Copying copyingOf(const Problem& problem, const EngineConfiguration& value) {
  if (value.blocks == 1) {
    require(ChannelsLast::exists(problem, value.bands, value.folds),
            "the problem has not so many bands or columns");
    return ChannelsLast(problem, value.bands, value.folds);
  }
  require(Blocking::exists(problem, value.blocks, value.last != 0), "there are no such blocks");
  return Blocking(problem, value.blocks, value.last != 0);
}

bool sumsGradients(const Problem& problem, const EngineConfiguration& value) noexcept {
  return problem.operation == Operation::kBackwardFilter && value.blocks == 1 &&
         (value.bands > 1 || value.folds > 1);
}

std::size_t outputCopyBytes(const Problem& problem, const EngineConfiguration& value) {
  if (value.blocks == 0 || problem.operation == Operation::kBackwardFilter) return 0;
  return copyingOf(problem, value).copies().bytesOf(outputOf(problem.operation));
}

EnginePart::EnginePart(const Problem& all, const EngineConfiguration& value)
    : whole(all),
      parts(partsOf(all, value)),
      problem(parts.front().problem),
      engineAdds(all.operation != Operation::kBiasActivationForward),
      addsUp(parts.back().offsets.adds) {
  if (value.splits != 1) {
    engineAdds = addsUp = false;
    ownBytes = roundUpToAlignment(problem.wBytes()) + GradientSum::bytes(problem);
  } else if (value.sums != 1) {
    problem = inFloat(problem);
    ownBytes = CopiedTensors(problem).bytes();
  } else if (value.blocks != 0) {
    const Copying copying = copyingOf(all, value);
    problem = copying.problem();
    ownBytes = copying.copies().bytes();
    if (sumsGradients(all, value)) {
      addsUp = engineAdds = !isRounded(all.wType) && copying.bands() > 1;
      if (isRounded(all.wType))
        ownBytes = roundUpToAlignment(ownBytes) + GradientSum::bytes(problem);
    } else {
      const bool writesY = all.operation == Operation::kForward && !copying.copies().hasY();
      engineAdds = engineAdds && (isRounded(all.xType) || writesY);
    }
  } else if (value.folds != 1) {
    require(Folding::exists(all, value.folds), "the problem can't fold so many columns");
    const Folding folding(all);
    problem = folding.folded;
    ownBytes = folding.bytes;
  }
}

}  // namespace ucudnn

#endif
