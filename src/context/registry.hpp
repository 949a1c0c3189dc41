// Finds the context of a native handle. Never destroyed.
#pragma once

#include <cudnn.h>

#include <memory>

#include "context/context.hpp"

namespace ucudnn {

/// The context of a handle; one that μ-cuDNN did not create is adopted, with settings from the
/// environment and the device that is current when it is used. Null: it cannot be adopted (warned
/// of once), cuDNN serves it alone. Thread-safe.
Context* contextOf(cudnnHandle_t handle) noexcept;

/// The context that a handle has, for a question about one of its plans: the handle may be another
/// thread's, or have been destroyed since it was named. Null: it has none. Thread-safe.
std::shared_ptr<Context> knownContextOf(cudnnHandle_t handle) noexcept;

/// Registers a handle that has just been made. Throws Error, BadSetting, std::bad_alloc.
void addContext(cudnnHandle_t handle, Settings settings);

/// Forgets a handle that is about to be destroyed, once no question about a plan uses it.
void removeContext(cudnnHandle_t handle) noexcept;

/// The cap on the workspace of each context, from its next use on. Throws std::system_error.
void limitWorkspaces(std::size_t bytes);

/// The program has come to us without knowing it, and may wait for the device on any thread and by
/// any function. No capture of ours can be hidden from that, so its calls are not replayed by
/// default. For what environmentSettings returns from here on.
void serveUnmodified() noexcept;

/// Reads the environment and sets up the log as it says. Throws BadSetting, which the caller logs.
Settings environmentSettings();

}  // namespace ucudnn
