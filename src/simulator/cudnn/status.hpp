// How a simulated cuDNN function begins, fails and reports.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "cudnn_names.h"
#include "simulator/runtime.hpp"

// Marks the exports of libcudnn.so.9; everything else is hidden.
#define UCUDNN_SIMULATOR_CUDNN extern "C" __attribute__((visibility("default")))

namespace ucudnn::simulator {

/// A call that cuDNN refuses: the status that the caller gets and the text of
/// cudnnGetLastErrorString.
class Refusal : public std::exception {
 public:
  Refusal(cudnnStatus_t status, std::string message)
      : status_(status), message_(std::move(message)) {}
  cudnnStatus_t status() const noexcept { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  cudnnStatus_t status_;
  std::string message_;
};

[[noreturn]] void refuse(cudnnStatus_t status, const char* message);

inline void require(bool condition, const char* message) {
  if (!condition) refuse(CUDNN_STATUS_BAD_PARAM, message);
}

inline void requireSupported(bool condition, const char* message) {
  if (!condition) refuse(CUDNN_STATUS_NOT_SUPPORTED, message);
}

/// Keeps the calling thread's last-error text and returns `status`.
cudnnStatus_t fail(const char* function, cudnnStatus_t status, const char* message);

/// The body of every simulated function: counted, made to fail when its turn has come, and with no
/// exception let out.
template <typename Body>
cudnnStatus_t guarded(const char* function, Body&& body) {
  if (callFails(function)) {
    return fail(function, CUDNN_STATUS_INTERNAL_ERROR, "failure injected by the simulator");
  }
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Refusal& refusal) {
    return fail(function, refusal.status(), refusal.what());
  } catch (const std::bad_alloc&) {
    return fail(function, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of host memory");
  } catch (const std::exception& error) {
    return fail(function, CUDNN_STATUS_INTERNAL_ERROR, error.what());
  }
}

/// As `guarded`, for functions that give something back to the system: an injected failure is
/// reported, yet the thing is gone, for its owner could never try again.
template <typename Body>
cudnnStatus_t guardedRelease(const char* function, Body&& body) {
  const bool injected = callFails(function);
  body();
  if (!injected) return CUDNN_STATUS_SUCCESS;
  return fail(function, CUDNN_STATUS_INTERNAL_ERROR, "failure injected by the simulator");
}

}  // namespace ucudnn::simulator
