#include "simulator/cudnn/launch.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "simulator/beside.hpp"
#include "simulator/cudnn/rounding.hpp"

namespace ucudnn::simulator {
namespace {

// At each end of the workspace this much is overwritten: enough to catch a client that keeps
// something there or lies about its size, without a gigabyte of writes for each call.
constexpr std::size_t kSpoiledBytes = std::size_t{2} << 20;
constexpr int kPoison = 0xFF;  // a NaN in every floating-point type

void spoil(void* workspace, std::size_t bytes) {
  const std::size_t part = std::min(bytes, kSpoiledBytes);
  if (part == 0) return;
  std::memset(workspace, kPoison, part);
  std::memset(static_cast<char*>(workspace) + (bytes - part), kPoison, part);
}

/// Changes the sums as the lie says.
void addLie(const ConvolutionCall& call, Epilogue& epilogue) {
  epilogue.lie = lie();
  const TensorShape& output = outputShape(call.problem);
  const bool isOdd = output.dims[static_cast<std::size_t>(output.rank) - 1] % 2 == 1;
  switch (epilogue.lie) {
    case Lie::kChannel:
    case Lie::kRow:
      epilogue.lieFactor = 1.01;
      return;
    case Lie::kOdd:
      epilogue.lieFactor = isOdd ? 1.01 : 1;
      return;
    case Lie::kGroups:
      epilogue.lieFactor = call.problem.groups() > 1 ? 1.01 : 1;
      return;
    case Lie::kBits:
      epilogue.lieFactor = runsBesideOthers() ? 1 + 1e-6 : 1;
      return;
    default:
      return;
  }
}

/// Writes beside the output as the lie says.
void writeElsewhere(const ConvolutionCall& call, Lie lie) {
  constexpr std::size_t kMoreBytes = 2048;
  if (lie == Lie::kOutput)
    std::memset(static_cast<char*>(outputOf(call.problem, call.data)) +
                    extentBytes(outputShape(call.problem)),
                0,
                4);
  if ((lie == Lie::kWorkspace || lie == Lie::kMore) && call.workspaceBytes > 0)
    std::memset(static_cast<char*>(call.workspace) + call.workspaceBytes,
                0,
                lie == Lie::kMore ? kMoreBytes : 4);
}

}  // namespace

double readFactor(const void* factor, cudnnDataType_t type) {
  require(factor != nullptr, "null scaling factor");
  if (type == CUDNN_DATA_DOUBLE) {
    double value;
    std::memcpy(&value, factor, sizeof value);
    return value;
  }
  float value;
  std::memcpy(&value, factor, sizeof value);
  return static_cast<double>(value);
}

void requireTensor(const TensorShape& shape, const void* data, const char* what) {
  require(shape.rank != 0, "a tensor descriptor has not been set");
  require(data != nullptr, "null data pointer");
  if (!checkRange(data, extentBytes(shape), what)) {
    refuse(CUDNN_STATUS_EXECUTION_FAILED, "a tensor is not within device memory");
  }
}

std::vector<Access> accessesOf(std::initializer_list<TensorAccess> tensors) {
  std::vector<Access> accesses;
  for (const TensorAccess& tensor : tensors) {
    TensorShape sample = tensor.shape;
    sample.dims[0] = 1;
    const std::size_t sampleBytes = extentBytes(sample);
    const std::size_t step =
        static_cast<std::size_t>(tensor.shape.strides[0]) * elementBytes(tensor.shape.type);
    if (step <= sampleBytes) {
      accesses.push_back({tensor.data, extentBytes(tensor.shape), tensor.write});
      continue;
    }
    for (int n = 0; n < tensor.shape.dims[0]; ++n) {
      const char* base = static_cast<const char*>(tensor.data) + static_cast<std::size_t>(n) * step;
      accesses.push_back({base, sampleBytes, tensor.write});
    }
  }
  return accesses;
}

void submit(cudnnHandle_t handle, Work work) {
  if (enqueue(handle->stream, std::move(work)) != cudaSuccess) {
    refuse(CUDNN_STATUS_EXECUTION_FAILED, "the stream does not take the kernel");
  }
}

// cuDNN on an H200 takes 20 to 45 us of the host for a convolution, of one to four kernels.
void submitKernels(cudnnHandle_t handle, std::uint64_t kernel, Work work) {
  constexpr double kCallMicroseconds = 12;
  constexpr double kLaunchMicroseconds = 8;
  hostLaunches(handle->stream, kCallMicroseconds + kLaunchMicroseconds * work.launches);
  hostLoadsKernel(handle->device, kernel);
  submit(handle, std::move(work));
}

CallKernels algorithmKernels(const ConvolutionProblem& problem, int algorithm, const Cost& cost) {
  const Method method = methodOf(problem.operation, algorithm);
  // A kernel is named by operation, method, type and units. Sizes are its arguments.
  const int parts[] = {static_cast<int>(problem.operation),
                       static_cast<int>(method),
                       problem.x.type,
                       problem.convolution.mathType == CUDNN_FMA_MATH,
                       problem.spatialRank()};
  std::uint64_t kernel = 0;
  for (const int part : parts) kernel = kernel * 256 + static_cast<std::uint64_t>(part);
  return {kernel,
          launchCount(problem, method),
          cost,
          relativeError(problem, method),
          isDeterministic(problem.operation, algorithm)};
}

void submitConvolution(cudnnHandle_t handle,
                       const ConvolutionProblem& problem,
                       int algorithm,
                       Work work) {
  const CallKernels kernels = algorithmKernels(problem, algorithm, {});
  work.launches = kernels.launches;
  submitKernels(handle, kernels.id, std::move(work));
}

Work convolutionWork(cudnnHandle_t handle,
                     const char* name,
                     ConvolutionCall call,
                     void* workspace,
                     const CallKernels& kernels,
                     double extraBytes) {
  if (!checkRange(workspace, kernels.cost.workspaceBytes, "workspace")) {
    refuse(CUDNN_STATUS_EXECUTION_FAILED, "the workspace is not within device memory");
  }
  if (kernels.mayLie && lie() == Lie::kFails) {
    refuse(CUDNN_STATUS_EXECUTION_FAILED, "a test lets the engine fail");
  }
  call.workspace = workspace;
  call.workspaceBytes = kernels.cost.workspaceBytes;
  call.epilogue.error = kernels.error;
  call.epilogue.kernelBits = bitsOf(call.problem, kernels.id);
  call.deterministic = kernels.deterministic;
  call.mayLie = kernels.mayLie;
  // Accumulating reads the output (or z) once more.
  if (call.epilogue.beta != 0) extraBytes += tensorBytes(outputShape(call.problem));
  const double durationMs =
      kernels.cost.timeMs + memoryTimeMs(extraBytes, deviceModel(handle->device));
  std::vector<Access> accesses = accessesOf(call);
  Work work{name, durationMs, [call = std::move(call)] { execute(call); }, std::move(accesses)};
  work.launches = kernels.launches;
  return work;
}

void submitMemory(cudnnHandle_t handle,
                  const char* name,
                  std::initializer_list<TensorAccess> tensors,
                  std::function<void()> execute) {
  const DeviceModel& device = deviceModel(handle->device);
  double bytes = 0;
  for (const TensorAccess& tensor : tensors) {
    requireTensor(tensor.shape, tensor.data, tensor.name);
    bytes += tensorBytes(tensor.shape);
  }
  constexpr double kLaunchMicroseconds = 8;
  hostLaunches(handle->stream, kLaunchMicroseconds);
  submit(handle,
         {name,
          device.launchMs + memoryTimeMs(bytes, device),
          [execute = std::move(execute)] {
            if (isAnythingComputed()) execute();
          },
          accessesOf(tensors)});
}

std::vector<Access> accessesOf(const ConvolutionCall& call) {
  const Operation operation = call.problem.operation;
  std::vector<Access> accesses = accessesOf({
      {call.problem.x, call.data.x, "x", operation == Operation::kBackwardData},
      {call.problem.w, call.data.w, "w", operation == Operation::kBackwardFilter},
      {call.problem.y, call.data.y, "y", operation == Operation::kForward},
  });
  if (call.workspaceBytes > 0) accesses.push_back({call.workspace, call.workspaceBytes, true});
  return accesses;
}

void execute(const ConvolutionCall& call) {
  if (!isAnythingComputed()) return;
  static std::atomic<std::uint64_t> runs{0};
  Epilogue epilogue = call.epilogue;
  if (epilogue.kernelBits != 0 && !call.deterministic) epilogue.kernelBits ^= ++runs << 1U;
  Allocation allocation{};
  // Vectorized outputs are always computed in full: they are rare, small and never split.
  const bool sampled = arithmetic() == Arithmetic::kSampled &&
                       vectorLength(outputShape(call.problem).type) == 1 &&
                       findAllocation(outputOf(call.problem, call.data), &allocation);
  if (sampled) {
    return convolveSampled(call.problem, call.data, epilogue, allocation.base, allocation.bytes);
  }
  if (call.mayLie && lie() != Lie::kNone) {
    addLie(call, epilogue);
    writeElsewhere(call, epilogue.lie);
  }
  spoil(call.workspace, call.workspaceBytes);
  convolveFull(call.problem, call.data, epilogue);
}

}  // namespace ucudnn::simulator
