#include "host/pass_run.hpp"

#include "host/transfers.hpp"

namespace ucudnn {
namespace {

/// One pass under way.
class PassRun {
 public:
  PassRun(const PassPlan& plan,
          const std::vector<void*>& pointers,
          Transfers& transfers,
          const RunPart& run)
      : plan_(plan),
        pointers_(pointers),
        transfers_(transfers),
        run_(run),
        inUse_(plan.slotCount(), false),
        operands_(pointers.size()) {}

  cudnnStatus_t run() {
    using Step = PassPlan::Step;
    return runSteps(
        plan_.steps(),
        [this](const Step& step) { load(step); },
        [this](const Step& step) { return compute(step); },
        [this](const Step& step) { store(step); },
        [this](const Step& former, const Step& step) { return needsSlotOf(former, step); });
  }

 private:
  using Use = PassPlan::Use;

  /// Calls `visit(tensor, use, index)` for the tensors that have slots.
  template <typename Visit>
  void forEachStaged(const PassPlan::Step& step, Visit visit) {
    for (std::size_t i = 0; i < step.uses.size(); ++i) {
      const PassTensor& tensor = plan_.pass().tensors[i];
      if (tensor.isStaged()) visit(tensor, step.uses[i], i);
    }
  }

  bool needsSlotOf(const PassPlan::Step& former, const PassPlan::Step& step) {
    bool needs = false;
    forEachStaged(step, [&](const PassTensor& tensor, const Use& use, std::size_t i) {
      needs = needs || (tensor.isCopied() && tensor.isWritten && use.isNew &&
                        former.uses[i].slot == use.slot);
    });
    return needs;
  }

  std::vector<Rows> rowsOf(const PassPlan::Step& step, const Use& use, std::size_t i) const {
    const Layout& part = plan_.shapeOf(step).parts[i];
    return ucudnn::rowsOf(
        part.sizes, plan_.pass().tensors[i].layout, use.offset, part.strides, use.slotOffset);
  }

  void load(const PassPlan::Step& step) {
    forEachStaged(step, [&](const PassTensor& tensor, const Use& use, std::size_t i) {
      if (!tensor.isCopied() || !tensor.isRead || !use.isNew) return;
      if (inUse_[use.slot])
        transfers_.await(tensor.isWritten ? Transfers::kDrained : Transfers::kUsed,
                         use.slot,
                         transfers_.reading());
      for (const Rows& rows : rowsOf(step, use, i))
        transfers_.copyIn(rows, static_cast<const char*>(pointers_[i]), *tensor.place);
      transfers_.note(Transfers::kFilled, use.slot, transfers_.reading());
    });
  }

  cudnnStatus_t compute(const PassPlan::Step& step) {
    forEachStaged(step, [&](const PassTensor& tensor, const Use& use, std::size_t) {
      if (!tensor.isCopied() || !use.isNew) return;
      if (tensor.isRead)
        transfers_.await(Transfers::kFilled, use.slot, transfers_.stream());
      else if (inUse_[use.slot])
        transfers_.await(Transfers::kDrained, use.slot, transfers_.stream());
      inUse_[use.slot] = true;
    });
    const PassPlan::Shape& shape = plan_.shapeOf(step);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Use& use = step.uses[i];
      char* const memory = plan_.pass().tensors[i].isStaged()
                               ? transfers_.arena() + use.slotOffset
                               : static_cast<char*>(pointers_[i]) + use.offset;
      operands_[i] = {shape.descriptors[i].get(), memory};
    }
    const cudnnStatus_t status = run_({operands_.data(),
                                       step.adds,
                                       transfers_.arena() + plan_.slotBytes(),
                                       plan_.workspaceBytes()});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    forEachStaged(step, [&](const PassTensor& tensor, const Use& use, std::size_t) {
      if (tensor.isCopied()) transfers_.note(Transfers::kUsed, use.slot, transfers_.stream());
    });
    return status;
  }

  void store(const PassPlan::Step& step) {
    forEachStaged(step, [&](const PassTensor& tensor, const Use& use, std::size_t i) {
      if (!tensor.isCopied() || !tensor.isWritten || !use.isLast) return;
      transfers_.await(Transfers::kUsed, use.slot, transfers_.writing());
      for (const Rows& rows : rowsOf(step, use, i))
        transfers_.copyOut(rows, static_cast<char*>(pointers_[i]), *tensor.place);
      transfers_.note(Transfers::kDrained, use.slot, transfers_.writing());
    });
  }

  const PassPlan& plan_;
  const std::vector<void*>& pointers_;
  Transfers& transfers_;
  const RunPart& run_;
  std::vector<bool> inUse_;  ///< slots that this call has used
  std::vector<Operand> operands_;
};

}  // namespace

cudnnStatus_t runPass(const PassPlan& plan,
                      const std::vector<void*>& pointers,
                      cudaStream_t stream,
                      Staging& staging,
                      Lane& lane,
                      const RunPart& run) {
  Transfers transfers(staging, lane, stream);
  return transfers.run(plan.pass().isPageable(),
                       [&] { return PassRun(plan, pointers, transfers, run).run(); });
}

}  // namespace ucudnn
