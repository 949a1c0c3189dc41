#include "simulator/runtime/settings.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace ucudnn::simulator {

namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::vector<std::string> splitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

/// The place of a variable's value among its names; the first is the default.
template <typename Value, std::size_t count>
Value parseName(const char* name, const std::array<const char*, count>& names) {
  const std::string text = variable(name, names[0]);
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    std::string accepted;
    for (std::size_t i = 0; i < count; ++i)
      accepted += (i == 0 ? "" : i + 1 == count ? " or " : ", ") + std::string(names[i]);
    refuseSetting(std::string(name) + " is " + accepted + ", not " + text);
  }
  return static_cast<Value>(found - names.begin());
}

std::int64_t parseCount(const char* name) {
  const std::string text = variable(name, "0");
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (*end != '\0' || value < 0) refuseSetting(std::string(name) + " is a number, not " + text);
  return value;
}

bool parseChoice(const char* name, const std::string& yes) {
  const std::string text = variable(name, "0");
  if (text != yes && text != "0")
    refuseSetting(std::string(name) + " is 0 or " + yes + ", not " + text);
  return text == yes;
}

}  // namespace

void refuseSetting(const std::string& message) {
  std::fprintf(stderr, "CUDA simulator: %s\n", message.c_str());
  std::_Exit(2);
}

const Settings& settings() {
  static const Settings* const settings = new Settings{
      splitAtCommas(variable("UCUDNN_SIMULATOR_DEVICES", "H200")),
      parseName<Arithmetic>("UCUDNN_SIMULATOR_ARITHMETIC",
                            std::array{"full", "sampled", "off", "timed"}),
      parseName<Rounding>("UCUDNN_SIMULATOR_ROUNDING", std::array{"0", "1", "kernels"}),
      parseName<Lie>("UCUDNN_SIMULATOR_LIES",
                     std::array{"0",
                                "channel",
                                "row",
                                "odd",
                                "groups",
                                "output",
                                "workspace",
                                "more",
                                "bits",
                                "unwritten",
                                "fails"}),
      parseCount("UCUDNN_SIMULATOR_FAIL_CALL"),
      parseCount("UCUDNN_SIMULATOR_CALL_US"),
      static_cast<std::uint64_t>(parseCount("UCUDNN_SIMULATOR_RANDOM_TIMES")),
      parseChoice("UCUDNN_SIMULATOR_MEASURING_COST", "1"),
      parseName<Leaks>("UCUDNN_SIMULATOR_LEAKS", std::array{"0", "1", "all"}),
      parseChoice("UCUDNN_SIMULATOR_STRICT", "abort"),
  };
  return *settings;
}

}  // namespace ucudnn::simulator
