#include "cache/shared_databases.hpp"

#include <pthread.h>

#include <cstdlib>

#include "cache/sqlite_files.hpp"
#include "support/log.hpp"

namespace ucudnn {

SharedDatabases& SharedDatabases::instance() {
  static SharedDatabases* const made = [] {
    auto* const shared = new SharedDatabases;
    ::pthread_atfork(
        [] {
          instance().mutex.lock();
          for (SharedDatabase* database : instance().databases) database->close();
        },
        [] { instance().mutex.unlock(); },
        [] {
          for (SharedDatabase* database : instance().databases) database->dropPending();
          instance().mutex.unlock();
        });
    std::atexit([] {
      std::vector<std::string> warnings;
      {
        const std::lock_guard<std::mutex> lock(instance().mutex);
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
