// Writing without being killed by a signal.
#pragma once

#include <signal.h>

namespace ucudnn {

/// While it lives, this thread's writes don't kill the process. SIGPIPE (a pipe's reader has left)
/// and SIGXFSZ (a file grows beyond `ulimit -f`) are held; the write fails with EPIPE or EFBIG
/// instead. The program's own handlers and masks stay as they are, and signals that others have
/// sent are kept.
class WriteSignalsHeld {
 public:
  WriteSignalsHeld() noexcept {
    sigemptyset(&held_);
    sigaddset(&held_, SIGPIPE);
    sigaddset(&held_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    // A signal that is already pending is not ours to take.
    for (const int signal : {SIGPIPE, SIGXFSZ})
      if (sigismember(&pending, signal) == 1) sigdelset(&held_, signal);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~WriteSignalsHeld() {
    const timespec now{};
    while (sigtimedwait(&held_, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WriteSignalsHeld(const WriteSignalsHeld&) = delete;
  WriteSignalsHeld& operator=(const WriteSignalsHeld&) = delete;

 private:
  sigset_t held_{};
  sigset_t before_{};
};

}  // namespace ucudnn
