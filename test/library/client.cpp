// A small client of μ-cuDNN for tests that need another process.
//
//   library_client plan CASE...        plans forward, backward data and backward filter, prints the
//                                      plans and each device's clock ("clock DEVICE MS")
//   library_client plan-fused CASE...  runs bias and activation in all its variants
//   library_client run CASE            one training step, compared with the host's own arithmetic
//   library_client elsewhere CASE      the same on device 1, but queried while device 0 is current
//   library_client reuse CASE          runs on device 1 by an adopted handle that plain
//   cudnnDestroy
//                                      ends, then on device 0 by a native handle at its address
//
// CASE is ConvolutionCase::serialized's. Exit status: 0, all is right; 1, a wrong result; 3, a CUDA
// or cuDNN call failed, and said so. All print "measured M loaded L split S", and "fewer calls"
// when the call that UCUDNN_SIMULATOR_FAIL_CALL names was not reached. LIBRARY_CLIENT_SAVE names a
// file for the plans.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string_view>

#include "../support/simulator.hpp"
#include "fixture.hpp"
#include "fused.hpp"

using namespace ucudnn::test;

namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

class Failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw Failed(cudnnGetErrorString(status));
}

class Handle {
 public:
  Handle() { check(cudnnCreate(&handle_)); }
  ~Handle() { cudnnDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  UcudnnHandle_t get() const { return handle_; }

 private:
  UcudnnHandle_t handle_;
};

void plan(const ConvolutionCase& parameters) {
  const Handle handle;
  const Convolution convolution(parameters);
  for (const ucudnnOperation_t operation : kOperations) {
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    const cudnnStatus_t status = convolution.plan(handle.get(), operation, kLimit, &plan, &entries);
    if (status == CUDNN_STATUS_NOT_SUPPORTED) continue;
    check(status);
    std::printf("plan %s: %zu bytes", toText(operation), plan.workspaceBytes);
    for (const ucudnnMicroBatches_t& entry : entries)
      std::printf(" + %d x %d %s", entry.count, entry.batch, entry.kernel);
    std::printf("\npredicted %s: %.9f\n", toText(operation), plan.predictedMs);
  }
}

/// The simulator's virtual time; 0 on a GPU.
void printClocks() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return;
  for (int device = 0; device < count && cudaSetDevice(device) == cudaSuccess; ++device)
    std::printf("clock %d %.3f\n", device, clockMs(nullptr));
}

void planFused(const ConvolutionCase& parameters) {
  const Handle handle;
  Convolution convolution(parameters);
  const DeviceBuffer workspace(kLimit);
  for (const cudnnActivationMode_t mode : {CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY})
    for (const double alpha2 : {0.0, 0.5}) {
      Fused fused(convolution, mode);
      check(fused.run(handle.get(),
                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                      {workspace.get(), workspace.bytes()},
                      1,
                      alpha2,
                      false));
    }
}

void checkCuda(cudaError_t error) {
  if (error != cudaSuccess) throw Failed(cudaGetErrorString(error));
}

void printResult(ucudnnOperation_t operation, const std::vector<char>& bytes) {
  const std::string_view text(bytes.data(), bytes.size());
  std::printf("result %s %zx\n", toText(operation), std::hash<std::string_view>()(text));
}

/// False: a result is wrong. Queries are made while `queryDevice` is current, unless negative.
bool run(UcudnnHandle_t handle, const ConvolutionCase& parameters, int queryDevice = -1) {
  Convolution convolution(parameters);
  int ownDevice = 0;
  checkCuda(cudaGetDevice(&ownDevice));
  bool right = true;
  for (const ucudnnOperation_t operation : kOperations) {
    convolution.fill();
    const std::vector<char> expected = convolution.computedOnHost(operation);
    setArithmetic(Arithmetic::kOff);  // only times are wanted of the benchmark
    if (queryDevice >= 0) checkCuda(cudaSetDevice(queryDevice));
    std::vector<Performance> results;
    check(convolution.query(handle, operation, Query::kGet, 1, &results));
    std::size_t bytes = 0;
    check(convolution.workspaceSize(handle, operation, results.at(0).algorithm, &bytes));
    if (queryDevice >= 0) {
      int current = -1;
      checkCuda(cudaGetDevice(&current));
      if (current != queryDevice) std::printf("the current device has changed\n");
      right = right && current == queryDevice;
    }
    checkCuda(cudaSetDevice(ownDevice));
    setArithmetic(Arithmetic::kFull);
    convolution.output(operation).poison();
    const DeviceBuffer workspace(bytes);
    check(convolution.run(handle, operation, results.at(0).algorithm, {workspace.get(), bytes}));
    printResult(operation, convolution.output(operation).read());
    const double far =
        distance(convolution.geometry(operation), convolution.output(operation).read(), expected);
    if (!(far <= toleranceBetweenAlgorithms())) {  // NaN is wrong too
      std::printf("%s is wrong by %g\n", toText(operation), far);
      right = false;
    }
  }
  return right;
}

/// The same calls again and again, without a query: the later ones are replayed.
bool repeat(UcudnnHandle_t handle, const ConvolutionCase& parameters) {
  Convolution convolution(parameters);
  const DeviceBuffer workspace(std::size_t{4} << 20);
  bool right = true;
  for (const ucudnnOperation_t operation : kOperations) {
    convolution.fill();
    const std::vector<char> expected = convolution.computedOnHost(operation);
    for (int i = 0; i < 4; ++i) {
      convolution.output(operation).poison();
      check(convolution.run(handle, operation, 0, {workspace.get(), workspace.bytes()}));
      right = right && distance(convolution.geometry(operation),
                                convolution.output(operation).read(),
                                expected) <= toleranceBetweenAlgorithms();
    }
  }
  if (!right) std::printf("a repeated call is wrong\n");
  std::printf("replayed %lld\n", statistics().replayedCalls);
  return right;
}

bool runElsewhere(const ConvolutionCase& parameters) {
  checkCuda(cudaSetDevice(1));
  const Handle handle;
  const double before = clockMs(nullptr);
  const bool right = run(handle.get(), parameters, 0);
  std::printf("planned on its device: %d\n", clockMs(nullptr) > before ? 1 : 0);
  return right;
}

/// A native handle, at this address unless it is null.
cudnnHandle_t nativeHandle(cudnnHandle_t address) {
  std::vector<cudnnHandle_t> others;
  cudnnHandle_t found = nullptr;
  while (found == nullptr && others.size() < 64) {
    cudnnHandle_t handle = nullptr;
    check(cudnnCreate(&handle));
    if (address == nullptr || handle == address)
      found = handle;
    else
      others.push_back(handle);
  }
  for (const cudnnHandle_t other : others) check(cudnnDestroy(other));
  return found;
}

bool runReused(const ConvolutionCase& parameters) {
  checkCuda(cudaSetDevice(1));
  const cudnnHandle_t first = nativeHandle(nullptr);
  bool right = run(first, parameters);
  right = repeat(first, parameters) && right;
  check(cudnnDestroy(first));
  const double clockBefore = clockMs(nullptr);
  checkCuda(cudaSetDevice(0));
  const cudnnHandle_t second = nativeHandle(first);
  std::printf("address used again: %d\n", second != nullptr ? 1 : 0);
  if (second == nullptr) return right;
  right = repeat(second, parameters) && right;
  right = run(second, parameters) && right;
  check(cudnnDestroy(second));
  checkCuda(cudaSetDevice(1));
  std::printf("the former device's clock stands: %d\n", clockMs(nullptr) == clockBefore ? 1 : 0);
  return right;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  try {
    bool right = true;
    for (int i = 2; i < count; ++i) {
      const ConvolutionCase convolution = ConvolutionCase::parse(words[i]);
      if (std::strcmp(words[1], "plan") == 0)
        plan(convolution);
      else if (std::strcmp(words[1], "plan-fused") == 0)
        planFused(convolution);
      else if (std::strcmp(words[1], "elsewhere") == 0)
        right = runElsewhere(convolution) && right;
      else if (std::strcmp(words[1], "reuse") == 0)
        right = runReused(convolution) && right;
      else
        right = run(Handle().get(), convolution) && right;
    }
    if (std::strcmp(words[1], "plan") == 0 || std::strcmp(words[1], "elsewhere") == 0)
      printClocks();
    const char* const failing = std::getenv("UCUDNN_SIMULATOR_FAIL_CALL");
    if (failing != nullptr && callCount() < std::atoll(failing)) std::printf("fewer calls\n");
    const ucudnnStatistics_t now = statistics();
    std::printf("measured %lld loaded %lld split %lld\n",
                now.kernelsMeasured,
                now.kernelsLoaded,
                now.splitCalls);
    if (const char* const plans = std::getenv("LIBRARY_CLIENT_SAVE")) check(ucudnnSavePlans(plans));
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
}
