// Engines and problems that cuDNN is known to compute wrongly: a built-in list, or the user's in
// its place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/engine_configuration.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Names engines that must not run, and where. Each condition narrows it.
struct Erratum {
  /// A tensor's samples or filters, channels, height, width; -1: any.
  using Shape = std::array<std::int64_t, 4>;

  std::string id;
  std::string operation;               ///< as cudnn-frontend tags graphs: "ConvFwd"; "": any
  std::optional<std::int64_t> engine;  ///< empty: every kernel, of the legacy API too
  std::vector<std::string> knobs;      ///< all of them: "k2=4"
  std::size_t fromVersion = 0;         ///< of cuDNN
  std::size_t endVersion = std::numeric_limits<std::size_t>::max();  ///< the first without
  int computeCapability = 0;                                         ///< 90 for 9.0; 0: any
  int dimensions = 0;                                                ///< of x, w and y; 0: any
  std::optional<std::int32_t> inputType;                             ///< cudnnDataType_t
  std::size_t leastBytes = 0;                                        ///< of the larger of x and y
  bool ofTensorCores = false;  ///< of what may multiply by tensor cores alone
  std::optional<Shape> input, filter;
  std::string source = "CUDNN_ERRATA_JSON_FILE";
};
using Errata = std::vector<Erratum>;

/// Those that others have published or we have found, each as narrow as its source says.
const Errata& builtInErrata();

/// Reads a list of cudnn-frontend's form: {"version": 1, "rules": [{"rule_id", "operation",
/// "engine", "knob", "cudnn_version_start", "cudnn_version_end", "shape_format", "input_shape",
/// "filter_shape"}]}. Other members mean nothing, as there. Throws std::runtime_error: it is not
/// of that form.
Errata errataFromJson(const std::string& text);

/// The same of a file. Throws BadSetting.
Errata readErrata(const std::string& path);

/// From now on the process goes by the file, and not by the built-in list; "": by that. A path that
/// is in force already is not read again. Throws BadSetting.
void useErrata(const std::string& path);
/// The errata that the process goes by.
std::shared_ptr<const Errata> errataInForce();

bool appliesTo(const Erratum& erratum, std::size_t cudnnVersion, int computeCapability) noexcept;
/// Whether a kernel must not run a problem to which the erratum applies. `engine`: null for one of
/// the legacy API. `mayUseTensorCores`: it multiplies by them, or nobody says that it doesn't.
bool bars(const Erratum& erratum,
          const Problem& problem,
          const EngineConfiguration* engine,
          bool mayUseTensorCores);

/// Whether an erratum in force bars the kernel on the current device. REQUIRES: the problem is the
/// one that cuDNN is given: for an engine that of its graph.
bool isBarred(const Problem& problem, const EngineConfiguration* engine, bool mayUseTensorCores);

/// "ConvFwd_eng0, bfloat16, 3-D", for people.
std::string toText(const Erratum& erratum);
/// "cuDNN from 9.23.1 before 9.24.0, compute capability 8.6", for people.
std::string machinesOf(const Erratum& erratum);

}  // namespace ucudnn
