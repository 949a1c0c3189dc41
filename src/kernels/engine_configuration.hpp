// An engine of cuDNN's graph API with its knobs, as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ucudnn {

struct EngineConfiguration {
  std::int64_t engine = 0;                          ///< cuDNN's global index
  std::vector<std::pair<int, std::int64_t>> knobs;  ///< cudnnBackendKnobType_t and its choice

  bool operator==(const EngineConfiguration& other) const noexcept {
    return engine == other.engine && knobs == other.knobs;
  }
  bool operator<(const EngineConfiguration& other) const noexcept {
    return engine != other.engine ? engine < other.engine : knobs < other.knobs;
  }
};

/// As cuDNN's logs name it: "eng46_k2=0_k5=2_k14=3".
std::string toText(const EngineConfiguration& configuration);
/// Empty: not such a text.
std::optional<EngineConfiguration> engineConfigurationFromText(std::string_view text);

/// A number for the configuration, the same for as long as the process runs.
std::int32_t idOf(const EngineConfiguration& configuration);
/// REQUIRES: an id that idOf has given.
EngineConfiguration engineConfigurationOf(std::int32_t id);

}  // namespace ucudnn
