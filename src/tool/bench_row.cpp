#include "tool/bench_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "tool/device_data.hpp"
#include "tool/failure.hpp"
#include "tool/fastest_engine.hpp"
#include "tool/plan_description.hpp"
#include "tool/timing.hpp"

namespace ucudnn::tool {
namespace {

// The workspace of a framework without a limit: more than any algorithm of our layer lists needs,
// and little enough to leave the device to others.
constexpr std::size_t kUnlimitedCapBytes = std::size_t{24} << 30;
// The allocator cannot hand out all free memory in one piece.
constexpr double kUsablePartOfFree = 0.9;
// If one sample of 256 is not computed, the distance is 0.06. The rounding of bfloat16, the
// coarsest type, gives a distance of 0.004.
constexpr double kWrongDistance = 0.02;

/// One way to run the convolution: the handle's kind, the algorithm, its workspace.
template <typename Handle>
class CallWay {
 public:
  CallWay(Handle handle, const Convolution& convolution, const Tensors& tensors)
      : handle_(handle), convolution_(convolution), tensors_(tensors) {}

  /// Does what a framework does with a query's answer: sets the math type and gets the workspace,
  /// here in the memory that the query searched with, as frameworks do too. A kernel's speed
  /// depends on the place of its memory, by up to 20 % on an H200.
  void choose(const Choice& choice, const DeviceBuffer& searched) {
    workspace_ = {searched.get(), accept(choice)};
    if (workspace_.bytes > searched.bytes())
      throw DeviceError("the answer needs more workspace than the query had");
  }
  /// The same in memory of its own.
  void choose(const Choice& choice) {
    own_ = DeviceBuffer(accept(choice));
    workspace_ = {own_.get(), own_.bytes()};
  }

  const Choice& choice() const noexcept { return choice_; }
  std::size_t workspaceBytes() const noexcept { return workspace_.bytes; }

  void enqueue() const { enqueueTo(tensors_.output); }
  void enqueueTo(void* output) const {
    convolution_.setMath(choice_.math);
    run(handle_, convolution_, tensors_, choice_.algorithm, workspace_, output);
  }

 private:
  /// The workspace that it needs.
  std::size_t accept(const Choice& choice) {
    choice_ = choice;
    convolution_.setMath(choice.math);
    std::size_t bytes = 0;
    if (!getWorkspaceSize(handle_, convolution_, choice.algorithm, &bytes))
      throw DeviceError("cudnnGetConvolution*WorkspaceSize refuses the algorithm that was found");
    return bytes;
  }

  Handle handle_;
  const Convolution& convolution_;
  const Tensors& tensors_;
  Choice choice_;
  DeviceBuffer own_;
  Workspace workspace_;
};

using OurWay = CallWay<UcudnnHandle_t>;
using NativeWay = CallWay<cudnnHandle_t>;

/// cuDNN's within the workspace, the fastest first.
std::vector<Choice> nativeChoices(cudnnHandle_t handle,
                                  const Convolution& convolution,
                                  const Tensors& tensors,
                                  const DeviceBuffer& workspace) {
  convolution.setMath(convolution.numerics().math);
  return findAlgorithms(handle, convolution, tensors, workspace);
}

/// The workspace for a framework that knows no limit.
std::size_t unlimitedBytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const auto usable = static_cast<std::size_t>(static_cast<double>(free) * kUsablePartOfFree);
  return std::min(usable, kUnlimitedCapBytes);
}

/// The workspace of the hungriest algorithm, as far as the device has it.
DeviceBuffer unlimitedWorkspace(cudnnHandle_t handle, const Convolution& convolution) {
  const std::size_t cap = unlimitedBytes();
  std::size_t most = 0;
  convolution.setMath(convolution.numerics().math);
  for (int algorithm = 0; algorithm < algorithmCount(convolution.operation()); ++algorithm) {
    std::size_t bytes = 0;
    if (getWorkspaceSize(handle, convolution, algorithm, &bytes) && bytes <= cap)
      most = std::max(most, bytes);
  }
  return DeviceBuffer(most);
}

/// The most exact kernel that there is: algorithms by number, in falling preference. They sum up
/// products on ordinary units.
std::vector<int> referenceAlgorithms(ucudnnOperation_t operation) {
  switch (operation) {
    case UCUDNN_BACKWARD_DATA:
      return {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0};
    case UCUDNN_BACKWARD_FILTER:
      return {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3};
    default:
      return {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
              CUDNN_CONVOLUTION_FWD_ALGO_GEMM};
  }
}

/// Runs the reference to `output`. False: cuDNN has none for this convolution.
bool runReference(cudnnHandle_t handle,
                  const Convolution& convolution,
                  const Tensors& tensors,
                  void* output) {
  for (const int algorithm : referenceAlgorithms(convolution.operation())) {
    convolution.setMath(CUDNN_FMA_MATH);
    std::size_t bytes = 0;
    if (!getWorkspaceSize(handle, convolution, algorithm, &bytes)) continue;
    NativeWay way(handle, convolution, tensors);
    way.choose({algorithm, CUDNN_FMA_MATH, bytes, 0});
    way.enqueueTo(output);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return true;
  }
  return false;
}

/// The results that are compared with the reference.
struct Compared {
  const NativeWay& cudnn;
  const NativeWay& unlimited;
  const NativeWay* picked;  ///< null: there is no such kernel, or no memory for it
  const OurWay& ours;
};

/// Fills the outputs' distances to the reference.
void compareOutputs(cudnnHandle_t handle,
                    const Convolution& convolution,
                    const Tensors& tensors,
                    const Compared& ways,
                    bool sampled,
                    Row& row) {
  const std::size_t bytes = convolution.outputBytes();
  const cudnnDataType_t type = convolution.numerics().dataType;
  const DeviceBuffer reference(bytes);
  // Unwritten outputs stay NaN and are found. The simulator's sampling leaves most outputs
  // unwritten.
  const int fill = sampled ? 0 : 0xFF;
  const auto clear = [&](void* output) {
    check(cudaMemset(output, fill, bytes), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  };
  clear(reference.get());
  if (!runReference(handle, convolution, tensors, reference.get())) return;
  const auto distance = [&](const auto& way) {
    clear(tensors.output);
    way.enqueue();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return relativeDistance(tensors.output, reference.get(), bytes, type);
  };
  row.cudnnRelativeError = distance(ways.cudnn);
  row.unlimitedRelativeError = distance(ways.unlimited);
  if (ways.picked != nullptr) row.pickedRelativeError = distance(*ways.picked);
  row.relativeError = distance(ways.ours);
  if (!(*row.relativeError <= kWrongDistance))
    throw DeviceError(
        fmt::format("the result is wrong: relative error {:.3g}", *row.relativeError));
}

/// False if there is no such kernel, or no memory for it.
bool choosePicked(cudnnHandle_t handle,
                  const Convolution& convolution,
                  NativeWay& picked,
                  Row& row) {
  convolution.setMath(convolution.numerics().math);
  const auto choice = pickAlgorithm(handle, convolution);
  if (!choice) return false;
  row.pickedKernel = toText(convolution.operation(), *choice);
  try {
    picked.choose(*choice);
  } catch (const OutOfMemory&) {
    return false;
  }
  return true;
}

// The least time to rest for: the row before, and copies of random numbers, have kept the device
// busy.
constexpr double kBusyBeforePlanningMs = 20;

void askOurs(const Handles& handles,
             const Convolution& convolution,
             const Tensors& tensors,
             const DeviceBuffer& workspace,
             std::size_t limitBytes,
             OurWay& ours,
             Row& row) {
  restDevice(kBusyBeforePlanningMs);
  const auto start = std::chrono::steady_clock::now();
  const auto choices = findAlgorithms(handles.ours(), convolution, tensors, workspace, 1);
  row.planningMs = msSince(start);
  if (choices.empty()) throw DeviceError("μ-cuDNN's query names no algorithm within the limit");
  if (auto plan = describePlan(handles.ours(), convolution, limitBytes)) {
    row.configuration = std::move(plan->configuration);
    row.predictedMs = plan->predictedMs;
  }
  ours.choose(choices.front(), workspace);
  row.workspaceBytes = ours.workspaceBytes();
}

/// The kernel that an autotuner could pick: the fastest undivided one within the limit, engines
/// included.
void askAutotuner(const Handles& autotuner,
                  const Convolution& convolution,
                  const Tensors& tensors,
                  const DeviceBuffer& workspace,
                  std::size_t limitBytes,
                  OurWay& undivided,
                  Row& row) {
  const auto before = statisticsNow().kernelsMeasured;
  const auto choices = findAlgorithms(autotuner.ours(), convolution, tensors, workspace, 1);
  row.comparedKernels = statisticsNow().kernelsMeasured - before;
  if (choices.empty()) throw DeviceError("no undivided kernel is known within the limit");
  if (const auto plan = describePlan(autotuner.ours(), convolution, limitBytes))
    if (!plan->configuration.empty()) row.undividedKernel = plan->configuration.front().kernel;
  undivided.choose(choices.front(), workspace);
  row.undividedWorkspaceBytes = undivided.workspaceBytes();
}

/// The facts about a layer's operation that don't depend on the limit: its tensors, and cuDNN's
/// best.
struct Subject {
  Subject(const Handles& allHandles,
          const Handles* autotunerHandles,
          cudaStream_t timedStream,
          const Layer& benchedLayer,
          ucudnnOperation_t operation,
          const BenchOptions& benchOptions)
      : handles(allHandles),
        autotuner(autotunerHandles),
        stream(timedStream),
        layer(benchedLayer),
        options(benchOptions),
        convolution(layer, operation, options.numerics),
        tensors(convolution) {}

  const Handles& handles;
  const Handles* const autotuner;
  const cudaStream_t stream;
  const Layer& layer;
  const BenchOptions& options;
  const Convolution convolution;
  const Tensors tensors;
  // Found for the first limit, after μ-cuDNN has planned: cuDNN then has loaded its kernels.
  std::vector<Choice> choices;   ///< the fastest first
  std::size_t choicesBytes = 0;  ///< the workspace that they were found within
  std::optional<NativeWay> unlimited;
  std::optional<Engine> engine;
  DeviceBuffer engineWorkspace;
};

/// cuDNN's fastest kernel at any workspace: among its algorithms and, if they are compared, its
/// engines.
void findUnlimited(Subject& s) {
  if (s.unlimited) return;
  const cudnnHandle_t handle = s.handles.native();
  s.choicesBytes = unlimitedBytes();
  {
    const DeviceBuffer all = unlimitedWorkspace(handle, s.convolution);
    // Asks twice: the first time loads each kernel, which must not count for μ-cuDNN.
    nativeChoices(handle, s.convolution, s.tensors, all);
    s.choices = nativeChoices(handle, s.convolution, s.tensors, all);
  }
  if (s.choices.empty()) throw DeviceError("cuDNN offers no algorithm");
  if (s.autotuner != nullptr) {
    s.convolution.setMath(s.convolution.numerics().math);
    s.engine = fastestEngine(handle, s.stream, s.convolution, s.tensors, s.choicesBytes);
    if (s.engine) s.engineWorkspace = DeviceBuffer(s.engine->workspaceBytes);
  }
  s.unlimited.emplace(handle, s.convolution, s.tensors);
  s.unlimited->choose(s.choices.front());
}

/// cuDNN's fastest within a limit. Its algorithms have been timed without one: each takes tens to
/// hundreds of milliseconds where none is fast.
Choice choiceWithin(const Subject& s, const DeviceBuffer& workspace) {
  const std::vector<Choice> choices =
      workspace.bytes() <= s.choicesBytes
          ? s.choices
          : nativeChoices(s.handles.native(), s.convolution, s.tensors, workspace);
  const auto found = std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) {
    return choice.memory <= workspace.bytes();
  });
  if (found == choices.end()) throw DeviceError("cuDNN offers no algorithm within the limit");
  return *found;
}

/// The times of all, back to back.
void timeRow(const Subject& s,
             const NativeWay& cudnn,
             const OurWay& ours,
             const OurWay* undivided,
             Row& row) {
  std::vector<Contestant> contestants = {
      {[&] { cudnn.enqueue(); }}, {[&] { ours.enqueue(); }}, {[&] { s.unlimited->enqueue(); }}};
  std::vector<std::optional<double>*> times = {&row.cudnnMs, &row.ucudnnMs, &row.unlimitedMs};
  if (undivided != nullptr) {
    contestants.push_back({[&] { undivided->enqueue(); }});
    times.push_back(&row.undividedMs);
  }
  if (s.engine) {
    contestants.push_back({[&] {
      run(s.handles.native(), *s.engine, s.convolution, s.tensors, s.engineWorkspace.get());
    }});
    times.push_back(&row.engineMs);
  }
  timeBackToBack(s.stream, s.options.repeats, contestants);
  for (std::size_t i = 0; i < times.size(); ++i) *times[i] = contestants[i].timeMs;
  row.replayed = contestants[1].replayedCalls;
}

void fillRow(Subject& s, Row& row) {
  const Convolution& convolution = s.convolution;
  const Tensors& tensors = s.tensors;
  const cudnnHandle_t native = s.handles.native();
  // The clock of the simulator runs without arithmetic as well. So it computes only what is
  // compared, and what errors are measured on.
  setArithmetic(arithmeticToPlan(s.options, s.layer));
  OurWay ours(s.handles.ours(), convolution, tensors);
  NativeWay cudnn(native, convolution, tensors);
  const DeviceBuffer workspace(row.limitBytes);
  askOurs(s.handles, convolution, tensors, workspace, row.limitBytes, ours, row);
  setArithmetic(Arithmetic::kOff);
  std::optional<OurWay> undivided;
  if (s.autotuner != nullptr) {
    undivided.emplace(s.autotuner->ours(), convolution, tensors);
    askAutotuner(*s.autotuner, convolution, tensors, workspace, row.limitBytes, *undivided, row);
  }
  findUnlimited(s);
  cudnn.choose(choiceWithin(s, workspace), workspace);
  row.cudnnKernel = toText(convolution.operation(), cudnn.choice());
  row.cudnnWorkspaceBytes = cudnn.workspaceBytes();
  row.unlimitedKernel = toText(convolution.operation(), s.unlimited->choice());
  row.unlimitedWorkspaceBytes = s.unlimited->workspaceBytes();
  if (s.engine) {
    row.engineKernel = s.engine->name;
    row.engineWorkspaceBytes = s.engine->workspaceBytes;
  }
  timeRow(s, cudnn, ours, undivided ? &*undivided : nullptr, row);

  const Arithmetic arithmetic = arithmeticFor(s.options, s.layer);
  if (!s.options.check || (onSimulator() && arithmetic == Arithmetic::kOff)) return;
  setArithmetic(arithmetic);
  NativeWay picked(native, convolution, tensors);
  const bool hasPicked = choosePicked(native, convolution, picked, row);
  compareOutputs(native,
                 convolution,
                 tensors,
                 {cudnn, *s.unlimited, hasPicked ? &picked : nullptr, ours},
                 onSimulator() && arithmetic == Arithmetic::kSampled,
                 row);
}

/// Runs `work`; what goes wrong is the error.
template <typename Work>
std::string errorOf(Work work) {
  try {
    work();
    return {};
  } catch (const OutOfMemory& error) {
    return fmt::format("out of memory: {}", error.what());
  } catch (const DeviceError& error) {
    return error.what();
  }
}

}  // namespace

Arithmetic arithmeticFor(const BenchOptions& options, const Layer& layer) {
  if (!options.check) return Arithmetic::kOff;
  return options.arithmetic.value_or(
      automaticArithmetic(layer.multiplyAdds(), layer.mostElements()));
}

std::vector<Row> rowsNotRun(const Layer& layer,
                            ucudnnOperation_t operation,
                            const BenchOptions& options,
                            const std::string& why) {
  std::vector<Row> rows;
  for (const std::size_t limitBytes : options.limitsBytes) {
    Row& row = rows.emplace_back();
    row.layer = layer.name;
    row.operation = toText(operation);
    row.shape = layer.shape();
    row.limitBytes = limitBytes;
    row.error = why;
  }
  return rows;
}

std::vector<Row> benchRows(const Handles& handles,
                           const Handles* autotuner,
                           cudaStream_t stream,
                           const Layer& layer,
                           ucudnnOperation_t operation,
                           const BenchOptions& options) {
  std::optional<Subject> subject;
  const std::string error = errorOf([&] {
    // Memory that nobody reads is not filled, because filling much memory takes long.
    setArithmetic(std::min(arithmeticFor(options, layer), arithmeticToPlan(options, layer)));
    subject.emplace(handles, autotuner, stream, layer, operation, options);
  });
  std::vector<Row> rows = rowsNotRun(layer, operation, options, error);
  for (Row& row : rows) {
    if (subject) row.error = errorOf([&] { fillRow(*subject, row); });
    // Whatever has been enqueued before a failure still uses buffers that are freed by now; and an
    // error that stays would be blamed on the next row.
    if (cudaDeviceSynchronize() != cudaSuccess) cudaGetLastError();
  }
  return rows;
}

}  // namespace ucudnn::tool
