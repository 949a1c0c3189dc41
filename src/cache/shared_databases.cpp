#include "cache/shared_databases.hpp"

#include <cstdlib>

#include "cache/sqlite_files.hpp"
#include "support/fork.hpp"
namespace ucudnn {

void logLines(const LateLines& lines) noexcept {
  for (const auto& [level, text] : lines) log(level, "{}", text);
}

SharedDatabases& SharedDatabases::instance() {
  static SharedDatabases* const made = [] {
    auto* const shared = new SharedDatabases;
    onFork({[] {
              instance().mutex.lock();
              for (SharedDatabase* database : instance().databases) database->close();
            },
            [] { instance().mutex.unlock(); },
            [] {
              for (SharedDatabase* database : instance().databases) database->dropPending();
            }});
    std::atexit([] {
      LateLines lines;
      {
        const std::lock_guard lock(instance().mutex);
        for (SharedDatabase* database : instance().databases) database->finish(lines);
        forgetSafeFiles();
      }
      logLines(lines);
    });
    return shared;
  }();
  return *made;
}

}  // namespace ucudnn
