#include "graph/granted_workspaces.hpp"

#if UCUDNN_HAS_ENGINES

namespace ucudnn {

void GrantedWorkspaces::add(const ClientConvolution& answered) {
  const Answer answer{answered.grantedBytes, answered.algorithm, answered.isMeasured};
  const std::lock_guard lock(mutex_);
  const auto [known, isNew] = all_.try_emplace(planOf(answered), answer);
  if (!isNew && answer.bytes < known->second.bytes) known->second = answer;
  additions_.fetch_add(1, std::memory_order_release);
}

bool GrantedWorkspaces::answerAlike(ClientConvolution& unasked) const {
  const std::lock_guard lock(mutex_);
  const auto known = all_.find(planOf(unasked));
  if (known == all_.end()) return false;
  unasked.grantedBytes = known->second.bytes;
  unasked.algorithm = known->second.algorithm;
  unasked.isMeasured = known->second.isMeasured;
  return true;
}

GrantedWorkspaces& grantedWorkspaces() {
  static auto* const all = new GrantedWorkspaces;
  return *all;
}

}  // namespace ucudnn

#endif
