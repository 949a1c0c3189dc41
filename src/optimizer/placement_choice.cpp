#include "optimizer/placement_choice.hpp"

#include <algorithm>

namespace ucudnn {
namespace {

// What a hidden copy counts.
constexpr double kHidden = 1e-3;
// Large blocks that are tried first: where small ones have taken the room, none fits any more.
constexpr std::size_t kMostFirsts = 32;

class Chooser {
 public:
  Chooser(const std::vector<std::size_t>& blockBytes, const std::vector<PlacementCall>& calls)
      : blockBytes_(blockBytes), calls_(calls), callsOf_(blockBytes.size()) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      copies_.push_back(calls[i].otherMs);
      for (const PlacementCall::Use& use : calls[i].uses) {
        for (const std::size_t direction : {0, 1}) copies_[i][direction] += use.ms[direction];
        std::vector<std::size_t>& of = callsOf_[use.block];
        if (of.empty() || of.back() != i) of.push_back(i);
      }
    }
  }

  /// The blocks behind the first one, which is chosen anyway; kNone: no block is.
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<bool> chooseBehind(std::size_t first, std::size_t deviceBytes) {
    std::vector<bool> chosen(blockBytes_.size(), false);
    for (std::size_t next = first == kNone ? best(chosen, deviceBytes) : first; next != kNone;
         next = best(chosen, deviceBytes)) {
      chosen[next] = true;
      deviceBytes -= blockBytes_[next];
      for (const std::size_t call : callsOf_[next]) copies_[call] = without(call, next);
    }
    return chosen;
  }

  /// Of all calls, by what has been chosen.
  double ms() const {
    double all = 0;
    for (std::size_t call = 0; call < calls_.size(); ++call) all += msOf(call, copies_[call]);
    return all;
  }

 private:
  std::array<double, 2> without(std::size_t call, std::size_t block) const {
    std::array<double, 2> copies = copies_[call];
    for (const PlacementCall::Use& use : calls_[call].uses)
      if (use.block == block)
        for (const std::size_t direction : {0, 1}) copies[direction] -= use.ms[direction];
    return copies;
  }

  double msOf(std::size_t call, const std::array<double, 2>& copies) const {
    return std::max({calls_[call].kernelMs, copies[0], copies[1]}) +
           kHidden * (copies[0] + copies[1]);
  }

  std::size_t best(const std::vector<bool>& chosen, std::size_t deviceBytes) const {
    std::size_t best = kNone;
    double bestGain = 0;
    for (std::size_t block = 0; block < blockBytes_.size(); ++block) {
      if (chosen[block] || blockBytes_[block] > deviceBytes) continue;
      const double gain = gainOf(block) / static_cast<double>(blockBytes_[block]);
      if (gain <= bestGain) continue;
      best = block;
      bestGain = gain;
    }
    return best;
  }

  double gainOf(std::size_t block) const {
    double gain = 0;
    for (const std::size_t call : callsOf_[block])
      gain += msOf(call, copies_[call]) - msOf(call, without(call, block));
    return gain;
  }

  const std::vector<std::size_t>& blockBytes_;
  const std::vector<PlacementCall>& calls_;
  std::vector<std::vector<std::size_t>> callsOf_;
  std::vector<std::array<double, 2>> copies_;  ///< of each call, in each direction
};

}  // namespace

std::vector<bool> choosePlacement(const std::vector<std::size_t>& blockBytes,
                                  const std::vector<PlacementCall>& calls,
                                  std::size_t deviceBytes) {
  std::vector<std::size_t> firsts;
  for (std::size_t block = 0; block < blockBytes.size(); ++block)
    if (blockBytes[block] <= deviceBytes) firsts.push_back(block);
  const auto most = std::min(firsts.size(), kMostFirsts);
  std::partial_sort(firsts.begin(),
                    firsts.begin() + static_cast<std::ptrdiff_t>(most),
                    firsts.end(),
                    [&](std::size_t a, std::size_t b) { return blockBytes[a] > blockBytes[b]; });
  firsts.resize(most);
  const Chooser nothing(blockBytes, calls);
  Chooser chooser = nothing;
  std::vector<bool> best = chooser.chooseBehind(Chooser::kNone, deviceBytes);
  double bestMs = chooser.ms();
  for (const std::size_t first : firsts) {
    Chooser other = nothing;
    const std::vector<bool> chosen = other.chooseBehind(first, deviceBytes);
    if (other.ms() >= bestMs) continue;
    best = chosen;
    bestMs = other.ms();
  }
  return best;
}

}  // namespace ucudnn
