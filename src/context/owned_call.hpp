// The way of a call if μ-cuDNN owns the workspace.
#pragma once

#include <memory>
#include <optional>

#include "context/context.hpp"

namespace ucudnn {

/// Runs one call, which must outlive this.
class OwnedCall {
 public:
  OwnedCall(Context& context,
            const HotPlans::Key& key,
            const ConvolutionCall& call,
            LayerId layer) noexcept
      : context_(context), key_(key), call_(call) {
    key_.layer = layer;
  }

  /// Empty if the memory could not be had: the caller's workspace is to be used.
  std::optional<cudnnStatus_t> run() noexcept;

 private:
  WorkspaceOwner& owner() const noexcept { return *context_.now_->owner; }
  PlanRequest request() const;
  /// The call's plan and region; remembered if they are stable.
  WorkspaceOwner::Grant findGrant(std::uint64_t epoch) noexcept;
  WorkspaceOwner::Grant lookUpGrant();
  std::shared_ptr<WorkspaceRegion> regionForUnplanned() const;
  WorkspaceRegion::Turn runInRegion(const WorkspaceOwner::Grant& grant,
                                    cudnnStatus_t* status) noexcept;
  cudnnStatus_t runWithoutRegion() noexcept;

  Context& context_;
  HotPlans::Key key_;
  const ConvolutionCall& call_;
  CallStream stream_;
};

}  // namespace ucudnn
