// Calls into GLPK from a process that it must not end, print in, or share state with.
#pragma once

namespace ucudnn {

/// Runs `work(argument)` on a thread of its own, one at a time in the process. GLPK ends the
/// process on an error of its own; here the work is left instead, its GLPK objects are freed, and
/// false is returned. What GLPK would print is dropped. Where GLPK keeps its environment by thread
/// (GLPK built with TLS, as distributions do), the host's own use of GLPK sees nothing of it.
/// REQUIRES: `work` throws nothing and, as an error jumps over its frames, holds nothing with a
/// destructor while it calls GLPK.
bool runWithGlpkGuard(void (*work)(void*), void* argument);

}  // namespace ucudnn
