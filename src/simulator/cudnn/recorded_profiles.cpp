#include "simulator/cudnn/recorded_profiles.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace ucudnn::simulator {
namespace {

void load(const std::string& path, RecordedProfiles* profiles) {
  const std::vector<std::string> lines = readLines(path);
  const std::string header = lines.empty() ? "" : lines.front();
  if (header == kProblemHeader) return profiles->engines.load(path);
  if (header == kAlgorithmHeader) return profiles->algorithms.load(path);
  throw std::runtime_error(path + ":1: header is neither " + kAlgorithmHeader + " nor " +
                           kProblemHeader);
}

}  // namespace

const RecordedProfiles& recordedProfiles() {
  // Never destroyed: handles may be used from static destructors.
  static const RecordedProfiles* const profiles = [] {
    auto* loaded = new RecordedProfiles();
    const char* paths = std::getenv("UCUDNN_SIMULATOR_PROFILE");
    try {
      std::istringstream list(paths == nullptr ? "" : paths);
      for (std::string path; std::getline(list, path, ',');) {
        if (!path.empty()) load(path, loaded);
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "ucudnn simulator: UCUDNN_SIMULATOR_PROFILE: %s\n", error.what());
      loaded->valid = false;
    }
    return loaded;
  }();
  return *profiles;
}

}  // namespace ucudnn::simulator
