// What the databases of a process share: one lock, and what happens at a fork and at the end.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/fork.hpp"
#include "support/log.hpp"

namespace ucudnn {

/// Log lines that are written when the lock is released, so that it and the log's are never held
/// together.
using LateLines = std::vector<std::pair<LogLevel, std::string>>;
void logLines(const LateLines& lines) noexcept;

/// A database as the others of its process know it. All are called under the lock.
class SharedDatabase {
 public:
  /// Before a fork: SQLite's record of the locks that a process holds on a file would be wrong in
  /// the child. Either side opens again when it needs to.
  virtual void close() noexcept = 0;
  /// In a forked child: what waits to be stored is its parent's.
  virtual void dropPending() noexcept = 0;
  /// At the end of the process.
  virtual void finish(LateLines& lines) noexcept = 0;

 protected:
  ~SharedDatabase() = default;
};

/// `mutex` guards everything in every database of the process, and is held across fork(): SQLite is
/// then idle in all threads, and the child inherits none of its locks.
struct SharedDatabases {
  ForkMutex mutex;
  std::vector<SharedDatabase*> databases;

  /// Never destroyed: a framework may destroy handles, or fork, in its static destructors.
  static SharedDatabases& instance();
};

}  // namespace ucudnn
