// The tables that UCUDNN_SIMULATOR_PROFILE names.
#pragma once

#include "simulator/cudnn/engine_profile.hpp"
#include "simulator/cudnn/profile.hpp"

namespace ucudnn::simulator {

struct RecordedProfiles {
  Profile algorithms;
  EngineProfile engines;
  bool valid = true;
};

/// The tables of UCUDNN_SIMULATOR_PROFILE (a comma-separated list of files, whose first lines say
/// what they hold); read once. On an error one line on stderr says which file and line, and they
/// are not valid.
const RecordedProfiles& recordedProfiles();

}  // namespace ucudnn::simulator
