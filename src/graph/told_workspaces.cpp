#include "graph/told_workspaces.hpp"

namespace ucudnn {

void ToldWorkspaces::add(const Problem& problem, std::size_t neededBytes, Told told) {
  const std::lock_guard lock(mutex_);
  const auto [known, isNew] = all_.try_emplace({problem, neededBytes}, told);
  if (!isNew && told.bytes < known->second.bytes) known->second = told;
  isEmpty_.store(false, std::memory_order_release);
}

std::optional<ToldWorkspaces::Told> ToldWorkspaces::find(const Problem& problem,
                                                         std::size_t neededBytes) const {
  const std::lock_guard lock(mutex_);
  const auto known = all_.find({problem, neededBytes});
  if (known == all_.end()) return std::nullopt;
  return known->second;
}

ToldWorkspaces& toldWorkspaces() {
  static auto* const all = new ToldWorkspaces;
  return *all;
}

}  // namespace ucudnn
