// `ucudnn check`
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "benchmark/kernel_check.hpp"
#include "kernels/source.hpp"
#include "problem/problem.hpp"
#include "tool/columns.hpp"
#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/interruption.hpp"
#include "tool/kernels_ahead.hpp"
#include "tool/machine.hpp"
#include "tool/output_file.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"

namespace ucudnn::tool {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Kind = KernelVerdict::Kind;

// So many samples do: a kernel that is wrong for many is wrong for a few, unless only its last tile
// is wrong. The host then has less to add up.
constexpr int kMostBatch = 8;

struct Liar {
  std::string layer, operation, shape, kernel, why;
  std::optional<bool> liesAgain;  ///< when it is checked a second time; empty: it could not be
};

struct Findings {
  long long checked = 0;
  long long unchecked = 0;  ///< for want of memory, or as cuDNN refuses to run them
  long long late = 0;       ///< for want of time
  std::vector<Liar> liars;
  bool isWhole = true;  ///< the time was enough
  double seconds = 0;
};

struct ToCheck {
  const Layer* layer;
  ucudnnOperation_t operation;
  Problem problem;
};

/// A layer of a tensor of 2^31 elements or more never runs whole: its parts are checked.
void cut(Layer& layer) {
  constexpr double kMostElements = std::numeric_limits<int>::max();
  layer.batch = std::min(layer.batch, kMostBatch);
  int& outermost = layer.size.front();
  while (layer.mostElements() > kMostElements && outermost > 2 * layer.kernel.front())
    outermost = (outermost + 1) / 2;
}

/// Each problem once: lists share layers. Small ones first, which tell how fast kernels are.
std::vector<ToCheck> problemsOf(const std::vector<Layer>& layers, const CheckOptions& options) {
  std::vector<ToCheck> all;
  std::unordered_set<Problem, ProblemHash> known;
  for (const Layer& layer : layers)
    for (const ucudnnOperation_t operation : options.operations) try {
        const Convolution convolution(layer, operation, options.numerics);
        ToCheck next{&layer, operation, {}};
        const ConvolutionDescriptors descriptors = {
            convolution.x(), convolution.w(), convolution.convolution(), convolution.y()};
        if (readProblem(static_cast<Operation>(operation), descriptors, next.problem) &&
            known.insert(next.problem).second)
          all.push_back(next);
      } catch (const DeviceError&) {  // cuDNN has no such convolution
      }
  std::stable_sort(all.begin(), all.end(), [](const ToCheck& a, const ToCheck& b) {
    return a.problem.multiplyAdds() < b.problem.multiplyAdds();
  });
  return all;
}

/// How fast kernels have been. Some of cuDNN's take a hundred times as long as the fastest: within
/// a time limit others go first.
class KernelSpeeds {
 public:
  void learn(const Problem& problem, Kernel kernel, double seconds) {
    constexpr double kMostlyItself = 0.05;  // a check's own part takes some milliseconds
    if (seconds < kMostlyItself) return;
    const double secondsOfOne = seconds / problem.multiplyAdds();
    double& least = secondsOfOne_.try_emplace(keyOf(problem, kernel), secondsOfOne).first->second;
    least = std::min(least, secondsOfOne);
  }
  /// About as long as it takes. 0: it has not been slow yet.
  double seconds(const Problem& problem, Kernel kernel) const {
    const auto known = secondsOfOne_.find(keyOf(problem, kernel));
    return known == secondsOfOne_.end() ? 0 : known->second * problem.multiplyAdds();
  }

 private:
  using Key = std::tuple<Operation, std::int32_t, Kernel>;
  static Key keyOf(const Problem& problem, Kernel kernel) {
    return {problem.operation, problem.xType, kernel};
  }
  std::map<Key, double> secondsOfOne_;  ///< for a multiplication and addition
};

class Checking {
 public:
  Checking(cudnnHandle_t handle, double limitSeconds, const Interruption& interruption)
      : handle_(handle), interruption_(interruption) {
    if (limitSeconds > 0)
      end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(limitSeconds));
  }

  /// `problemsLeft`: those to come, this one included. They share the time that is left.
  void check(const ToCheck& next, std::vector<KernelAhead> kernels, std::size_t problemsLeft) {
    const auto now = Clock::now();
    const auto share = now + (end_ - now) / static_cast<Clock::rep>(problemsLeft);
    const auto secondsOf = [&](const KernelAhead& kernel) {
      return speeds_.seconds(next.problem, kernel.offer->kernel);
    };
    std::stable_sort(kernels.begin(), kernels.end(), [&](const auto& a, const auto& b) {
      return secondsOf(a) < secondsOf(b);
    });
    KernelChecker checker(handle_, next.problem, {}, known_);
    for (const KernelAhead& kernel : kernels) {
      const auto begin = Clock::now();
      if (interruption_.happened() || begin + Seconds(secondsOf(kernel)) >= share) {
        findings_.isWhole = false;
        ++findings_.late;
        continue;
      }
      const KernelVerdict verdict = verdictOf(checker, next.problem.batch(), kernel);
      if (verdict.kind == Kind::kUnchecked) {
        ++findings_.unchecked;
        continue;
      }
      speeds_.learn(next.problem, kernel.offer->kernel, Seconds(Clock::now() - begin).count());
      ++findings_.checked;
      if (isWrong(verdict))
        findings_.liars.push_back({next.layer->name,
                                   toText(next.operation),
                                   next.layer->shape(),
                                   ucudnn::toText(next.problem.operation, kernel.offer->kernel),
                                   verdict.why,
                                   isWrongAgain(checker, next.problem.batch(), kernel)});
    }
  }
  /// Time is up, or so says the user: problems are left that nobody looks at.
  bool isOver() const { return interruption_.happened() || Clock::now() >= end_; }
  void stop() noexcept { findings_.isWhole = false; }

  Findings findings() const {
    Findings all = findings_;
    all.seconds = Seconds(Clock::now() - begin_).count();
    return all;
  }

 private:
  static bool isWrong(const KernelVerdict& verdict) noexcept {
    return verdict.kind != Kind::kRight && verdict.kind != Kind::kUnchecked;
  }
  static std::optional<bool> isWrongAgain(KernelChecker& checker,
                                          int batch,
                                          const KernelAhead& kernel) {
    const KernelVerdict verdict = verdictOf(checker, batch, kernel);
    if (verdict.kind == Kind::kUnchecked) return std::nullopt;
    return isWrong(verdict);
  }
  static KernelVerdict verdictOf(KernelChecker& checker, int batch, const KernelAhead& kernel) {
    if (!kernel.built) return {};
    try {
      KernelToCheck checked;
      checked.batch = batch;
      checked.kernel = kernel.built;
      checked.workspaceBytes = kernel.offer->workspaceBytes;
      checked.accurate = kernel.offer->accurate;
      checked.mustRepeat = kernel.offer->deterministic;
      return checker.check(checked);
    } catch (const Error&) {
      return {};
    }
  }

  cudnnHandle_t handle_;
  const Interruption& interruption_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point end_ = begin_ + std::chrono::hours(24 * 365);
  Findings findings_;
  KnownOutputs known_;
  KernelSpeeds speeds_;
};

nlohmann::ordered_json toJson(const Findings& findings) {
  using Json = nlohmann::ordered_json;
  auto liars = Json::array();
  for (const Liar& liar : findings.liars)
    liars.push_back({{"layer", liar.layer},
                     {"operation", liar.operation},
                     {"shape", liar.shape},
                     {"kernel", liar.kernel},
                     {"why", liar.why},
                     {"wrong_again", liar.liesAgain ? Json(*liar.liesAgain) : Json()}});
  return {{"checked", findings.checked},
          {"unchecked", findings.unchecked},
          {"late", findings.late},
          {"time_was_enough", findings.isWhole},
          {"seconds", std::round(10 * findings.seconds) / 10},
          {"wrong", std::move(liars)}};
}

void print(const Findings& findings) {
  for (const Liar& liar : findings.liars)
    std::cout << fmt::format("{} {} ({})\n    {}\n    {}{}\n",
                             liar.layer,
                             liar.operation,
                             liar.shape,
                             liar.kernel,
                             liar.why,
                             !liar.liesAgain   ? "; it could not be checked again"
                             : *liar.liesAgain ? ""
                                               : "; right when it was checked again");
  std::cout << fmt::format("{} kernels checked, {} are wrong; {} could not be checked",
                           findings.checked,
                           findings.liars.size(),
                           findings.unchecked);
  if (!findings.isWhole) std::cout << fmt::format("; for {} the time was too short", findings.late);
  std::cout << '\n';
}

}  // namespace

int checkAll(const CheckOptions& options, const std::string& command) {
  std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  if (options.batchSize == 0)
    for (Layer& layer : layers) cut(layer);
  OutputFile json("--json", options.jsonFile);
  useDevice(options.device);
  const Stream stream = makeStream();
  const Handles handles(stream.get());
  const Interruption interruption;
  Checking checking(handles.native(), options.limitSeconds, interruption);
  {
    const std::vector<ToCheck> all = problemsOf(layers, options);
    std::vector<Problem> problems;
    problems.reserve(all.size());
    for (const ToCheck& each : all) problems.push_back(each.problem);
    KernelsAhead ahead(std::move(problems));
    Progress progress(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0 && checking.isOver()) {
        checking.stop();
        break;
      }
      const Layer& layer = *all[i].layer;
      setArithmetic(automaticArithmetic(layer.multiplyAdds(), layer.mostElements()));
      progress.begin(fmt::format("{} {}", layer.name, toText(all[i].operation)));
      try {
        checking.check(all[i], ahead.next(), all.size() - i);
      } catch (const Error&) {  // cuDNN offers nothing
      }
    }
  }
  const Findings findings = checking.findings();
  if (!json.isStandardOutput()) print(findings);
  json.write([&](std::ostream& out) {
    nlohmann::ordered_json all = {{"machine", describeMachine(options.device, command)}};
    all.update(toJson(findings));
    out << toText(all);
  });
  return findings.liars.empty() ? 0 : 1;
}

}  // namespace ucudnn::tool
