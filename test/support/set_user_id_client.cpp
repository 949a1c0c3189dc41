// Prints what a set-user-id program takes from its environment.
#include <sys/auxv.h>

#include <cstdio>

#include "support/settings.hpp"

int main() {
  const ucudnn::Settings settings = ucudnn::settingsFromEnvironment();
  std::printf("secure=%lu database=%s log=%s deterministic=%d\n",
              getauxval(AT_SECURE),
              settings.databasePath.c_str(),
              settings.logFile.c_str(),
              settings.deterministic ? 1 : 0);
}
