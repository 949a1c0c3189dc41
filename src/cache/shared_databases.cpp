#include "cache/shared_databases.hpp"

#include <cstdlib>

#include "cache/sqlite_files.hpp"
#include "support/fork.hpp"
#include "support/log.hpp"

namespace ucudnn {

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
      std::vector<std::string> warnings;
      {
        const std::lock_guard lock(instance().mutex);
        for (SharedDatabase* database : instance().databases) database->finish(warnings);
        forgetSafeFiles();
      }
      for (const std::string& warning : warnings) logWarn("{}", warning);
    });
    return shared;
  }();
  return *made;
}

}  // namespace ucudnn
