#include "division/glpk_guard.hpp"

#include <glpk.h>

#include <csetjmp>
#include <future>
#include <mutex>

#include "support/fork.hpp"

namespace ucudnn {
namespace {

void jumpOut(void* target) {
  std::longjmp(*static_cast<std::jmp_buf*>(target), 1);
}

int dropOutput(void* /*info*/, const char* /*text*/) {
  return 1;
}

bool run(void (*work)(void*), void* argument) {
  const bool ownEnvironment = glp_config("TLS") != nullptr;
  std::jmp_buf target;
  const int terminal = glp_term_out(GLP_OFF);
  // GLPK prints error messages even with the terminal off. The hook can't be put back as it was, so
  // a shared environment keeps the host's.
  if (ownEnvironment) glp_term_hook(dropOutput, nullptr);
  if (setjmp(target) != 0) {  // NOLINT(cert-err52-cpp): GLPK's hook may not return
    glp_free_env();           // unusable after an error, shared or not
    return false;
  }
  glp_error_hook(jumpOut, &target);
  work(argument);
  glp_error_hook(nullptr, nullptr);
  glp_term_out(terminal);
  if (ownEnvironment) glp_free_env();
  return true;
}

}  // namespace

bool runWithGlpkGuard(void (*work)(void*), void* argument) {
  static LongForkMutex oneAtATime;  // GLPK without TLS has one environment for the whole process
  const std::lock_guard lock(oneAtATime);
  return std::async(std::launch::async, run, work, argument).get();
}

}  // namespace ucudnn
