// SQLite's access to files, such that nothing that happens to a file can end the process.
#pragma once

namespace ucudnn {

/// The name of a VFS that differs from SQLite's own in two things:
///
/// 1. No file is mapped into memory. If another process cuts a mapped file short, this one ends by
///    SIGBUS; the -shm file of a write-ahead log is always mapped. Without shared memory SQLite
///    refuses a write-ahead log, unless it has the file for itself alone.
/// 2. A write beyond the process's file size limit (ulimit -f) fails as on a full disk. The system
///    would end the process by SIGXFSZ.
///
/// Null if it can't be registered. Thread-safe like SQLite.
const char* safeFiles() noexcept;

/// To be called before this library is unloaded. REQUIRES: no connection that uses it is open.
void forgetSafeFiles() noexcept;

}  // namespace ucudnn
