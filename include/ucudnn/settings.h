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
  UCUDNN_BATCH_SIZE_POLICY_POWER_OF_TWO = 1, /* "powerOfTwo": 1, 2, ..., N; the largest that fit */
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
  UCUDNN_TUNING_FAST = 1        /* "fast": those that probably are, by a middle size's times */
} ucudnnTuning_t;

/**
 * Creates a native cuDNN handle with μ-cuDNN's settings from the environment. Measures and
 * allocates nothing. CUDNN_STATUS_BAD_PARAM: `handle` is NULL, or a UCUDNN_* variable has a bad
 * value, which the log names. Otherwise what cudnnCreate returns; on an error `*handle` is NULL.
 */
UCUDNN_API cudnnStatus_t ucudnnCreate(cudnnHandle_t* handle);

/**
 * Destroys the native handle and what μ-cuDNN kept for it; plans and measurements stay with the
 * process. A handle that μ-cuDNN has never seen is destroyed all the same. Returns what
 * cudnnDestroy returns.
 *
 * A native handle that μ-cuDNN did not create is served with the environment's settings, as one of
 * the device that is current whenever it is used. Destroyed by plain cudnnDestroy, it leaves the
 * settings that it was given to the next native handle that gets its address.
 */
UCUDNN_API cudnnStatus_t ucudnnDestroy(cudnnHandle_t handle);

/*
 * Settings of one handle. They override the environment and hold from the next query or call on; a
 * plan made before is not used any more where it no longer fits. CUDNN_STATUS_BAD_PARAM: `handle`
 * is NULL, or the value is none of those accepted; nothing is changed then.
 */
UCUDNN_API cudnnStatus_t ucudnnSetBatchSizePolicy(cudnnHandle_t handle,
                                                  ucudnnBatchSizePolicy_t policy);

/** A value that is none of ucudnnKernels_t: CUDNN_STATUS_BAD_PARAM. */
UCUDNN_API cudnnStatus_t ucudnnSetKernels(cudnnHandle_t handle, ucudnnKernels_t kernels);

/** A value that is none of ucudnnTuning_t: CUDNN_STATUS_BAD_PARAM. */
UCUDNN_API cudnnStatus_t ucudnnSetTuning(cudnnHandle_t handle, ucudnnTuning_t tuning);

/**
 * The largest error of the kernels that plans are made of: the normalized L2 distance of a kernel's
 * output on random data to what double gives, ||output - exact|| / ||exact||, the rounding of the
 * output included. It is measured once for each kernel, and a quarter is added, as other data may
 * give more. 0: none, which is the default: no split is less accurate than what cuDNN would run
 * without a limit. Negative, infinite or no number: CUDNN_STATUS_BAD_PARAM. UCUDNN_MAX_ERROR
 *
 * Where no kernel is known to be that accurate the convolution is left to cuDNN, whatever its error
 * is, with one warning for each limit; and so is what has not been measured yet. A file of plans
 * (ucudnnSetPlans) is used as it is.
 */
UCUDNN_API cudnnStatus_t ucudnnSetMaxError(cudnnHandle_t handle, double error);

/**
 * In bytes; holds where the handle's client has named no limit. As long as nobody sets it, such a
 * convolution may take 64 MiB, or as much as cuDNN's own choice (Get*) or all that is free (Find*).
 * UCUDNN_DEFAULT_WORKSPACE_LIMIT
 */
UCUDNN_API cudnnStatus_t ucudnnSetDefaultWorkspaceLimit(cudnnHandle_t handle, size_t bytes);

/**
 * In bytes; a cap for every convolution, whatever limit or workspace its client names: queries
 * answer no more, and calls use no more of what they are given. SIZE_MAX: none. It is exceeded only
 * where cuDNN has nothing within it. What a total gives is not capped. UCUDNN_WORKSPACE_LIMIT
 */
UCUDNN_API cudnnStatus_t ucudnnSetWorkspaceLimit(cudnnHandle_t handle, size_t bytes);

/**
 * In bytes, shared by all convolutions of a network (WD); 0: each has its own limit (WR).
 * UCUDNN_TOTAL_WORKSPACE_SIZE
 *
 * With a total μ-cuDNN owns that much device memory: queries name algorithms that need none, and
 * the workspaces and limits that the client passes are ignored. Handles of one device with the same
 * total and policies are one network and share it; it is freed when the last of them is destroyed
 * or changed. What is captured in a CUDA graph has workspace besides: see ucudnnReleaseGraphs.
 *
 * A call never fails for want of workspace where cuDNN, given what the named algorithm needs, would
 * not. A deterministic algorithm named at the call, or UCUDNN_DETERMINISTIC, is honoured as far as
 * any deterministic kernel, split or not, fits what the call may use; where none does, another
 * kernel runs, and one warning for each convolution says so.
 */
UCUDNN_API cudnnStatus_t ucudnnSetTotalWorkspaceSize(cudnnHandle_t handle, size_t bytes);

/**
 * The graphs that handles of this network (see ucudnnSetTotalWorkspaceSize) have captured so far
 * are launched no more, and none of its streams is being captured: frees their workspace, and waits
 * for the device. Each capture has workspace of its own, as much as the network's convolutions
 * need, within the total; 16 graphs at a time, further ones run without. Without this function it
 * is freed by a call that comes after the graph, and all that was instantiated of it, have been
 * destroyed, or when the last μ-cuDNN handle of the process is. CUDNN_STATUS_BAD_PARAM: `handle` is
 * NULL.
 */
UCUDNN_API cudnnStatus_t ucudnnReleaseGraphs(cudnnHandle_t handle);

/** How the total is used. UCUDNN_TOTAL_WORKSPACE_POLICY */
typedef enum {
  UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE = 0, /* "divide": a segment for each convolution */
  UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE = 1,  /* "share": one arena in turn, or several */
  UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO = 2    /* "auto": the same */
} ucudnnTotalWorkspacePolicy_t;

/** DIVIDE in a build without UCUDNN_DIVIDE: CUDNN_STATUS_BAD_PARAM. */
UCUDNN_API cudnnStatus_t ucudnnSetTotalWorkspacePolicy(cudnnHandle_t handle,
                                                       ucudnnTotalWorkspacePolicy_t policy);

/**
 * Device memory in bytes, on each device, for the CUDA graphs by which calls are replayed, 64 MiB
 * by default, and 0 in a program that comes by libucudnn_preload.so; 0: the handle's calls are not
 * replayed. UCUDNN_GRAPH_MEMORY
 *
 * While one is captured, cudaDeviceSynchronize and cuCtxSynchronize fail in other threads, and the
 * call that is captured may crash. A thread that calls us on the device is waited for; for one that
 * never does but waits so, set 0.
 *
 * A call of several kernels that repeats with the same pointers and factors becomes one launch of a
 * graph. The graphs that were used least recently make room for new ones.
 */
UCUDNN_API cudnnStatus_t ucudnnSetGraphMemory(cudnnHandle_t handle, size_t bytes);

/**
 * An SQLite file that keeps measurements, or a folder, with a slash at its end, for a file of each
 * machine; NULL or "": they live in memory only. UCUDNN_DATABASE
 */
UCUDNN_API cudnnStatus_t ucudnnSetDatabase(cudnnHandle_t handle, const char* path);

/**
 * A file of plans, written by `ucudnn plan --save` or ucudnnSavePlans (<ucudnn/diagnosis.h>), read
 * now; NULL or "": none. Its convolutions run by these plans, whatever the policy, and nothing is
 * measured for them. CUDNN_STATUS_BAD_PARAM: it can't be read, or not all of it is in order, which
 * the log says. UCUDNN_PLANS
 */
UCUDNN_API cudnnStatus_t ucudnnSetPlans(cudnnHandle_t handle, const char* path);

/**
 * What the file of plans does not have, for the workspace and determinism of a call, or what cuDNN
 * does not have of it, is planned as usual, with one warning for each convolution; not 0: it runs
 * through cuDNN. UCUDNN_PLANS_STRICT
 */
UCUDNN_API cudnnStatus_t ucudnnSetPlansStrict(cudnnHandle_t handle, int enabled);

/**
 * "0,1,2" or "all", devices of one model; NULL or "": the handle's own device.
 * UCUDNN_BENCHMARK_DEVICES
 */
UCUDNN_API cudnnStatus_t ucudnnSetBenchmarkDevices(cudnnHandle_t handle, const char* devices);

/**
 * Device memory in bytes that benchmarking may take for a moment, 8 GiB by default. Find*Ex, and
 * calls whose output is overwritten (beta 0), are measured in the caller's own buffers and take
 * none, unless errors are measured (ucudnnSetMaxError). UCUDNN_BENCHMARK_MEMORY
 */
UCUDNN_API cudnnStatus_t ucudnnSetBenchmarkMemory(cudnnHandle_t handle, size_t bytes);

/**
 * The share of the time in convolutions that measuring may take where no query asks for it, 0.03
 * by default. Find*, Find*Ex and queries that name a limit measure at once; a problem that is seen
 * without one runs as cuDNN runs it, and is measured when its repetition pays for it: a few kernels
 * in a call, for no longer than UCUDNN_BENCHMARK_STALL. Where a cap leaves a call's own kernel too
 * little, that kernel runs on parts of the batch, or a slower one runs. Such a problem is measured,
 * beyond the share, once its calls have taken as long as measuring takes. Infinity: each problem is
 * measured when it is first seen; 0: never without being asked, unless neither parts nor cuDNN can
 * run a call. Any other that is not between 0 and 1: CUDNN_STATUS_BAD_PARAM. UCUDNN_BENCHMARK_SHARE
 */
UCUDNN_API cudnnStatus_t ucudnnSetBenchmarkShare(cudnnHandle_t handle, double share);

/**
 * Not 0: where a call overwrites its output, micro-batches have the part of it that is yet to be
 * written as workspace, beyond any limit. 0: the workspace is all that there is.
 * UCUDNN_BORROW_OUTPUT
 */
UCUDNN_API cudnnStatus_t ucudnnSetBorrowOutput(cudnnHandle_t handle, int enabled);

/** Not 0: only kernels that give the same bits at every run. UCUDNN_DETERMINISTIC */
UCUDNN_API cudnnStatus_t ucudnnSetDeterministic(cudnnHandle_t handle, int enabled);

/**
 * Not 0: each split result is compared with plain cuDNN's, and the distance logged at level info
 * (ucudnnSetLogLevel); slow. UCUDNN_EQUIVALENCE_TEST
 */
UCUDNN_API cudnnStatus_t ucudnnSetEquivalenceTest(cudnnHandle_t handle, int enabled);

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
 * ucudnnSetWorkspaceLimit for every handle of the process, those to come included: each has it at
 * its next query or call, whichever thread that comes from. A handle can be given another one
 * after that.
 */
UCUDNN_API cudnnStatus_t ucudnnSetProcessWorkspaceLimit(size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* UCUDNN_SETTINGS_H_ */
