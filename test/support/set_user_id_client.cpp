// Prints what a set-user-id program takes from its environment.
#include <sys/auxv.h>

#include <cstdio>

#include "support/settings.hpp"

/// LeakSanitizer looks at the program by ptrace, which set-user-id programs refuse, and would end
/// it for that. It asks this function, for it can't read such a program's environment either.
extern "C" int __lsan_is_turned_off() {
  return 1;
}

int main() {
  const ucudnn::Settings settings = ucudnn::settingsFromEnvironment();
  std::printf("secure=%lu database=%s log=%s deterministic=%d\n",
              getauxval(AT_SECURE),
              settings.databasePath.c_str(),
              settings.logFile.c_str(),
              settings.deterministic ? 1 : 0);
}
