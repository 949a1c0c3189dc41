// The shared state of a process's databases: one lock, and the actions at a fork and at the end.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/fork.hpp"
#include "support/log.hpp"

namespace ucudnn {

/// Log lines that are written when the lock is released, so that it is never held together with the
/// log's.
using LateLines = std::vector<std::pair<LogLevel, std::string>>;
void logLines(const LateLines& lines) noexcept;

/// A database as the others of its process know it. Its functions are called under the lock.
class SharedDatabase {
 public:
  /// Called before a fork: SQLite's record of the locks that a process holds on a file would be
  /// wrong in the child. Either side opens the file again when it needs to.
  virtual void close() noexcept = 0;
  /// Called in a forked child. Pending measurements belong to its parent.
  virtual void dropPending() noexcept = 0;
  /// Called at the end of the process.
  virtual void finish(LateLines& lines) noexcept = 0;

 protected:
  ~SharedDatabase() = default;
};

/// `mutex` guards everything in every database of the process. It is held across fork(), so that
/// SQLite is idle in all threads, and the child inherits none of its locks.
struct SharedDatabases {
  ForkMutex mutex;
  std::vector<SharedDatabase*> databases;

  /// Never destroyed, because a framework may destroy handles, or fork, in its static destructors.
  static SharedDatabases& instance();
};

}  // namespace ucudnn
