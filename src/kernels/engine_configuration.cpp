#include "kernels/engine_configuration.hpp"

#include <charconv>
#include <map>
#include <mutex>
#include <unordered_map>

#include "support/fork.hpp"

namespace ucudnn {
namespace {

/// More than cuDNN has types of knobs; a database may say anything.
constexpr std::size_t kMostKnobs = 64;

/// Takes `prefix` and a number off the text. False: it does not begin so, or the number is written
/// otherwise than toText writes it, as "01" and "-0": one kernel has one name.
template <typename Number>
bool take(std::string_view& text, std::string_view prefix, Number& number) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  const char* const begin = text.data() + prefix.size();
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, number);
  if (error != std::errc()) return false;
  const char* const digits = *begin == '-' ? begin + 1 : begin;
  if (*digits == '0' && rest - begin > 1) return false;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return true;
}

/// Each configuration that was ever named. Never destroyed: handles are used in static destructors.
struct Ids {
  ForkMutex mutex;
  std::map<EngineConfiguration, std::int32_t> ids;
  std::unordered_map<std::string, std::int32_t> texts;  ///< those that were parsed
  std::vector<EngineConfiguration> configurations;
};

Ids& ids() {
  static Ids& all = *new Ids;
  return all;
}

}  // namespace

std::string toText(const EngineConfiguration& configuration) {
  std::string text;
  const auto add = [&text](const char* name, std::int64_t number) {
    text += name;
    text += std::to_string(number);
  };
  add("eng", configuration.engine);
  for (const auto& [type, choice] : configuration.knobs) {
    add("_k", type);
    add("=", choice);
  }
  if (configuration.tiles != 1) add("_tiles=", configuration.tiles);
  if (configuration.sums != 1) add("_sums=", configuration.sums);
  if (configuration.splits != 1) add("_splits=", configuration.splits);
  if (configuration.blocks != 0) add("_blocks=", configuration.blocks);
  if (configuration.folds != 1) add("_folds=", configuration.folds);
  if (configuration.bands != 1) add("_bands=", configuration.bands);
  if (configuration.last != 0) add("_last=", configuration.last);
  return text;
}

std::optional<EngineConfiguration> engineConfigurationFromText(std::string_view text) {
  EngineConfiguration configuration;
  if (!take(text, "eng", configuration.engine)) return std::nullopt;
  int type = 0;
  while (take(text, "_k", type)) {
    std::int64_t choice = 0;
    if (!take(text, "=", choice) || configuration.knobs.size() == kMostKnobs) return std::nullopt;
    configuration.knobs.emplace_back(type, choice);
  }
  const auto isLast = [&text](std::string_view prefix, int& parts, int least, int most) {
    std::string_view rest = text;
    return take(rest, prefix, parts) && rest.empty() && parts >= least && parts <= most;
  };
  if (text.empty() || isLast("_tiles=", configuration.tiles, 2, kMostTiles) ||
      isLast("_folds=", configuration.folds, 2, kMostFolds) ||
      isLast("_sums=", configuration.sums, 2, kMostSums) ||
      isLast("_splits=", configuration.splits, 2, kMostSums) ||
      isLast("_blocks=", configuration.blocks, 1, kMostPixels))
    return configuration;
  configuration.blocks = 0;
  if (!take(text, "_blocks=", configuration.blocks)) return std::nullopt;
  if (configuration.blocks > 1 && configuration.blocks <= kMostPixels &&
      isLast("_last=", configuration.last, 1, 1))
    return configuration;
  if (configuration.blocks != 1) return std::nullopt;
  if (isLast("_folds=", configuration.folds, 2, kMostFolds) ||
      isLast("_bands=", configuration.bands, 2, kMostBands))
    return configuration;
  configuration.folds = 1;
  if (take(text, "_folds=", configuration.folds) && configuration.folds >= 2 &&
      configuration.folds <= kMostFolds && isLast("_bands=", configuration.bands, 2, kMostBands))
    return configuration;
  return std::nullopt;
}

std::optional<std::int32_t> idFromText(std::string_view text) {
  Ids& all = ids();
  const std::string whole(text);
  {
    const std::lock_guard lock(all.mutex);
    if (const auto known = all.texts.find(whole); known != all.texts.end()) return known->second;
  }
  const auto value = engineConfigurationFromText(text);
  if (!value) return std::nullopt;
  const std::int32_t id = idOf(*value);
  const std::lock_guard lock(all.mutex);
  all.texts.emplace(whole, id);
  return id;
}

std::int32_t idOf(const EngineConfiguration& configuration) {
  Ids& all = ids();
  const std::lock_guard lock(all.mutex);
  const auto next = static_cast<std::int32_t>(all.configurations.size());
  const auto [place, isNew] = all.ids.emplace(configuration, next);
  if (isNew) all.configurations.push_back(configuration);
  return place->second;
}

EngineConfiguration engineConfigurationOf(std::int32_t id) {
  Ids& all = ids();
  const std::lock_guard lock(all.mutex);
  return all.configurations.at(static_cast<std::size_t>(id));
}

}  // namespace ucudnn
