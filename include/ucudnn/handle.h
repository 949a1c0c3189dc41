/* UcudnnHandle_t: the type that a client puts in place of cudnnHandle_t. */
#ifndef UCUDNN_HANDLE_H_
#define UCUDNN_HANDLE_H_

#include <ucudnn/preamble.h>
#include <ucudnn/settings.h>

#ifndef __cplusplus

/** C has no overloads: a C client's convolutions are redirected by <ucudnn/c_names.h> instead. */
typedef cudnnHandle_t UcudnnHandle_t;

#else

extern "C++" {

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

/*
 * A client may return a handle from a function that C calls too (Darknet's cudnn_handle). It
 * travels in the register that cudnnHandle_t would, yet Clang warns at each such function, because
 * a type that is null by default is not a POD. The warning stands in the client's code, so a push
 * and pop here would not silence it.
 */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif

// Not in namespace ucudnn itself: the library's own sources have an enum of this name there, and a
// name found through a using-directive gives way to it.
namespace ucudnn_published {

/** The published μ-cuDNN's names for ucudnnBatchSizePolicy_t. */
enum class BatchSizePolicy {
  undivided = UCUDNN_BATCH_SIZE_POLICY_UNDIVIDED,
  powerOfTwo = UCUDNN_BATCH_SIZE_POLICY_POWER_OF_TWO,
  all = UCUDNN_BATCH_SIZE_POLICY_ALL
};

}  // namespace ucudnn_published

namespace ucudnn {
using namespace ucudnn_published;
}

/**
 * A native cuDNN handle in a type of its own, so that overloads can tell it apart. It owns nothing:
 * cudnnCreate and cudnnDestroy do to it what they do to a cudnnHandle_t. It is as thread-safe as
 * the native handle.
 *
 *  1. One pointer in size and layout, trivially copyable and destructible: a view, passed by value.
 *  2. Null by default. The price: a union that has it as a member needs an initializer, `U u = {}`,
 *     or a constructor of its own.
 *  3. Converts to cudnnHandle_t for free, so a cuDNN function that is not overloaded just works.
 *     Comparisons and tests are the pointer's, through the same conversion; operators of our own
 *     would be ambiguous with it.
 *  4. No constructor calls CUDA, fails or runs before main.
 */
class UcudnnHandle_t {
 public:
  constexpr UcudnnHandle_t() noexcept : native_(nullptr) {}

  /** From a native handle, nullptr, NULL or 0: one constructor for all, so none is ambiguous. */
  constexpr UcudnnHandle_t(cudnnHandle_t native) noexcept : native_(native) {}

  /** From an untyped pointer, explicitly. A template, so that it does not take 0 and NULL. */
  template <typename Void,
            typename = typename std::enable_if<std::is_same<Void, void>::value>::type>
  explicit UcudnnHandle_t(Void* native) noexcept : native_(static_cast<cudnnHandle_t>(native)) {}

  constexpr operator cudnnHandle_t() const noexcept { return native_; }

  // Settings: see <ucudnn/settings.h> for what each means and returns.

  cudnnStatus_t setOptimizerBatchSizePolicy(ucudnnBatchSizePolicy_t policy) const {
    return ucudnnSetBatchSizePolicy(native_, policy);
  }
  cudnnStatus_t setOptimizerBatchSizePolicy(ucudnn_published::BatchSizePolicy policy) const {
    return ucudnnSetBatchSizePolicy(native_, static_cast<ucudnnBatchSizePolicy_t>(policy));
  }
  cudnnStatus_t setKernels(ucudnnKernels_t kernels) const {
    return ucudnnSetKernels(native_, kernels);
  }
  cudnnStatus_t setTuning(ucudnnTuning_t tuning) const { return ucudnnSetTuning(native_, tuning); }
  cudnnStatus_t setMaxError(double error) const { return ucudnnSetMaxError(native_, error); }
  cudnnStatus_t setDefaultWorkspaceLimit(std::size_t bytes) const {
    return ucudnnSetDefaultWorkspaceLimit(native_, bytes);
  }
  cudnnStatus_t setWorkspaceLimit(std::size_t bytes) const {
    return ucudnnSetWorkspaceLimit(native_, bytes);
  }
  cudnnStatus_t setTotalWorkspaceSize(std::size_t bytes) const {
    return ucudnnSetTotalWorkspaceSize(native_, bytes);
  }
  cudnnStatus_t setTotalWorkspacePolicy(ucudnnTotalWorkspacePolicy_t policy) const {
    return ucudnnSetTotalWorkspacePolicy(native_, policy);
  }
  cudnnStatus_t releaseGraphs() const { return ucudnnReleaseGraphs(native_); }
  cudnnStatus_t setGraphMemory(std::size_t bytes) const {
    return ucudnnSetGraphMemory(native_, bytes);
  }
  cudnnStatus_t setDeviceMemory(std::size_t bytes) const {
    return ucudnnSetDeviceMemory(native_, bytes);
  }
  cudnnStatus_t setDatabase(const std::string& path) const {
    return ucudnnSetDatabase(native_, path.c_str());
  }
  cudnnStatus_t setPlans(const std::string& path) const {
    return ucudnnSetPlans(native_, path.c_str());
  }
  cudnnStatus_t setPlansStrict(bool enabled) const {
    return ucudnnSetPlansStrict(native_, enabled ? 1 : 0);
  }
  cudnnStatus_t setBenchmarkMemory(std::size_t bytes) const {
    return ucudnnSetBenchmarkMemory(native_, bytes);
  }
  cudnnStatus_t setBenchmarkShare(double share) const {
    return ucudnnSetBenchmarkShare(native_, share);
  }
  cudnnStatus_t setBenchmarkDevices(const std::string& devices) const {
    return ucudnnSetBenchmarkDevices(native_, devices.c_str());
  }
  /** The published name, with the published type: device ids. */
  cudnnStatus_t setDevices(const std::vector<int>& devices) const {
    std::string list;
    for (int device : devices) list += (list.empty() ? "" : ",") + std::to_string(device);
    return ucudnnSetBenchmarkDevices(native_, list.c_str());
  }
  cudnnStatus_t setBorrowOutput(bool enabled) const {
    return ucudnnSetBorrowOutput(native_, enabled ? 1 : 0);
  }
  cudnnStatus_t setDeterministic(bool enabled) const {
    return ucudnnSetDeterministic(native_, enabled ? 1 : 0);
  }
  cudnnStatus_t setEquivalenceTest(bool enabled) const {
    return ucudnnSetEquivalenceTest(native_, enabled ? 1 : 0);
  }
  /** `settings->size` is set here. */
  cudnnStatus_t getSettings(ucudnnSettings_t* settings) const {
    if (settings != nullptr) settings->size = sizeof(*settings);
    return ucudnnGetSettings(native_, settings);
  }

 private:
  cudnnHandle_t native_;
};

namespace ucudnn {
using ::UcudnnHandle_t;
}

namespace std {
/** The native handle's hash. */
template <>
struct hash<UcudnnHandle_t> {
  size_t operator()(UcudnnHandle_t handle) const noexcept { return hash<cudnnHandle_t>()(handle); }
};
}  // namespace std

}  // extern "C++"

#endif

#endif /* UCUDNN_HANDLE_H_ */
