#include "tool/interruption.hpp"

#include <time.h>

#include <csignal>

namespace ucudnn::tool {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

// `timeout` signals a process, then its group: a second signal so soon is the same.
constexpr long kSameNs = 200'000'000;

volatile std::sig_atomic_t interrupted = 0;
timespec first;  // written before `interrupted` is, and read by handlers only

long nsSince(const timespec& then) noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - then.tv_sec) * 1'000'000'000 + now.tv_nsec - then.tv_nsec;
}

void note(int signal) {
  if (interrupted == 0) {
    clock_gettime(CLOCK_MONOTONIC, &first);
    interrupted = 1;
  } else if (nsSince(first) > kSameNs) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

Interruption::Interruption() noexcept {
  interrupted = 0;
  for (const int signal : kSignals)
    if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);
}

Interruption::~Interruption() {
  for (const int signal : kSignals)
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
}

bool Interruption::happened() const noexcept {
  return interrupted != 0;
}

}  // namespace ucudnn::tool
