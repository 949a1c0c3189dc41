#include "tool/interruption.hpp"

#include <csignal>

namespace ucudnn::tool {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

volatile std::sig_atomic_t interrupted = 0;

void note(int) {
  interrupted = 1;
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
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
