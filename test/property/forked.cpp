#include "forked.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "../support/slowness.hpp"

namespace ucudnn::test {
namespace {

std::string readAll(int descriptor) {
  std::string text;
  char block[4096];
  for (ssize_t count; (count = ::read(descriptor, block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(count));
  return text;
}

[[noreturn]] void runChild(const std::function<void(const Answer&)>& function,
                           int answer,
                           int output,
                           unsigned seconds) {
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::alarm(seconds * kSlowness);
  int status = 0;
  try {
    function(Answer(answer));
  } catch (const std::exception& error) {
    Answer(answer).write(std::string(error.what()) + "\n");
    status = 3;
  }
  std::fflush(nullptr);
  ::_exit(status);  // the parent's static objects are not the child's to destroy
}

}  // namespace

void Answer::write(const std::string& text) const {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(descriptor_, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

ForkResult runForked(const std::function<void(const Answer&)>& function, unsigned seconds) {
  int answer[2];
  const int output = ::memfd_create("output", MFD_CLOEXEC);
  if (output < 0 || ::pipe(answer) != 0) throw std::runtime_error("no pipe for a child");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    ::close(answer[0]);
    runChild(function, answer[1], output, seconds);
  }
  ::close(answer[1]);
  ForkResult result;
  result.answer = readAll(answer[0]);
  ::close(answer[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ::lseek(output, 0, SEEK_SET);
  result.output = readAll(output);
  ::close(output);
  return result;
}

}  // namespace ucudnn::test
