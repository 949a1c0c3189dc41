/* The decisions of μ-cuDNN and their grounds, for tools, tests and the curious. A framework needs
 * none of it. */
#ifndef UCUDNN_DIAGNOSIS_H_
#define UCUDNN_DIAGNOSIS_H_

#include <ucudnn/preamble.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The operations that are split. */
typedef enum {
  UCUDNN_FORWARD = 0,
  UCUDNN_BACKWARD_DATA = 1,
  UCUDNN_BACKWARD_FILTER = 2,
  UCUDNN_BIAS_ACTIVATION_FORWARD = 3
} ucudnnOperation_t;

/*
 * Each of these structs begins with its `size`, which the caller sets to its sizeof; in an array
 * the first one's is enough. Later versions may add members at the end, and write what the caller
 * knows.
 */

/** `count` micro-batches of `batch` samples, each run by `kernel`. */
typedef struct {
  size_t size; /* sizeof(ucudnnMicroBatches_t) */
  int batch;
  int count;
  double timeMs;         /* of one micro-batch, measured while many run back to back */
  double deviceMs;       /* the device's part of timeMs; the rest is enqueueing by the host */
  size_t workspaceBytes; /* of one micro-batch; above the plan's if it borrows the output
                            (UCUDNN_BORROW_OUTPUT) */
  int deterministic;
  char kernel[96]; /* cuDNN's name of the algorithm and its math type, for example
                      "FFT_TILING/default" */
  double error;    /* of the kernel, measured (ucudnnSetMaxError); below 0: not known */
} ucudnnMicroBatches_t;

/** The configuration chosen for a convolution under a limit. */
typedef struct {
  size_t size; /* sizeof(ucudnnPlan_t) */
  size_t limitBytes;
  size_t workspaceBytes; /* that a call needs; Get*WorkspaceSize rounds it up to 512 */
  double predictedMs;
  int replayed; /* 1: predictedMs is the time of a repeated call, launched as a CUDA graph */
} ucudnnPlan_t;

/** A point of the Pareto front: the fastest time within that much workspace. */
typedef struct {
  size_t size; /* sizeof(ucudnnParetoPoint_t) */
  double timeMs;
  size_t workspaceBytes;
} ucudnnParetoPoint_t;

/** The library's work in this process so far. */
typedef struct {
  size_t size;               /* sizeof(ucudnnStatistics_t) */
  long long kernelsMeasured; /* (problem, batch size, kernel) triples timed on a device */
  long long kernelsLoaded;   /* the same, answered by the database */
  long long plans;           /* configurations chosen */
  long long splitCalls;      /* convolution calls that ran as two or more micro-batches */
  long long undividedCalls;  /* convolution calls that ran as one planned kernel */
  long long bypassedCalls;   /* convolution calls handed to cuDNN as they were */
  double planningMs;         /* wall time spent measuring, loading and optimizing */
  long long replayedCalls;   /* calls that ran as one launch of a CUDA graph; they count as
                                splitCalls or undividedCalls too */
  long long graphs;          /* graphs kept now */
  long long graphBytes;      /* device memory that they take, as estimated */
  long long kernelsChecked;  /* before their first use, their outputs against arithmetic */
  long long kernelsWrong;    /* of those: they are not used again */
} ucudnnStatistics_t;

/**
 * Plans a convolution under `limitBytes`, and measures what is not known yet. Later calls don't run
 * under this limit.
 *
 * `xDesc` describes x or dx, `wDesc` w or dw, `yDesc` y or dy. At most `requestedCount` entries are
 * written, largest micro-batches first; `*returnedCount` is how many the plan has. `entries` may be
 * NULL if 0 are requested. CUDNN_STATUS_BAD_PARAM: a pointer is NULL, a `size` is not set, or
 * `requestedCount` is negative. CUDNN_STATUS_NOT_SUPPORTED: the convolution cannot be planned and
 * runs through cuDNN as it is. All three functions also return it if the handle's stream is being
 * captured and something would have to be measured.
 */
UCUDNN_API cudnnStatus_t ucudnnGetConvolutionPlan(cudnnHandle_t handle,
                                                  ucudnnOperation_t operation,
                                                  cudnnTensorDescriptor_t xDesc,
                                                  cudnnFilterDescriptor_t wDesc,
                                                  cudnnConvolutionDescriptor_t convDesc,
                                                  cudnnTensorDescriptor_t yDesc,
                                                  size_t limitBytes,
                                                  ucudnnPlan_t* plan,
                                                  int requestedCount,
                                                  int* returnedCount,
                                                  ucudnnMicroBatches_t* entries);

/** Every kernel measured for the convolution, by batch size, then time; `count` is 1 in each entry.
 */
UCUDNN_API cudnnStatus_t ucudnnGetConvolutionCandidates(cudnnHandle_t handle,
                                                        ucudnnOperation_t operation,
                                                        cudnnTensorDescriptor_t xDesc,
                                                        cudnnFilterDescriptor_t wDesc,
                                                        cudnnConvolutionDescriptor_t convDesc,
                                                        cudnnTensorDescriptor_t yDesc,
                                                        int requestedCount,
                                                        int* returnedCount,
                                                        ucudnnMicroBatches_t* entries);

/** The Pareto front, by ascending workspace. ucudnnGetConvolutionPlan gives a point's plan if it is
 * asked for the point's workspace. */
UCUDNN_API cudnnStatus_t ucudnnGetConvolutionParetoFront(cudnnHandle_t handle,
                                                         ucudnnOperation_t operation,
                                                         cudnnTensorDescriptor_t xDesc,
                                                         cudnnFilterDescriptor_t wDesc,
                                                         cudnnConvolutionDescriptor_t convDesc,
                                                         cudnnTensorDescriptor_t yDesc,
                                                         int requestedCount,
                                                         int* returnedCount,
                                                         ucudnnParetoPoint_t* points);

/**
 * Data parallelism over devices that may differ: how many of `batch` samples each should compute,
 * so that the slowest is done as soon as possible. `shares[i]` is the number for `devices[i]`, a
 * CUDA device, and may be 0. They sum to `batch`. Equal devices get equal shares if that costs no
 * time.
 *
 * The times are those of the convolutions that queries on this handle have named (cudnnGet* with a
 * limit or a preference, cudnnFind*), whatever their batch size, each as often as it was queried.
 * Each convolution has the limit of its query, but no more than the least limit of the process's
 * handles on the device (ucudnnSetWorkspaceLimit). What is not known yet is measured, on the first
 * device of each model: seconds the first time. Other work of a step is not counted, nor the
 * exchange of gradients, nor whether the tensors fit the memory (`ucudnn shares` counts all three).
 * The current device stays as it is.
 *
 * CUDNN_STATUS_BAD_PARAM: there is no such device, a number is below 1, or a pointer is NULL.
 * CUDNN_STATUS_NOT_SUPPORTED: the handle was asked about no convolution, the devices can't run all
 * of them, or the handle's stream is being captured. `shares` is written on success alone.
 */
UCUDNN_API cudnnStatus_t
ucudnnGetShares(cudnnHandle_t handle, int batch, int deviceCount, const int* devices, int* shares);

/**
 * Writes the plans that the process has made and used so far to a file for UCUDNN_PLANS, in place
 * of the file's content. Needs no handle. CUDNN_STATUS_BAD_PARAM: `path` is NULL or empty, or the
 * file can't be written, which the log says.
 */
UCUDNN_API cudnnStatus_t ucudnnSavePlans(const char* path);

/** The library's work in this process so far. Needs no handle. CUDNN_STATUS_BAD_PARAM:
 * `statistics` is NULL, or its `size` is not set. */
UCUDNN_API cudnnStatus_t ucudnnGetStatistics(ucudnnStatistics_t* statistics);

/** One of these numbers by its member's name, for other languages. CUDNN_STATUS_BAD_PARAM: there is
 * no such number, or a pointer is NULL. */
UCUDNN_API cudnnStatus_t ucudnnGetStatistic(const char* name, double* value);

/** "0.1.0" */
UCUDNN_API const char* ucudnnGetVersionString(void);

#ifdef __cplusplus
}
#endif

#endif /* UCUDNN_DIAGNOSIS_H_ */
