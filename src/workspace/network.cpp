#include "workspace/network.hpp"

#include <algorithm>

namespace ucudnn {

const std::shared_ptr<NetworkConvolution>& Network::find(
    const Problem& problem, LayerId layer, bool deterministic, CallKind calls, std::uint64_t now) {
  std::shared_ptr<NetworkConvolution>& place = byKey_[{problem, layer}];
  if (place == nullptr) {
    auto added = std::make_shared<NetworkConvolution>();
    added->problem = problem;
    added->layer = layer;
    added->deterministic = deterministic;
    // Whether a call adds matters only if the convolution's plan could borrow. Few other calls add.
    added->adds = calls == CallKind::kAdding || problem.overwrittenSampleBytes() == 0;
    convolutions_.push_back(added);
    place = std::move(added);
  } else if ((deterministic && !place->deterministic) ||
             (calls == CallKind::kAdding && !place->adds)) {
    place->deterministic = deterministic || place->deterministic;
    place->adds = calls == CallKind::kAdding || place->adds;
    place->placed = false;
  }
  place->seen = now;
  return place;
}

void Network::displace() noexcept {
  for (const auto& convolution : convolutions_) {
    convolution->placed = false;
    convolution->plan = nullptr;
    convolution->region = nullptr;
  }
}

void Network::forgetIdle(std::uint64_t before) {
  convolutions_.erase(std::remove_if(convolutions_.begin(),
                                     convolutions_.end(),
                                     [&](const auto& convolution) {
                                       if (convolution->seen >= before) return false;
                                       byKey_.erase({convolution->problem, convolution->layer});
                                       return true;
                                     }),
                      convolutions_.end());
}

}  // namespace ucudnn
