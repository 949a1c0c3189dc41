#include "simulator/cudnn/known_sums.hpp"

#include <algorithm>
#include <cstring>

namespace ucudnn::simulator {
namespace {

struct Input {
  const TensorShape& shape;
  const void* data;

  bool holds(const std::vector<char>& bytes) const {
    return std::memcmp(data, bytes.data(), bytes.size()) == 0;
  }
  std::vector<char> bytes() const {
    const auto* const begin = static_cast<const char*>(data);
    return {begin, begin + extentBytes(shape)};
  }
};

Input firstOf(const ConvolutionProblem& problem, const ConvolutionData& data) {
  if (problem.operation == Operation::kBackwardData) return {problem.y, data.y};
  return {problem.x, data.x};
}

Input secondOf(const ConvolutionProblem& problem, const ConvolutionData& data) {
  if (problem.operation == Operation::kBackwardFilter) return {problem.y, data.y};
  return {problem.w, data.w};
}

bool areSame(const TensorShape& a, const TensorShape& b) {
  return a.type == b.type && a.sameDims(b) && a.sameStrides(b);
}

bool areSame(const ConvolutionProblem& a, const ConvolutionProblem& b) {
  const cudnnConvolutionStruct &one = a.convolution, &other = b.convolution;
  return a.operation == b.operation && areSame(a.x, b.x) && areSame(a.w, b.w) &&
         areSame(a.y, b.y) && a.filterFormat == b.filterFormat && one.pad == other.pad &&
         one.endPad == other.endPad && one.stride == other.stride &&
         one.dilation == other.dilation && one.mode == other.mode && one.groups == other.groups;
}

}  // namespace

KnownSums& KnownSums::instance() {
  static auto* const instance = new KnownSums;  // kernels may run until the process ends
  return *instance;
}

std::shared_ptr<const Sums> KnownSums::find(const ConvolutionProblem& problem,
                                            const ConvolutionData& data) {
  const Input first = firstOf(problem, data), second = secondOf(problem, data);
  std::vector<std::shared_ptr<const Entry>> entries;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_;
  }
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (areSame((*entry)->problem, problem) && second.holds((*entry)->second) &&
        first.holds((*entry)->first))
      return (*entry)->sums;
  return nullptr;
}

void KnownSums::keep(const ConvolutionProblem& problem,
                     const ConvolutionData& data,
                     std::shared_ptr<const Sums> sums) {
  const Input first = firstOf(problem, data), second = secondOf(problem, data);
  if (extentBytes(first.shape) + extentBytes(second.shape) + sums->size() * sizeof(double) >
      kMostBytes)
    return;
  auto entry =
      std::make_shared<const Entry>(Entry{problem, first.bytes(), second.bytes(), std::move(sums)});
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kMostEntries) entries_.erase(entries_.begin());
  entries_.push_back(std::move(entry));
}

}  // namespace ucudnn::simulator
