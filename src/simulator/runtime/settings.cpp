#include "simulator/runtime/settings.hpp"

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

Arithmetic parseArithmetic(const std::string& text) {
  if (text == "full") return Arithmetic::kFull;
  if (text == "sampled") return Arithmetic::kSampled;
  if (text == "off") return Arithmetic::kOff;
  refuseSetting("UCUDNN_SIMULATOR_ARITHMETIC is full, sampled or off, not " + text);
}

Rounding parseRounding(const std::string& text) {
  if (text == "0") return Rounding::kExact;
  if (text == "1") return Rounding::kMethods;
  if (text == "kernels") return Rounding::kKernels;
  refuseSetting("UCUDNN_SIMULATOR_ROUNDING is 0, 1 or kernels, not " + text);
}

Leaks parseLeaks(const std::string& text) {
  if (text == "0") return Leaks::kNone;
  if (text == "1") return Leaks::kResources;
  if (text == "all") return Leaks::kAll;
  refuseSetting("UCUDNN_SIMULATOR_LEAKS is 0, 1 or all, not " + text);
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
      parseArithmetic(variable("UCUDNN_SIMULATOR_ARITHMETIC", "full")),
      parseRounding(variable("UCUDNN_SIMULATOR_ROUNDING", "0")),
      parseCount("UCUDNN_SIMULATOR_FAIL_CALL"),
      parseCount("UCUDNN_SIMULATOR_CALL_US"),
      static_cast<std::uint64_t>(parseCount("UCUDNN_SIMULATOR_RANDOM_TIMES")),
      parseChoice("UCUDNN_SIMULATOR_MEASURING_COST", "1"),
      parseLeaks(variable("UCUDNN_SIMULATOR_LEAKS", "0")),
      parseChoice("UCUDNN_SIMULATOR_STRICT", "abort"),
  };
  return *settings;
}

}  // namespace ucudnn::simulator
