#include "support/problem_text.hpp"

#include <algorithm>
#include <cstring>

namespace ucudnn {
namespace {

/// The part of the text behind `begin` and before the next `end`; empty: there is none.
std::string between(const std::string& text, const char* begin, char end) {
  const auto found = text.find(begin);
  if (found == std::string::npos) return "";
  const auto from = found + std::strlen(begin);
  return text.substr(from, text.find(end, from) - from);
}

/// "64,27,27" as "64x27x27".
std::string product(std::string list) {
  std::replace(list.begin(), list.end(), ',', 'x');
  return list;
}

}  // namespace

std::string shortProblemText(const std::string& problem) {
  constexpr const char* kBackward = "backward_";
  const std::string x = between(problem, " x=", ' '), w = between(problem, " w=", ' ');
  const std::string sizes = between(x, "*,", '/'), filter = between(w, ":", '/');
  const auto channels = filter.find(',') + 1, taps = filter.find(',', channels) + 1;
  const std::string pad = between(problem, " pad=", ' '),
                    stride = between(problem, " stride=", ' '),
                    dilation = between(problem, " dilation=", ' '),
                    groups = between(problem, " groups=", ' '),
                    math = between(problem, " math=", ' ');
  if (sizes.empty() || channels == 0 || taps == 0 || pad.empty() || stride.empty() ||
      dilation.empty() || groups.empty() || math.empty())
    return problem;
  std::string text = problem.substr(0, problem.find(' '));
  if (text.rfind(kBackward, 0) == 0) text.replace(0, std::strlen(kBackward), "bwd ");
  text += ' ' + product(sizes) + " k" + filter.substr(0, channels - 1) + ' ' +
          product(filter.substr(taps)) + " pad " + product(pad) + " stride " + product(stride);
  if (dilation.find_first_not_of("1,") != std::string::npos)
    text += " dilation " + product(dilation);
  if (groups != "1") text += " groups " + groups;
  text += ", " + x.substr(0, x.find(':'));
  if (math != "default") text += ", " + math;
  if (between(w, "/", ' ') == "nhwc") text += ", nhwc";
  if (problem.find(" convolution ") != std::string::npos) text += ", mirrored";
  const auto rest = problem.find(' ', problem.find(" math=") + 1);
  return rest == std::string::npos ? text : text + ',' + problem.substr(rest);
}

}  // namespace ucudnn
