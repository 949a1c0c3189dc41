// The boundary between C++ and the C ABI: nothing thrown leaves it.
#pragma once

#include <cudnn.h>

#include <exception>
#include <new>

#include "context/registry.hpp"
#include "support/log.hpp"

namespace ucudnn {

/// Runs `body` and turns what it throws into a status.
template <typename Body>
cudnnStatus_t guarded(const char* function, Body body) noexcept {
  try {
    return body();
  } catch (const BadSetting& error) {
    logError("{}: {}", function, error.what());
    return CUDNN_STATUS_BAD_PARAM;
  } catch (const Error& error) {  // the caller is told
    logInfo("{}: {}", function, error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    return CUDNN_STATUS_ALLOC_FAILED;
  } catch (const std::exception& error) {
    logInfo("{}: {}", function, error.what());
    return CUDNN_STATUS_INTERNAL_ERROR;
  } catch (...) {
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
}

/// The handle's context. Null: cuDNN answers everything.
inline Context* activeContextOf(cudnnHandle_t handle) noexcept {
  Context* const context = contextOf(handle);
  return context != nullptr && !context->isDisabled() ? context : nullptr;
}

/// Lets `planned(context)` answer. If it returns false or throws, or the handle has no context,
/// plain cuDNN answers.
template <typename Planned, typename Native>
cudnnStatus_t plannedOrNative(cudnnHandle_t handle,
                              Operation operation,
                              Planned planned,
                              Native native) noexcept {
  Context* const context = activeContextOf(handle);
  if (context == nullptr) return native();
  try {
    const DeviceScope scope = context->useDevice();
    if (planned(*context)) return CUDNN_STATUS_SUCCESS;
  } catch (const std::exception& error) {
    logInfo("a query of {} is left to cuDNN: {}", toText(operation), error.what());
  }
  return native();
}

}  // namespace ucudnn
