// What an engine computes of a problem, and the copies that it runs on.
#pragma once

#include "cuda/cudnn.hpp"

#if UCUDNN_HAS_ENGINES

#include <cstddef>
#include <vector>

#include "kernels/copying.hpp"
#include "kernels/engine_configuration.hpp"
#include "problem/part.hpp"
#include "support/alignment.hpp"

namespace ucudnn {

/// The part of a problem that an engine computes, and how the whole is made of such parts.
struct EnginePart {
  Problem whole;
  std::vector<Part> parts;   ///< equal ones, one after another; mostly the whole
  Problem problem;           ///< of the graphs: a part's, with columns folded, in float, of blocks
  std::size_t ownBytes = 0;  ///< of workspace behind the engine's, for copies
  /// Whether the engine adds to the output. If not, either nothing adds or the copy of its output
  /// does. A copy adds only floats, because other types would be rounded twice.
  bool engineAdds = true;
  /// Whether all parts but the first are added to the output, whatever the call does.
  bool addsUp = false;

  /// Throws Error: the problem has no such parts.
  EnginePart(const Problem& problem, const EngineConfiguration& value);

  /// Bytes that a call needs if the engine needs `engineBytes`.
  std::size_t workspaceBytes(std::size_t engineBytes) const noexcept {
    return ownBytes == 0 ? engineBytes : roundUpToAlignment(engineBytes) + ownBytes;
  }
};

/// The copies that the engine runs on. REQUIRES: it does (EngineConfiguration::blocks). Throws
/// Error.
Copying copyingOf(const Problem& problem, const EngineConfiguration& value);
/// Whether several numbers of the engine's gradients are added up to one of the caller's: those of
/// bands, and those of columns that are a pixel.
bool sumsGradients(const Problem& problem, const EngineConfiguration& value) noexcept;
/// Bytes of the output's copy in the engine's workspace; 0: the output is not copied, or is a
/// filter. Throws Error.
std::size_t outputCopyBytes(const Problem& problem, const EngineConfiguration& value);

}  // namespace ucudnn

#endif
