// Handles with static storage (misc/docs/CLIENTS.md, "At run time", 3 and 4): made before main
// without a CUDA call, used and destroyed after it. Prints "ok" last; skipped (exit status 77)
// without a device.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "../support/simulator.hpp"
#include "fixture.hpp"

using namespace ucudnn::test;

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "failed: %s\n", what);
  ::_exit(1);
}

void require(bool condition, const char* what) {
  if (!condition) fail(what);
}

UcudnnHandle_t globalHandle;            // never created: null, and harmless
UcudnnHandle_t handlesOfThePool[2][3];  // as Caffe and Darknet have them

/// Runs and destroys at the end of the process, after everything that main and the library's first
/// use have registered to be torn down.
class Late {
 public:
  Late() { callsBeforeMain_ = callCount(); }
  ~Late() {
    if (!convolution_) return;
    std::size_t bytes = 0;
    require(convolution_->workspaceSize(handle_, UCUDNN_FORWARD, 0, &bytes) == CUDNN_STATUS_SUCCESS,
            "GetWorkspaceSize after main");
    const std::vector<char> expected = convolution_->y().read();
    convolution_->y().poison();
    {
      const DeviceBuffer workspace(bytes);
      require(convolution_->run(handle_, UCUDNN_FORWARD, 0, {workspace.get(), bytes}) ==
                  CUDNN_STATUS_SUCCESS,
              "a planned call after main");
      require(
          distance(convolution_->geometry(UCUDNN_FORWARD), convolution_->y().read(), expected) <=
              1e-6,
          "its result");
    }
    ++parameters_.channels;
    const Convolution unknown(parameters_);
    require(unknown.workspaceSize(handle_, UCUDNN_FORWARD, 0, &bytes) == CUDNN_STATUS_SUCCESS,
            "planning after main");
    convolution_.reset();
    require(cudnnDestroy(handle_) == CUDNN_STATUS_SUCCESS, "destroying after main");
    std::puts("ok");
    std::fflush(stdout);
  }
  Late(const Late&) = delete;
  Late& operator=(const Late&) = delete;

  std::int64_t callsBeforeMain() const { return callsBeforeMain_; }

  void use() {
    require(cudnnCreate(&handle_) == CUDNN_STATUS_SUCCESS, "cudnnCreate");
    convolution_ = std::make_unique<Convolution>(parameters_);
    std::size_t bytes = 0;
    require(convolution_->workspaceSize(handle_, UCUDNN_FORWARD, 0, &bytes) == CUDNN_STATUS_SUCCESS,
            "GetWorkspaceSize");
    const DeviceBuffer workspace(bytes);
    require(convolution_->run(handle_, UCUDNN_FORWARD, 0, {workspace.get(), bytes}) ==
                CUDNN_STATUS_SUCCESS,
            "a planned call");
  }

 private:
  std::int64_t callsBeforeMain_ = 0;
  ConvolutionCase parameters_;
  UcudnnHandle_t handle_;
  std::unique_ptr<Convolution> convolution_;
};
Late late;

}  // namespace

int main() {
  require(callCount() == 0 && late.callsBeforeMain() == 0, "no CUDA call before main");
  require(globalHandle == nullptr && handlesOfThePool[1][2] == nullptr, "handles are null");
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 77;
  late.use();
  return 0;
}
