// How SQLite reaches files here: nothing that happens to a file can end the process.
#pragma once

namespace ucudnn {

/// The name of a VFS that is SQLite's own but for two things:
///
///  1. No file is mapped into memory. Another process that cuts a mapped file short, as the -shm
///     file of a write-ahead log always is, ends this one by SIGBUS. Without shared memory SQLite
///     refuses a write-ahead log, unless it has the file for itself alone.
///  2. What would go beyond the process's file size limit (ulimit -f) fails as a full disk does;
///  the
///     system would end the process by SIGXFSZ.
///
/// Null: it can't be registered. Thread-safe as SQLite is.
const char* safeFiles() noexcept;

/// Before this library is unloaded. REQUIRES: no connection that uses it is open.
void forgetSafeFiles() noexcept;

}  // namespace ucudnn
