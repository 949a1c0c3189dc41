// Finds a call's plan if the handle has none at hand.
#pragma once

#include <memory>

#include "context/context.hpp"

namespace ucudnn {

/// Asks the planner for one call, which must outlive this.
class CallPlans {
 public:
  CallPlans(Context& context, const HotPlans::Key& key, const ConvolutionCall& call) noexcept
      : context_(context), key_(key), call_(call) {}

  /// The plan for the call; null: run cuDNN. Remembers an answer that lasts.
  std::shared_ptr<const Plan> find(const char** why) noexcept;
  /// Extends a plan of calls that overwrite to calls that add. Null if that can't be.
  std::shared_ptr<const Plan> complete(const Plan& plan) noexcept;
  /// A known plan of any policy that fits the call's workspace. Null if there is none.
  std::shared_ptr<const Plan> ofOthers() noexcept;

 private:
  const Snapshot& now() const noexcept { return *context_.now_; }
  bool accepts(const Plan& plan, std::size_t bytes) {
    return context_.checkedPlans_.accepts(context_.handle_, plan, bytes);
  }
  bool fits(std::size_t bytes) const;
  PlanRequest request();
  PlanAnswer unmeasured(const PlanRequest& wanted);
  PlanAnswer lookUp();
  bool hasTooLittle(const PlanRequest& wanted) const;
  void remember(const PlanAnswer& found, const char* why);

  Context& context_;
  const HotPlans::Key& key_;
  const ConvolutionCall& call_;
  bool isCheckedAgain_ = false;  ///< the plan's kernels, by this call
};

}  // namespace ucudnn
