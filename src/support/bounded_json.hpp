// JSON of unknown origin.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace ucudnn {

/// Parses into an nlohmann::basic_json. Checks each value before it is built, because the text may
/// need too much stack and memory. Throws std::runtime_error that names the bound, and the
/// exceptions of `Json::parse`.
template <typename Json>
Json parseBounded(const std::string& text, int mostDepth, std::size_t mostEvents) {
  std::size_t events = 0;
  return Json::parse(text, [&](int depth, typename Json::parse_event_t, const Json&) {
    if (depth > mostDepth)
      throw std::runtime_error(fmt::format("it is nested deeper than {} levels", mostDepth));
    if (++events > mostEvents)
      throw std::runtime_error(fmt::format("it has more than {} names and values", mostEvents));
    return true;
  });
}

}  // namespace ucudnn
