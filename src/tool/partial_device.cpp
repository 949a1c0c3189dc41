#include "tool/partial_device.hpp"

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "tool/device.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {

/// The driver's functions, which neither the runtime has nor the simulator.
struct PartialDevice::Driver {
  Driver() {
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw DeviceError("--multiprocessors: there is no libcuda.so.1");
    find(getDevice, "cuDeviceGet");
    find(getResource, "cuDeviceGetDevResource");
    find(split, "cuDevSmResourceSplitByCount");
    find(describe, "cuDevResourceGenerateDesc");
    find(create, "cuGreenCtxCreate");
    find(createStream, "cuGreenCtxStreamCreate");
    find(destroy, "cuGreenCtxDestroy");
  }
  ~Driver() = default;  // the library stays: the runtime has it, too
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  template <typename Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr)
      throw DeviceError(fmt::format("--multiprocessors: the driver has no {}", name));
  }

  static void check(CUresult result, const char* call) {
    if (result != CUDA_SUCCESS)
      throw DeviceError(
          fmt::format("--multiprocessors: {}: error {}", call, static_cast<int>(result)));
  }

  void* library;
  decltype(&cuDeviceGet) getDevice;
  decltype(&cuDeviceGetDevResource) getResource;
  decltype(&cuDevSmResourceSplitByCount) split;
  decltype(&cuDevResourceGenerateDesc) describe;
  decltype(&cuGreenCtxCreate) create;
  CUresult (*createStream)(CUstream*, CUgreenCtx, unsigned, int);  // CUDA 12.4 does not declare it
  decltype(&cuGreenCtxDestroy) destroy;
};

PartialDevice::PartialDevice(int device, int multiprocessors)
    : driver_(std::make_unique<Driver>()) {
  // The primary context is active from here on, or it would be made anew for each call.
  tool::check(cudaFree(nullptr), "cudaFree");
  CUdevice number{};
  Driver::check(driver_->getDevice(&number, device), "cuDeviceGet");
  CUdevResource whole{};
  Driver::check(driver_->getResource(number, &whole, CU_DEV_RESOURCE_TYPE_SM),
                "cuDeviceGetDevResource");
  if (multiprocessors < 1 || static_cast<unsigned>(multiprocessors) > whole.sm.smCount)
    throw BadInput(fmt::format("--multiprocessors: device {} has {}", device, whole.sm.smCount));
  CUdevResource part = whole;
  if (static_cast<unsigned>(multiprocessors) < whole.sm.smCount) {
    CUdevResource rest{};
    unsigned groups = 1;
    Driver::check(
        driver_->split(&part, &groups, &whole, &rest, 0, static_cast<unsigned>(multiprocessors)),
        "cuDevSmResourceSplitByCount");
  }
  multiprocessors_ = static_cast<int>(part.sm.smCount);
  CUdevResourceDesc description{};
  Driver::check(driver_->describe(&description, &part, 1), "cuDevResourceGenerateDesc");
  CUgreenCtx context{};
  Driver::check(driver_->create(&context, description, number, CU_GREEN_CTX_DEFAULT_STREAM),
                "cuGreenCtxCreate");
  context_ = context;
  CUstream stream{};
  const CUresult made = driver_->createStream(&stream, context, CU_STREAM_NON_BLOCKING, 0);
  if (made != CUDA_SUCCESS) driver_->destroy(context);
  Driver::check(made, "cuGreenCtxStreamCreate");
  stream_ = stream;
}

PartialDevice::~PartialDevice() {
  static_cast<void>(cudaStreamDestroy(stream_));
  static_cast<void>(driver_->destroy(static_cast<CUgreenCtx>(context_)));
}

}  // namespace ucudnn::tool
