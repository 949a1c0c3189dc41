#include "benchmark/kernel_check.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "benchmark/exact_outputs.hpp"
#include "benchmark/kernel_timer.hpp"
#include "benchmark/random_values.hpp"
#include "problem/numbers.hpp"
#include "support/alignment.hpp"

namespace ucudnn {
namespace {

using Kind = KernelVerdict::Kind;

// In each type that is planned a NaN.
constexpr int kNanByte = 0xFF;
// Wrong kernels write a tile too many: as many bytes as a tile's row has.
constexpr std::size_t kGuardBytes = 4096;

/// The simulator computes outputs only where it is told to.
bool areOutputsComputed() {
  using Asks = int (*)();
  static const auto asks =
      reinterpret_cast<Asks>(dlsym(RTLD_DEFAULT, "ucudnnSimulatorComputesAll"));
  return asks == nullptr || asks() != 0;
}

/// A tensor in scratch memory.
struct Region {
  std::size_t begin = 0, bytes = 0;
};

/// Tensors one behind the other, a guard before and behind each.
struct Layout {
  Region w, bias, x, y, z, workspace;
  std::size_t bytes = kGuardBytes;

  Layout(const Problem& problem, std::size_t workspaceBytes) {
    const auto add = [&](std::size_t size) {
      const Region region{roundUpToAlignment(bytes), size};
      bytes = region.begin + size + kGuardBytes;
      return region;
    };
    const bool isFused = problem.operation == Operation::kBiasActivationForward;
    w = add(problem.wBytes());
    if (isFused)
      bias = add(static_cast<std::size_t>(problem.ySizes[1]) * elementBytes(problem.yType));
    x = add(problem.xBytes());
    y = add(problem.yBytes());
    if (isFused && problem.addsZ != 0) z = add(problem.yBytes());
    workspace = add(workspaceBytes);
  }
};

class Check {
 public:
  Check(cudnnHandle_t handle, const KernelToCheck& checked, DeviceBuffer memory)
      : checked_(checked),
        problem_(checked.problem),
        layout_(problem_, checked.workspaceBytes),
        memory_(std::move(memory)),
        windows_(windowsOf(problem_)),
        timer_(handle, problem_) {
    UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &stream_));
  }

  /// Throws Error.
  KernelVerdict verdict() {
    fill();
    if (!run(false)) return {};
    if (checked_.adds && !run(true)) return {};
    const std::vector<ExactOutput> exact = outputsToCheck(problem_, windows_);
    const std::vector<char> first = outputs(exact);
    std::string why = whyWrong(exact, first);
    if (why.empty()) why = whyElsewhere();
    if (!why.empty()) return {Kind::kWrong, why};
    if (checked_.mustRepeat && !repeats(exact, first))
      return {Kind::kUnrepeatable, "two runs differ"};
    return {Kind::kRight, {}};
  }

 private:
  const Region& output() const noexcept {
    return problem_.operation == Operation::kBackwardData     ? layout_.x
           : problem_.operation == Operation::kBackwardFilter ? layout_.w
                                                              : layout_.y;
  }
  char* at(const Region& region) const noexcept {
    return static_cast<char*>(memory_.get()) + region.begin;
  }

  void fill() {
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(memory_.get(), kNanByte, layout_.bytes, stream_));
    fillInput(layout_.x, RandomTensor::kX, problem_.xType);
    fillInput(layout_.w, RandomTensor::kW, problem_.wType);
    if (!windows_.empty())
      fillWindows(at(layout_.y), problem_, windows_, stream_);
    else
      fillInput(layout_.y, RandomTensor::kY, problem_.yType);
    if (layout_.bias.bytes > 0)
      UCUDNN_CHECK_CUDA(cudaMemsetAsync(at(layout_.bias), 0, layout_.bias.bytes, stream_));
    if (layout_.z.bytes > 0)
      fillRandom(at(layout_.z), layout_.z.bytes, RandomTensor::kY, problem_.yType, stream_);
  }
  void fillInput(const Region& region, RandomTensor tensor, std::int32_t type) {
    if (&region != &output()) fillRandom(at(region), region.bytes, tensor, type, stream_);
  }

  /// False: the kernel refuses.
  bool run(bool adds) {
    PlacedCall call;
    call.kernel = checked_.kernel;
    call.batch = problem_.batch();
    call.workspaceBytes = checked_.workspaceBytes;
    call.place.buffers = {at(layout_.x),
                          at(layout_.w),
                          at(layout_.y),
                          at(layout_.workspace),
                          checked_.workspaceBytes};
    call.place.bias = at(layout_.bias);
    call.place.z = layout_.z.bytes > 0 ? at(layout_.z) : at(layout_.y);
    call.place.samples = problem_.batch();
    return timer_.run(call, adds) == CUDNN_STATUS_SUCCESS;
  }

  std::vector<char> read(const Region& region) const {
    std::vector<char> bytes(region.bytes);
    UCUDNN_CHECK_CUDA(
        cudaMemcpyAsync(bytes.data(), at(region), bytes.size(), cudaMemcpyDeviceToHost, stream_));
    UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return bytes;
  }

  std::vector<char> outputs(const std::vector<ExactOutput>& exact) const {
    const std::size_t bytes = elementBytes(problem_.outputType());
    std::vector<char> result(exact.size() * bytes);
    for (std::size_t i = 0; i < exact.size(); ++i)
      UCUDNN_CHECK_CUDA(cudaMemcpyAsync(result.data() + i * bytes,
                                        at(output()) + exact[i].offset * bytes,
                                        bytes,
                                        cudaMemcpyDeviceToHost,
                                        stream_));
    UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return result;
  }

  /// Empty: the outputs are right.
  std::string whyWrong(const std::vector<ExactOutput>& exact,
                       const std::vector<char>& result) const {
    const std::vector<double> values =
        toDoubles(result.data(), exact.size(), problem_.outputType());
    const double times = checked_.adds ? 2 : 1;
    double squares = 0;
    for (const ExactOutput& output : exact) squares += std::pow(times * output.value, 2);
    const double size = std::sqrt(squares / static_cast<double>(exact.size()));
    const Tolerance tolerance = toleranceOf(problem_, checked_.accurate);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double expected = times * exact[i].value;
      const double most = tolerance.ofItself * std::abs(expected) + tolerance.ofAll * size;
      if (!(std::abs(values[i] - expected) <= most))  // a NaN is not
        return fmt::format("its output {} is {:.6g}, not {:.6g} (of some {:.3g})",
                           exact[i].offset,
                           values[i],
                           expected,
                           size);
    }
    return {};
  }

  /// Empty: it has written nothing but its output and the workspace.
  std::string whyElsewhere() const {
    const std::array<std::pair<const Region*, const char*>, 6> regions = {
        {{&layout_.w, "the filter"},
         {&layout_.bias, "the bias"},
         {&layout_.x, "x"},
         {&layout_.y, "y"},
         {&layout_.z, "z"},
         {&layout_.workspace, "its workspace"}}};
    for (const auto& [region, name] : regions) {
      if (region->begin == 0) continue;  // there is none
      if (!isGuard({region->begin + region->bytes, kGuardBytes}))
        return fmt::format("it writes behind {}", name);
    }
    if (!isGuard({0, kGuardBytes})) return "it writes before the filter";
    const bool areSame =
        isInput(layout_.x, RandomTensor::kX, problem_.xType) &&
        isInput(layout_.w, RandomTensor::kW, problem_.wType) &&
        (!windows_.empty() || isInput(layout_.y, RandomTensor::kY, problem_.yType));
    return areSame ? "" : "it changes its inputs";
  }

  bool isGuard(const Region& region) const {
    const std::vector<char> bytes = read(region);
    return std::all_of(bytes.begin(), bytes.end(), [](char byte) {
      return static_cast<unsigned char>(byte) == kNanByte;
    });
  }

  /// Whether both ends of the input are unchanged. A kernel that writes beside another tensor
  /// writes there.
  bool isInput(const Region& region, RandomTensor tensor, std::int32_t type) const {
    if (&region == &output()) return true;
    const std::size_t bytes = std::min(region.bytes, kGuardBytes);
    for (const std::size_t offset : {std::size_t{0}, region.bytes - bytes})
      if (!areRandom(read({region.begin + offset, bytes}).data(), offset, bytes, tensor, type))
        return false;
    return true;
  }

  /// Other bits in the workspace, and in the output before.
  bool repeats(const std::vector<ExactOutput>& exact, const std::vector<char>& first) {
    for (const Region* const region : {&output(), &layout_.workspace})
      UCUDNN_CHECK_CUDA(cudaMemsetAsync(at(*region), 0, region->bytes, stream_));
    return run(false) && (!checked_.adds || run(true)) && outputs(exact) == first;
  }

  const KernelToCheck& checked_;
  const Problem& problem_;
  const Layout layout_;
  const DeviceBuffer memory_;
  const std::vector<Window> windows_;
  KernelTimer timer_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

/// By what kernels were off on an H200 (misc/ARCHITECTURE.md): TF32 3e-4, the non-fused Winograd
/// beyond 3x3 1e-3, others in float 2e-5 at most; in 16 bits a transform's inputs are rounded too.
/// The largest error of some hundred outputs is four times their norm.
Tolerance toleranceOf(const Problem& problem, bool accurate) noexcept {
  if (problem.computeType == CUDNN_DATA_HALF) return {2e-2, 5e-2};
  if (problem.xType == CUDNN_DATA_DOUBLE) return {1e-10, 1e-9};
  // Sums and tiles that are rounded to 16 bits in between are rounded more than once.
  double ofItself = 1e-5;
  if (problem.outputType() == CUDNN_DATA_HALF) ofItself = 4e-3;
  if (problem.outputType() == CUDNN_DATA_BFLOAT16) ofItself = 2e-2;
  const double ofAll = isRounded(problem.xType) || !accurate ? 1e-2
                       : problem.mathType == CUDNN_FMA_MATH  ? 5e-4
                                                             : 4e-3;
  return {ofItself, ofAll};
}

KernelVerdict checkKernel(cudnnHandle_t handle,
                          const KernelToCheck& checked,
                          const ScratchBound& memory) {
  if (!hasExactOutputs(checked.problem) || !areOutputsComputed()) return {};
  const RelaxedCapture relaxed;
  const std::size_t bytes = Layout(checked.problem, checked.workspaceBytes).bytes;
  if (bytes > memory.bytes()) return {};
  try {
    return Check(handle, checked, DeviceBuffer(bytes)).verdict();
  } catch (const OutOfMemory&) {
    return {};
  }
}

}  // namespace ucudnn
