// Calls GLPK from a process that it must not end, print in, or share state with.
#pragma once

namespace ucudnn {

/// Runs `work(argument)` on a thread of its own, one at a time in the process. On an error of its
/// own GLPK would end the process; here the work is abandoned, its GLPK objects are freed, and
/// false is returned. GLPK's output is dropped. If GLPK keeps its environment by thread (GLPK built
/// with TLS, as in distributions), the host's own use of GLPK notices nothing. REQUIRES: `work`
/// throws nothing. It holds nothing with a destructor while it calls GLPK, because an error jumps
/// over its frames.
bool runWithGlpkGuard(void (*work)(void*), void* argument);

}  // namespace ucudnn
