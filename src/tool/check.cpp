// `ucudnn check`
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "benchmark/kernel_check.hpp"
#include "kernels/source.hpp"
#include "tool/columns.hpp"
#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/interruption.hpp"
#include "tool/machine.hpp"
#include "tool/offered_kernels.hpp"
#include "tool/output_file.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"

namespace ucudnn::tool {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = KernelVerdict::Kind;

// So many samples do: a kernel that is wrong for many is wrong for a few, unless only its last tile
// is wrong. The host then has less to add up.
constexpr int kMostBatch = 8;

struct Liar {
  std::string layer, operation, shape, kernel, why;
};

struct Findings {
  long long checked = 0;
  long long unchecked = 0;  ///< for want of memory or time, or as cuDNN refuses to run them
  std::vector<Liar> liars;
  bool isWhole = true;  ///< the time was enough
};

class Checking {
 public:
  Checking(cudnnHandle_t handle, const CheckOptions& options) : handle_(handle) {
    if (options.limitSeconds > 0)
      end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(options.limitSeconds));
  }

  /// `problemsLeft`: those to come, this one included. They share the time that is left.
  void check(const Layer& layer, const Convolution& convolution, std::size_t problemsLeft) {
    Problem problem;
    if (!readProblem(static_cast<Operation>(convolution.operation()),
                     {convolution.x(), convolution.w(), convolution.convolution(), convolution.y()},
                     problem))
      return;
    const auto now = Clock::now();
    const auto share = now + (end_ - now) / static_cast<Clock::rep>(problemsLeft);
    PreparedKernels prepared(handle_, problem);
    KernelChecker checker(handle_, problem, {}, known_);
    for (const KernelOffer& offer : allKernels(handle_, problem)) {
      if (Clock::now() >= share) {
        findings_.isWhole = false;
        ++findings_.unchecked;
        continue;
      }
      const KernelVerdict verdict = verdictOf(checker, prepared, offer);
      if (verdict.kind == Kind::kUnchecked) {
        ++findings_.unchecked;
        continue;
      }
      ++findings_.checked;
      if (verdict.kind != Kind::kRight)
        findings_.liars.push_back({layer.name,
                                   toText(convolution.operation()),
                                   layer.shape(),
                                   ucudnn::toText(problem.operation, offer.kernel),
                                   verdict.why});
    }
  }

  const Findings& findings() const noexcept { return findings_; }

 private:
  static KernelVerdict verdictOf(KernelChecker& checker,
                                 PreparedKernels& prepared,
                                 const KernelOffer& offer) {
    try {
      KernelToCheck checked;
      checked.batch = prepared.problem().batch();
      checked.kernel = prepared.build(checked.batch, offer.kernel, offer.calls);
      checked.workspaceBytes = offer.workspaceBytes;
      checked.accurate = offer.accurate;
      checked.mustRepeat = offer.deterministic;
      return checker.check(checked);
    } catch (const Error&) {
      return {};
    }
  }

  cudnnHandle_t handle_;
  Clock::time_point end_ = Clock::now() + std::chrono::hours(24 * 365);
  Findings findings_;
  KnownOutputs known_;
};

nlohmann::ordered_json toJson(const Findings& findings) {
  auto liars = nlohmann::ordered_json::array();
  for (const Liar& liar : findings.liars)
    liars.push_back({{"layer", liar.layer},
                     {"operation", liar.operation},
                     {"shape", liar.shape},
                     {"kernel", liar.kernel},
                     {"why", liar.why}});
  return {{"checked", findings.checked},
          {"unchecked", findings.unchecked},
          {"time_was_enough", findings.isWhole},
          {"wrong", std::move(liars)}};
}

void print(const Findings& findings) {
  for (const Liar& liar : findings.liars)
    std::cout << fmt::format("{} {} ({})\n    {}\n    {}\n",
                             liar.layer,
                             liar.operation,
                             liar.shape,
                             liar.kernel,
                             liar.why);
  std::cout << fmt::format("{} kernels checked, {} are wrong; {} could not be checked{}\n",
                           findings.checked,
                           findings.liars.size(),
                           findings.unchecked,
                           findings.isWhole ? "" : " in the time given");
}

}  // namespace

int checkAll(const CheckOptions& options, const std::string& command) {
  std::vector<Layer> layers =
      filterLayers(readLayers(options.files, options.batchSize), options.patterns);
  if (options.batchSize == 0)
    for (Layer& layer : layers) layer.batch = std::min(layer.batch, kMostBatch);
  OutputFile json("--json", options.jsonFile);
  useDevice(options.device);
  const Stream stream = makeStream();
  const Handles handles(stream.get());
  Checking checking(handles.native(), options);
  {
    const Interruption interruption;
    const std::size_t problems = layers.size() * options.operations.size();
    Progress progress(problems);
    std::size_t done = 0;
    for (const Layer& layer : layers) {
      setArithmetic(automaticArithmetic(layer.multiplyAdds(), layer.mostElements()));
      for (const ucudnnOperation_t operation : options.operations) {
        if (interruption.happened()) break;
        progress.begin(fmt::format("{} {}", layer.name, toText(operation)));
        try {
          checking.check(layer, Convolution(layer, operation, options.numerics), problems - done);
        } catch (const DeviceError&) {  // cuDNN has no such convolution
        }
        ++done;
      }
    }
  }
  const Findings& findings = checking.findings();
  if (!json.isStandardOutput()) print(findings);
  json.write([&](std::ostream& out) {
    nlohmann::ordered_json all = {{"machine", describeMachine(options.device, command)}};
    all.update(toJson(findings));
    out << toText(all);
  });
  return findings.liars.empty() ? 0 : 1;
}

}  // namespace ucudnn::tool
