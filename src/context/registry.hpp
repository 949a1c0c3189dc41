// Finds the context of a native handle. Never destroyed.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "context/context.hpp"

namespace ucudnn {

/// The context of a handle. A handle that μ-cuDNN did not create is adopted, with settings from the
/// environment and the device that is current when it is used. Null if it cannot be adopted: cuDNN
/// serves it alone, which is logged once. Thread-safe.
Context* contextOf(cudnnHandle_t handle) noexcept;

/// The context that a handle has, for a question about one of its plans. The handle may be another
/// thread's, or have been destroyed since it was named. Null if it has none. Thread-safe.
std::shared_ptr<Context> knownContextOf(cudnnHandle_t handle) noexcept;

/// Registers a handle that has just been made. Throws Error, BadSetting, std::bad_alloc.
void addContext(cudnnHandle_t handle, Settings settings);

/// Forgets a handle that is about to be destroyed, once no question about a plan uses it.
void removeContext(cudnnHandle_t handle) noexcept;

/// Caps the workspace of each context, from its next use on. Throws std::system_error.
void limitWorkspaces(std::size_t bytes);

/// What limitWorkspaces was told last; SIZE_MAX: nothing. Throws std::system_error.
std::size_t processWorkspaceLimit();

/// The least of the caps (ucudnnSetWorkspaceLimit) that handles on a device have. Empty: there is
/// no handle. Throws std::system_error.
std::optional<std::size_t> workspaceCapOn(int device);

/// For a program that uses μ-cuDNN without knowing it. It may wait for the device on any thread and
/// by any function, and no capture of ours can be hidden from that. So its calls are not replayed
/// by default. Affects what environmentSettings returns from then on.
void serveUnmodified() noexcept;

/// Reads the environment, and sets up the log. Throws BadSetting, which the caller logs.
Settings environmentSettings();

}  // namespace ucudnn
