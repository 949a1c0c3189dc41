// The handle's life and its settings.
#include <ucudnn/diagnosis.h>
#include <ucudnn/settings.h>

#include "api/guard.hpp"
#include "api/lookup.h"
#include "api/sized.hpp"
#include "cuda/calling_threads.hpp"
#include "cuda/cudnn.hpp"
#include "support/text.hpp"

using namespace ucudnn;

namespace {

/// Changes one handle's settings: `change` gets a copy, which takes effect as a whole or not at
/// all.
template <typename Change>
cudnnStatus_t changeSettings(const char* function, cudnnHandle_t handle, Change change) noexcept {
  Context* const context = contextOf(handle);
  if (context == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return guarded(function, [&] {
    Settings settings = context->settings();
    change(settings);
    context->setSettings(std::move(settings));
    return CUDNN_STATUS_SUCCESS;
  });
}

/// Sets what an environment variable sets. Throws BadSetting.
void parseSetting(Settings& settings, const std::string& variable, const std::string& value) {
  for (const EnvironmentVariable& row : environmentVariables()) {
    if (row.name != variable) continue;
    try {
      return row.parse(settings, value);
    } catch (const std::invalid_argument& error) {
      throw BadSetting(variable + "=" + excerpt(value) + ": " + error.what() +
                       "; accepted: " + row.type);
    }
  }
}

/// Changes the process's log. Throws BadSetting.
cudnnStatus_t changeLog(const char* function, const char* variable, const char* value) noexcept {
  return guarded(function, [&] {
    Settings settings;
    settings.logLevel = Log::instance().level();
    settings.logFile = Log::instance().file();
    if (value != nullptr && *value != '\0')
      parseSetting(settings, variable, value);
    else
      settings.logFile.clear();
    return Log::instance().configure(settings.logLevel, settings.logFile) ? CUDNN_STATUS_SUCCESS
                                                                          : CUDNN_STATUS_BAD_PARAM;
  });
}

}  // namespace

extern "C" {

cudnnStatus_t ucudnnCreate(cudnnHandle_t* handle) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *handle = nullptr;
  return guarded("cudnnCreate", [&] {
    Settings settings = environmentSettings();
    cudnnHandle_t native = nullptr;
    const cudnnStatus_t status = cudnn().create(&native);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    CudnnHandle owner(native);
    addContext(native, std::move(settings));
    *handle = owner.release();
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t ucudnnDestroy(cudnnHandle_t handle) {
  removeContext(handle);
  return cudnn().destroy(handle);
}

cudnnStatus_t ucudnnSetBatchSizePolicy(cudnnHandle_t handle, ucudnnBatchSizePolicy_t policy) {
  return changeSettings("ucudnnSetBatchSizePolicy", handle, [&](Settings& settings) {
    if (policy < UCUDNN_BATCH_SIZE_POLICY_UNDIVIDED || policy > UCUDNN_BATCH_SIZE_POLICY_ALL)
      throw BadSetting("the batch size policy is none of ucudnnBatchSizePolicy_t");
    settings.batchSizePolicy = static_cast<BatchSizePolicy>(policy);
  });
}

cudnnStatus_t ucudnnSetKernels(cudnnHandle_t handle, ucudnnKernels_t kernels) {
  return changeSettings("ucudnnSetKernels", handle, [&](Settings& settings) {
    if (kernels < UCUDNN_KERNELS_LEGACY || kernels > UCUDNN_KERNELS_ALL)
      throw BadSetting("the kernels are none of ucudnnKernels_t");
    settings.kernels = static_cast<Kernels>(kernels);
  });
}

cudnnStatus_t ucudnnSetTuning(cudnnHandle_t handle, ucudnnTuning_t tuning) {
  return changeSettings("ucudnnSetTuning", handle, [&](Settings& settings) {
    if (tuning < UCUDNN_TUNING_EXHAUSTIVE || tuning > UCUDNN_TUNING_FAST)
      throw BadSetting("the tuning is none of ucudnnTuning_t");
    settings.tuning = static_cast<Tuning>(tuning);
  });
}

cudnnStatus_t ucudnnSetMaxError(cudnnHandle_t handle, double error) {
  return changeSettings("ucudnnSetMaxError", handle, [&](Settings& settings) {
    if (!isMaxError(error)) throw BadSetting("the error is negative, infinite or not a number");
    settings.maxError = error;
  });
}

cudnnStatus_t ucudnnSetDefaultWorkspaceLimit(cudnnHandle_t handle, size_t bytes) {
  return changeSettings("ucudnnSetDefaultWorkspaceLimit", handle, [&](Settings& settings) {
    settings.defaultWorkspaceLimitBytes = bytes;
    settings.defaultWorkspaceLimitGiven = true;
  });
}

cudnnStatus_t ucudnnSetWorkspaceLimit(cudnnHandle_t handle, size_t bytes) {
  return changeSettings("ucudnnSetWorkspaceLimit", handle, [&](Settings& settings) {
    settings.workspaceLimitBytes = bytes;
  });
}

cudnnStatus_t ucudnnSetTotalWorkspaceSize(cudnnHandle_t handle, size_t bytes) {
  return changeSettings("ucudnnSetTotalWorkspaceSize", handle, [&](Settings& settings) {
    settings.totalWorkspaceBytes = bytes;
  });
}

cudnnStatus_t ucudnnSetTotalWorkspacePolicy(cudnnHandle_t handle,
                                            ucudnnTotalWorkspacePolicy_t policy) {
  return changeSettings("ucudnnSetTotalWorkspacePolicy", handle, [&](Settings& settings) {
    if (policy < UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE ||
        policy > UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO)
      throw BadSetting("the policy is none of ucudnnTotalWorkspacePolicy_t");
    parseSetting(settings,
                 "UCUDNN_TOTAL_WORKSPACE_POLICY",
                 toText(static_cast<TotalWorkspacePolicy>(policy)));
  });
}

cudnnStatus_t ucudnnReleaseGraphs(cudnnHandle_t handle) {
  Context* const context = contextOf(handle);
  if (context == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return guarded("ucudnnReleaseGraphs", [&] {
    context->releaseGraphs();
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t ucudnnSetGraphMemory(cudnnHandle_t handle, size_t bytes) {
  return changeSettings("ucudnnSetGraphMemory", handle, [&](Settings& settings) {
    settings.graphMemoryBytes = bytes;
  });
}

cudnnStatus_t ucudnnSetDeviceMemory(cudnnHandle_t handle, size_t bytes) {
  return changeSettings("ucudnnSetDeviceMemory", handle, [&](Settings& settings) {
    settings.deviceMemoryBytes = bytes;
  });
}

cudnnStatus_t ucudnnSetDatabase(cudnnHandle_t handle, const char* path) {
  return changeSettings("ucudnnSetDatabase", handle, [&](Settings& settings) {
    settings.databasePath = path != nullptr ? path : "";
  });
}

cudnnStatus_t ucudnnSetPlans(cudnnHandle_t handle, const char* path) {
  Context* const context = contextOf(handle);
  if (context == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return guarded("ucudnnSetPlans", [&] {
    Settings settings = context->settings();
    settings.plansPath = path != nullptr ? path : "";
    context->setSettings(std::move(settings), Context::PlansFile::kRead);
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t ucudnnSetPlansStrict(cudnnHandle_t handle, int enabled) {
  return changeSettings("ucudnnSetPlansStrict", handle, [&](Settings& settings) {
    settings.plansStrict = enabled != 0;
  });
}

cudnnStatus_t ucudnnSetBenchmarkDevices(cudnnHandle_t handle, const char* devices) {
  return changeSettings("ucudnnSetBenchmarkDevices", handle, [&](Settings& settings) {
    settings.benchmarkDevices.clear();
    settings.allBenchmarkDevices = false;
    if (devices != nullptr && *devices != '\0')
      parseSetting(settings, "UCUDNN_BENCHMARK_DEVICES", devices);
  });
}

cudnnStatus_t ucudnnSetBenchmarkMemory(cudnnHandle_t handle, size_t bytes) {
  return changeSettings("ucudnnSetBenchmarkMemory", handle, [&](Settings& settings) {
    settings.benchmarkMemoryBytes = bytes;
  });
}

cudnnStatus_t ucudnnSetBenchmarkShare(cudnnHandle_t handle, double share) {
  return changeSettings("ucudnnSetBenchmarkShare", handle, [&](Settings& settings) {
    if (!isBenchmarkShare(share))
      throw BadSetting("the share is neither between 0 and 1 nor infinity");
    settings.benchmarkShare = share;
  });
}

cudnnStatus_t ucudnnSetBorrowOutput(cudnnHandle_t handle, int enabled) {
  return changeSettings("ucudnnSetBorrowOutput", handle, [&](Settings& settings) {
    settings.borrowOutput = enabled != 0;
  });
}

cudnnStatus_t ucudnnSetDeterministic(cudnnHandle_t handle, int enabled) {
  return changeSettings("ucudnnSetDeterministic", handle, [&](Settings& settings) {
    settings.deterministic = enabled != 0;
  });
}

cudnnStatus_t ucudnnSetEquivalenceTest(cudnnHandle_t handle, int enabled) {
  return changeSettings("ucudnnSetEquivalenceTest", handle, [&](Settings& settings) {
    settings.equivalenceTest = enabled != 0;
  });
}

cudnnStatus_t ucudnnGetSettings(cudnnHandle_t handle, ucudnnSettings_t* settings) {
  Context* const context = contextOf(handle);
  if (context == nullptr || !isSized(settings)) return CUDNN_STATUS_BAD_PARAM;
  const Settings& now = context->settings();
  ucudnnSettings_t all{};
  all.batchSizePolicy = static_cast<ucudnnBatchSizePolicy_t>(now.batchSizePolicy);
  all.kernels = static_cast<ucudnnKernels_t>(now.kernels);
  all.tuning = static_cast<ucudnnTuning_t>(now.tuning);
  all.maxError = now.maxError;
  all.defaultWorkspaceLimit = now.defaultWorkspaceLimitBytes;
  all.workspaceLimit = now.workspaceLimitBytes;
  all.totalWorkspaceSize = now.totalWorkspaceBytes;
  all.totalWorkspacePolicy = static_cast<ucudnnTotalWorkspacePolicy_t>(now.totalWorkspacePolicy);
  all.graphMemory = now.graphMemoryBytes;
  all.database = now.databasePath.c_str();
  all.plans = now.plansPath.c_str();
  all.plansStrict = now.plansStrict ? 1 : 0;
  all.benchmarkDeviceCount =
      now.allBenchmarkDevices ? -1 : static_cast<int>(now.benchmarkDevices.size());
  all.benchmarkDevices = now.benchmarkDevices.data();
  all.benchmarkMemory = now.benchmarkMemoryBytes;
  all.benchmarkShare = now.benchmarkShare;
  all.borrowOutput = now.borrowOutput ? 1 : 0;
  all.deterministic = now.deterministic ? 1 : 0;
  all.equivalenceTest = now.equivalenceTest ? 1 : 0;
  all.deviceMemory = now.deviceMemoryBytes;
  writeSized(all, settings);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t ucudnnSetLogLevel(const char* level) {
  if (level == nullptr || *level == '\0') return CUDNN_STATUS_BAD_PARAM;
  return changeLog("ucudnnSetLogLevel", "UCUDNN_LOG_LEVEL", level);
}

cudnnStatus_t ucudnnSetLogFile(const char* path) {
  return changeLog("ucudnnSetLogFile", "UCUDNN_LOG_FILE", path);
}

cudnnStatus_t ucudnnSetProcessWorkspaceLimit(size_t bytes) {
  return guarded("ucudnnSetProcessWorkspaceLimit", [&] {
    limitWorkspaces(bytes);
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t ucudnnGetProcessSettings(ucudnnProcessSettings_t* settings) {
  if (!isSized(settings)) return CUDNN_STATUS_BAD_PARAM;
  return guarded("ucudnnGetProcessSettings", [&] {
    ucudnnProcessSettings_t all{};
    all.logLevel = toText(Log::instance().level());
    all.logFile = Log::instance().file();
    all.workspaceLimit = processWorkspaceLimit();
    writeSized(all, settings);
    return CUDNN_STATUS_SUCCESS;
  });
}

int ucudnnLookUpCudnn(ucudnnLookup_t lookup) {
  return lookUpCudnn(lookup) ? 1 : 0;
}

void ucudnnServeUnmodified(void) {
  serveUnmodified();
}

void ucudnnKnowDeviceWaits(int known) {
  CallingThreads::knowWaits(known != 0);
}

void* ucudnnBeginDeviceWait(void) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return nullptr;
  try {
    CallingThreads& threads = callingThreads(device);
    threads.beginWait();
    return &threads;
  } catch (const std::bad_alloc&) {  // no handle has been made for the device
    return nullptr;
  }
}

void ucudnnEndDeviceWait(void* wait) {
  if (wait != nullptr) static_cast<CallingThreads*>(wait)->endWait();
}

const char* ucudnnGetVersionString(void) {
  return UCUDNN_VERSION_STRING;
}

}  // extern "C"
