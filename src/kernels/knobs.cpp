#include "kernels/knobs.hpp"

#include <algorithm>
#include <cmath>

namespace ucudnn {
namespace {

// In cuDNN 9.19, a range that begins at 1 is a number, of parts or of blocks in a cluster. A range
// that begins at 0 names something, and cuDNN refuses most of its values.
constexpr std::int64_t kFirstNumber = 1;
constexpr std::int64_t kMostNames = 64;
constexpr std::int64_t kLargest = 4096;  ///< that is tried for a number
constexpr std::int64_t kSmall = 8;
constexpr double kFactors[] = {0.5, 0.75, 0.9, 1.1, 4.0 / 3, 2};

std::vector<std::int64_t> choicesOf(const KnobRange& range, std::int64_t own) {
  std::vector<std::int64_t> choices;
  const auto add = [&](std::int64_t choice) {
    const bool isIn = range.low <= choice && choice <= range.high && choice != own;
    if (isIn && std::find(choices.begin(), choices.end(), choice) == choices.end())
      choices.push_back(choice);
  };
  const std::int64_t step = std::max<std::int64_t>(range.step, 1);
  if (range.low == kFirstNumber || (range.high - range.low) / step >= kMostNames) {
    for (std::int64_t power = 1; power <= kLargest; power *= 2)
      if (power <= kSmall || (own / 2 <= power && power <= 2 * own)) add(power);
    for (const double factor : kFactors) add(std::llround(factor * static_cast<double>(own)));
  } else {
    for (std::int64_t choice = range.low; choice <= range.high; choice += step) add(choice);
  }
  return choices;
}

}  // namespace

std::vector<std::vector<EngineConfiguration>> withOtherKnobs(const EngineConfiguration& value,
                                                             const std::vector<KnobRange>& ranges) {
  std::vector<std::vector<EngineConfiguration>> all(value.knobs.size());
  for (std::size_t knob = 0; knob < value.knobs.size(); ++knob)
    for (const KnobRange& range : ranges) {
      if (range.type != value.knobs[knob].first) continue;
      for (const std::int64_t choice : choicesOf(range, value.knobs[knob].second)) {
        all[knob].push_back(value);
        all[knob].back().knobs[knob].second = choice;
      }
    }
  return all;
}

}  // namespace ucudnn
