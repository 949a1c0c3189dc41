#include "support/unknown_variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "support/settings.hpp"
#include "support/text.hpp"

namespace ucudnn {
namespace {

/// Variables that are no settings: the simulator's, the fault injection's, and the one by which
/// `ucudnn run` tells libucudnn_preload.so something. A trailing underscore makes it a prefix.
constexpr std::array<std::string_view, 3> kOthersVariables = {
    "UCUDNN_SIMULATOR_", "UCUDNN_SQLITE_", "UCUDNN_RUN_PROCESS"};
constexpr std::string_view kPrefix = "UCUDNN_";

/// Levenshtein's: the fewest letters to insert, delete or replace.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, diagonal + 1, replaced});
    }
  }
  return row.back();
}

bool isKnown(std::string_view name) {
  for (const EnvironmentVariable& variable : environmentVariables()) {
    if (name == variable.name) return true;
  }
  return std::any_of(kOthersVariables.begin(), kOthersVariables.end(), [name](auto other) {
    return other.back() == '_' ? name.substr(0, other.size()) == other : name == other;
  });
}

/// The setting with the closest name, or "" if none is close. Up to half of the letters after the
/// prefix may differ; a slip or one forgotten word stays within that.
std::string_view nearestName(std::string_view name) {
  constexpr std::size_t kMostLetters = 100;  // far more than any setting has
  if (name.size() > kMostLetters) return {};
  std::string_view nearest;
  std::size_t least = (name.size() - kPrefix.size()) / 2 + 1;
  for (const EnvironmentVariable& variable : environmentVariables()) {
    const std::size_t distance = editDistance(name, variable.name);
    if (distance < least) {
      least = distance;
      nearest = variable.name;
    }
  }
  return nearest;
}

}  // namespace

std::vector<std::string> unknownVariableWarnings(const std::vector<std::string>& names) {
  constexpr std::size_t kMostWarnings = 10;
  std::vector<std::string> warnings;
  std::size_t unknown = 0;
  for (const std::string& name : names) {
    if (name.compare(0, kPrefix.size(), kPrefix) != 0 || isKnown(name)) continue;
    if (++unknown > kMostWarnings) continue;
    const std::string_view nearest = nearestName(name);
    warnings.push_back(
        nearest.empty()
            ? fmt::format("{} is not a setting of μ-cuDNN", excerpt(name))
            : fmt::format("{} is not a setting of μ-cuDNN; is {} meant?", name, nearest));
  }
  if (unknown > kMostWarnings)
    warnings.back() = fmt::format("{} variables are not settings of μ-cuDNN", unknown);
  return warnings;
}

}  // namespace ucudnn
