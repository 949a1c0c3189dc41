// The functions that stand in front of cuDNN's, as cuDNN and as μ-cuDNN have them. Nothing here
// needs a constructor or takes a lock: the first call may come from a constructor, from a thread
// that holds the loader's lock, or in a forked child.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <ucudnn/functions.h>

#include "api/backend.h"
#include "api/lookup.h"
#include "cudnn_names.h"

// Deprecated in cuDNN 9, but programs call them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn::preload {

/// A library's functions, named without their prefix.
struct Functions {
  decltype(&::cudnnCreate) Create;
  decltype(&::cudnnDestroy) Destroy;
#define UCUDNN_MEMBER(NAME, PARAMETERS, ARGUMENTS) decltype(&::cudnn##NAME) NAME;
  UCUDNN_FOR_EACH_FUNCTION(UCUDNN_MEMBER)
  UCUDNN_FOR_EACH_BACKEND_FUNCTION(UCUDNN_MEMBER)
#undef UCUDNN_MEMBER
#if UCUDNN_HAS_BACKEND
  decltype(&::cudnnBackendPopulateCudaGraph) BackendPopulateCudaGraph;  // cuDNN's only
  decltype(&::cudnnBackendUpdateCudaGraph) BackendUpdateCudaGraph;
  decltype(&::cudnnGetExecutionPlanWorkspaceSize) GetExecutionPlanWorkspaceSize;  // cuDNN's only
  decltype(&::ucudnnBackendNeedsMore) BackendNeedsMore;                           // ours only
  decltype(&::ucudnnBackendToldWorkspace) BackendToldWorkspace;
#endif
  decltype(&::ucudnnServeUnmodified) ServeUnmodified;  // ours only
  decltype(&::ucudnnKnowDeviceWaits) KnowDeviceWaits;
  decltype(&::ucudnnBeginDeviceWait) BeginDeviceWait;
  decltype(&::ucudnnEndDeviceWait) EndDeviceWait;
};

/// Who answers a caller. Immutable.
struct Route {
  const Functions* native;   ///< a function that this cuDNN does not have is null
  const Functions* own;      ///< the same without what stands between us and cuDNN
  const Functions* planned;  ///< null: every call passes through
};

/// The route of calls from that address: by the cuDNN that the caller would have without us,
/// because a process may have several. Decided at the first call that finds a cuDNN, once for each
/// major version. Null: none is loaded.
const Route* routeOf(const void* caller) noexcept;
/// The function of the cuDNN that we plan for. Null: the program has none, or another major version
/// besides, or μ-cuDNN is disabled.
void* plannedCudnnsOwn(const char* name) noexcept;
/// libucudnn.so's. Null: no call has been answered by them yet.
const Functions* plannedFunctions() noexcept;

/// Whether the library or program that calls has our cudaDeviceSynchronize: it is linked with a
/// shared runtime, and the loader finds us first. With a static runtime it calls its own.
bool seesDeviceWaits(const void* caller) noexcept;
/// The program's cudaDeviceSynchronize behind ours. Null: there is none.
decltype(&::cudaDeviceSynchronize) deviceSynchronize() noexcept;

}  // namespace ucudnn::preload
