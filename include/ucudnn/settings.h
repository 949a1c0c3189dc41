/* The handle's life and settings, as the C ABI has them. C++ clients use UcudnnHandle_t. */
#ifndef UCUDNN_SETTINGS_H_
#define UCUDNN_SETTINGS_H_

#include <ucudnn/preamble.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Which micro-batch sizes are tried (μ-cuDNN paper, section III-D). UCUDNN_BATCH_SIZE_POLICY */
typedef enum {
  UCUDNN_BATCH_SIZE_POLICY_UNDIVIDED = 0,    /* "undivided": the mini-batch N only */
  UCUDNN_BATCH_SIZE_POLICY_POWER_OF_TWO = 1, /* "powerOfTwo": 1, 2, ..., N, the largest that fit */
  UCUDNN_BATCH_SIZE_POLICY_ALL = 2           /* "all": every size from 1 to N */
} ucudnnBatchSizePolicy_t;

/** Which kernels plans are made of. UCUDNN_KERNELS */
typedef enum {
  UCUDNN_KERNELS_LEGACY = 0,  /* "legacy": the algorithms of cuDNN's legacy API */
  UCUDNN_KERNELS_ENGINES = 1, /* "engines": the engines of its graph API, from cuDNN 9.2 on */
  UCUDNN_KERNELS_ALL = 2      /* "all": both */
} ucudnnKernels_t;

/** How many kernels are timed to find plans. UCUDNN_TUNING */
typedef enum {
  UCUDNN_TUNING_EXHAUSTIVE = 0, /* "exhaustive": all that could be in a best plan */
  UCUDNN_TUNING_FAST = 1        /* "fast": those likely to be, by times at a middle size */
} ucudnnTuning_t;

/**
 * Creates a native cuDNN handle with μ-cuDNN's settings from the environment. Measures and
 * allocates nothing. CUDNN_STATUS_BAD_PARAM: `handle` is NULL, or a UCUDNN_* variable has a bad
 * value, which the log names. Otherwise returns what cudnnCreate returns. On an error `*handle` is
 * NULL.
 */
UCUDNN_API cudnnStatus_t ucudnnCreate(cudnnHandle_t* handle);

/**
 * Destroys the native handle and what μ-cuDNN kept for it. Plans and measurements stay with the
 * process. A handle that μ-cuDNN has never seen is destroyed, too. Returns what cudnnDestroy
 * returns.
 *
 * A native handle that μ-cuDNN did not create is served with the environment's settings. It belongs
 * to the device that is current whenever it is used. If plain cudnnDestroy destroys it, the next
 * native handle at the same address inherits its settings.
 */
UCUDNN_API cudnnStatus_t ucudnnDestroy(cudnnHandle_t handle);

/*
 * Settings of one handle. They override the environment, from the next query or call on. Plans that
 * don't follow a new setting are not used any more. CUDNN_STATUS_BAD_PARAM: `handle` is NULL, or
 * the value is not accepted; nothing is changed then.
 */

/** See ucudnnBatchSizePolicy_t. */
UCUDNN_API cudnnStatus_t ucudnnSetBatchSizePolicy(cudnnHandle_t handle,
                                                  ucudnnBatchSizePolicy_t policy);

/** See ucudnnKernels_t. */
UCUDNN_API cudnnStatus_t ucudnnSetKernels(cudnnHandle_t handle, ucudnnKernels_t kernels);

/** See ucudnnTuning_t. */
UCUDNN_API cudnnStatus_t ucudnnSetTuning(cudnnHandle_t handle, ucudnnTuning_t tuning);

/**
 * The largest error of the kernels that plans are made of. It is the normalized L2 distance of a
 * kernel's output on random data to the result in double, ||output - exact|| / ||exact||, the
 * rounding of the output included. It is measured once for each kernel, and a quarter is added,
 * because other data may give more. 0 (default): not limited; no split is less accurate than what
 * cuDNN would run without a limit. Negative, infinite or no number: CUDNN_STATUS_BAD_PARAM.
 * UCUDNN_MAX_ERROR
 *
 * If no kernel is known to be that accurate, the convolution is left to cuDNN, whatever its error
 * is, with one warning for each limit. So is a convolution that has not been measured yet. Plans of
 * a file (ucudnnSetPlans) run whatever their error.
 */
UCUDNN_API cudnnStatus_t ucudnnSetMaxError(cudnnHandle_t handle, double error);

/**
 * The limit in bytes of a convolution for which the handle's client has named none. If it is not
 * set, such a convolution may take 64 MiB, or what cuDNN's own choice needs if that is more; after
 * Find* all free memory. UCUDNN_DEFAULT_WORKSPACE_LIMIT
 */
UCUDNN_API cudnnStatus_t ucudnnSetDefaultWorkspaceLimit(cudnnHandle_t handle, size_t bytes);

/**
 * A cap in bytes for every convolution, whatever limit or workspace its client names. Queries
 * report no more, and calls use no more of the workspace that they are given. SIZE_MAX: no cap. It
 * is exceeded only if cuDNN has no kernel within it. Workspace of a total is not capped.
 * UCUDNN_WORKSPACE_LIMIT
 */
UCUDNN_API cudnnStatus_t ucudnnSetWorkspaceLimit(cudnnHandle_t handle, size_t bytes);

/**
 * Bytes that all convolutions of a network share (WD); 0: each has its own limit (WR).
 * UCUDNN_TOTAL_WORKSPACE_SIZE
 *
 * With a total μ-cuDNN owns that much device memory. Queries name algorithms that need none, and
 * the workspaces and limits that the client passes are ignored. Handles of one device with the same
 * total and policies are one network and share it. It is freed when the last of them is destroyed
 * or changed. A captured CUDA graph has workspace besides: see ucudnnReleaseGraphs.
 *
 * A call never fails for lack of workspace if cuDNN would succeed with what the named algorithm
 * needs. A deterministic algorithm named at the call, or UCUDNN_DETERMINISTIC, is honoured if any
 * deterministic kernel, split or not, fits what the call may use. If none does, another kernel
 * runs, and one warning for each convolution says so.
 */
UCUDNN_API cudnnStatus_t ucudnnSetTotalWorkspaceSize(cudnnHandle_t handle, size_t bytes);

/**
 * Frees the workspace of the graphs that handles of this network (see ucudnnSetTotalWorkspaceSize)
 * have captured so far, and waits for the device. REQUIRES: none of these graphs is launched any
 * more, and none of the network's streams is being captured.
 *
 * Each capture has workspace of its own, as much as the network's convolutions need, within the
 * total. This holds for 16 graphs at a time; further ones run without. If this function is not
 * called, a call frees a graph's workspace after the graph, and all that was instantiated from it,
 * have been destroyed; the last μ-cuDNN handle of the process frees the rest.
 * CUDNN_STATUS_BAD_PARAM: `handle` is NULL.
 */
UCUDNN_API cudnnStatus_t ucudnnReleaseGraphs(cudnnHandle_t handle);

/** How the total is used. UCUDNN_TOTAL_WORKSPACE_POLICY */
typedef enum {
  UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE = 0, /* "divide": a segment for each convolution */
  UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE = 1,  /* "share": streams take turns with an arena */
  UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO = 2    /* "auto" (default): the same as "share" */
} ucudnnTotalWorkspacePolicy_t;

/** CUDNN_STATUS_BAD_PARAM, too: DIVIDE in a build without UCUDNN_DIVIDE. */
UCUDNN_API cudnnStatus_t ucudnnSetTotalWorkspacePolicy(cudnnHandle_t handle,
                                                       ucudnnTotalWorkspacePolicy_t policy);

/**
 * Device memory in bytes, on each device, for the CUDA graphs that replay calls: 64 MiB by default,
 * and 0 in a program under `ucudnn run`. 0: the handle's calls are not replayed.
 * UCUDNN_GRAPH_MEMORY
 *
 * While a call is captured, cudaDeviceSynchronize and cuCtxSynchronize fail in other threads, and
 * the captured call may crash. A thread that calls μ-cuDNN on the device waits until the capture
 * has ended. If a thread calls these functions but never μ-cuDNN, set 0.
 *
 * A call of several kernels that repeats with the same pointers and factors becomes one launch of a
 * graph. The graphs that were used least recently make room for new ones.
 */
UCUDNN_API cudnnStatus_t ucudnnSetGraphMemory(cudnnHandle_t handle, size_t bytes);

/**
 * Bytes of device memory for convolutions whose tensors are in host memory; SIZE_MAX: what is free;
 * 0 (default): tensors are on the device. UCUDNN_DEVICE_MEMORY
 *
 * Then any tensor of a convolution call, and of the operations of <ucudnn/small_layers.h>, may be
 * in host memory, pinned (cudaMallocHost) or pageable. Parts of it are copied to the device and
 * back, beside the kernels, in this memory, which handles of a device share. The call is complete
 * in the order of the handle's stream; the host waits only if a tensor is pageable.
 * CUDNN_STATUS_ALLOC_FAILED: the smallest parts don't fit, and the log says how much they need.
 * CUDNN_STATUS_NOT_SUPPORTED: the stream is being captured, and no equal call has run before, or
 * memory is pageable; or a tensor's elements overlap.
 */
UCUDNN_API cudnnStatus_t ucudnnSetDeviceMemory(cudnnHandle_t handle, size_t bytes);

/**
 * An SQLite file that keeps measurements, or a folder, with a slash at its end, for a file of each
 * machine. NULL or "": measurements live in memory only. UCUDNN_DATABASE
 */
UCUDNN_API cudnnStatus_t ucudnnSetDatabase(cudnnHandle_t handle, const char* path);

/**
 * A file of plans, written by `ucudnn plan --save` or ucudnnSavePlans (<ucudnn/diagnosis.h>). It is
 * read now. NULL or "": none. Its convolutions run by these plans, whatever the policy, and nothing
 * is measured for them. CUDNN_STATUS_BAD_PARAM: it can't be read, or not all of it is in order,
 * which the log says. UCUDNN_PLANS
 */
UCUDNN_API cudnnStatus_t ucudnnSetPlans(cudnnHandle_t handle, const char* path);

/**
 * Not 0: a convolution runs through cuDNN if the file has no plan for the workspace and determinism
 * of the call, or if cuDNN lacks a kernel of that plan. 0 (default): it is planned as usual, with
 * one warning for each convolution. UCUDNN_PLANS_STRICT
 */
UCUDNN_API cudnnStatus_t ucudnnSetPlansStrict(cudnnHandle_t handle, int enabled);

/**
 * The devices that benchmarking may use, "0,1,2" or "all". Only those of the same model as the
 * handle's device help it. NULL or "": its own device alone. UCUDNN_BENCHMARK_DEVICES
 */
UCUDNN_API cudnnStatus_t ucudnnSetBenchmarkDevices(cudnnHandle_t handle, const char* devices);

/**
 * Device memory in bytes that benchmarking may take temporarily, 8 GiB by default. Find*Ex, and
 * calls whose output is overwritten (beta 0), are measured in the caller's own buffers and take
 * none, unless errors are measured (ucudnnSetMaxError). UCUDNN_BENCHMARK_MEMORY
 */
UCUDNN_API cudnnStatus_t ucudnnSetBenchmarkMemory(cudnnHandle_t handle, size_t bytes);

/**
 * The share of the time in convolutions that measuring may take if no query asks for it, 0.03 by
 * default. Infinity: each problem is measured when it is first seen. 0: nothing is measured unless
 * a query asks, or a call can't run otherwise. CUDNN_STATUS_BAD_PARAM: any other number that is not
 * between 0 and 1. UCUDNN_BENCHMARK_SHARE
 *
 * Find*, Find*Ex and queries that name a limit measure at once. A problem that is seen without one
 * runs as cuDNN runs it. It is measured when its repetition pays for it: a few kernels in a call,
 * for no longer than UCUDNN_BENCHMARK_STALL. If a cap leaves a call's own kernel too little
 * workspace, that kernel runs on parts of the batch, or a slower one runs. Such a problem is
 * measured, beyond the share, once its calls have taken as long as measuring takes.
 */
UCUDNN_API cudnnStatus_t ucudnnSetBenchmarkShare(cudnnHandle_t handle, double share);

/**
 * Not 0: if a call overwrites its output, micro-batches use the part of it that is yet to be
 * written as additional workspace, beyond any limit. 0: only the workspace is used.
 * UCUDNN_BORROW_OUTPUT
 */
UCUDNN_API cudnnStatus_t ucudnnSetBorrowOutput(cudnnHandle_t handle, int enabled);

/** Not 0: only kernels run that give the same bits each time. UCUDNN_DETERMINISTIC */
UCUDNN_API cudnnStatus_t ucudnnSetDeterministic(cudnnHandle_t handle, int enabled);

/**
 * Not 0: each split result is compared with plain cuDNN's, and the distance is logged at level info
 * (ucudnnSetLogLevel). This is slow. UCUDNN_EQUIVALENCE_TEST
 */
UCUDNN_API cudnnStatus_t ucudnnSetEquivalenceTest(cudnnHandle_t handle, int enabled);

/**
 * The settings of a handle, from its setters and the environment. A member has its setter's unit.
 * Later versions may add members at the end, so `size` says which the caller knows.
 */
typedef struct {
  size_t size; /* sizeof(ucudnnSettings_t), set by the caller */
  ucudnnBatchSizePolicy_t batchSizePolicy;
  ucudnnKernels_t kernels;
  ucudnnTuning_t tuning;
  double maxError;
  size_t defaultWorkspaceLimit;
  size_t workspaceLimit; /* of the handle, whatever ucudnnSetProcessWorkspaceLimit says */
  size_t totalWorkspaceSize;
  ucudnnTotalWorkspacePolicy_t totalWorkspacePolicy;
  size_t graphMemory;
  const char* database; /* "": none, as in `plans` */
  const char* plans;
  int plansStrict;
  int benchmarkDeviceCount;    /* -1: all; 0: the handle's own */
  const int* benchmarkDevices; /* their numbers */
  size_t benchmarkMemory;
  double benchmarkShare;
  int borrowOutput;
  int deterministic;
  int equivalenceTest;
  size_t deviceMemory;
} ucudnnSettings_t;

/**
 * The settings of a handle. Its pointers are valid until a setting of the handle is changed, or the
 * handle destroyed. CUDNN_STATUS_BAD_PARAM: `handle` or `settings` is NULL, or `size` is not set.
 */
UCUDNN_API cudnnStatus_t ucudnnGetSettings(cudnnHandle_t handle, ucudnnSettings_t* settings);

/*
 * Settings of the process.
 */

/**
 * "off", "error", "warn" (default), "info" or "debug"; else CUDNN_STATUS_BAD_PARAM.
 * UCUDNN_LOG_LEVEL
 */
UCUDNN_API cudnnStatus_t ucudnnSetLogLevel(const char* level);

/**
 * The file that the log is appended to; NULL or "": stderr. UCUDNN_LOG_FILE
 * CUDNN_STATUS_BAD_PARAM: it can't be opened, and the log stays where it was.
 */
UCUDNN_API cudnnStatus_t ucudnnSetLogFile(const char* path);

/**
 * ucudnnSetWorkspaceLimit for every handle of the process, future ones included. Each handle has it
 * at its next query or call, on whichever thread. A handle can be given another limit after that.
 */
UCUDNN_API cudnnStatus_t ucudnnSetProcessWorkspaceLimit(size_t bytes);

/** The settings of the process. Later versions may add members at the end. */
typedef struct {
  size_t size;           /* sizeof(ucudnnProcessSettings_t), set by the caller */
  const char* logLevel;  /* as ucudnnSetLogLevel takes it */
  const char* logFile;   /* "": stderr */
  size_t workspaceLimit; /* of ucudnnSetProcessWorkspaceLimit; SIZE_MAX: none */
} ucudnnProcessSettings_t;

/**
 * The settings of the process, from their setters and the environment. Needs no handle. Its
 * pointers stay valid. CUDNN_STATUS_BAD_PARAM: `settings` is NULL, or its `size` is not set.
 */
UCUDNN_API cudnnStatus_t ucudnnGetProcessSettings(ucudnnProcessSettings_t* settings);

#ifdef __cplusplus
}
#endif

#endif /* UCUDNN_SETTINGS_H_ */
