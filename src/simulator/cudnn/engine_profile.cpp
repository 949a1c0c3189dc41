#include "simulator/cudnn/engine_profile.hpp"

#include <algorithm>
#include <stdexcept>

namespace ucudnn::simulator {
namespace {

constexpr std::size_t kEngineColumns = 4;

EngineChoice toChoice(std::string_view field) {
  const std::string_view whole = field;
  constexpr std::string_view kPrefix = "eng";
  if (field.substr(0, kPrefix.size()) != kPrefix) badField("engine", whole);
  field.remove_prefix(kPrefix.size());
  EngineChoice choice;
  for (bool first = true; first || !field.empty(); first = false) {
    const std::size_t end = std::min(field.find('_'), field.size());
    const std::string_view part = field.substr(0, end);
    field.remove_prefix(std::min(end + 1, field.size()));
    if (first) {
      choice.engine = toInteger(part, "engine");
      continue;
    }
    const std::size_t equals = part.find('=');
    if (part.front() != 'k' || equals == std::string_view::npos) badField("engine", whole);
    const std::string_view value = part.substr(equals + 1);
    const int type = toInt(part.substr(1, equals - 1), "engine");
    choice.knobs.push_back({static_cast<cudnnBackendKnobType_t>(type),
                            value == "-1" ? -1 : toInteger(value, "engine")});
  }
  return choice;
}

RecordedEngine toEngine(const std::vector<std::string_view>& fields) {
  if (fields[0].empty() || fields[0].find_first_not_of("ABF") != std::string_view::npos) {
    badField("modes", fields[0]);
  }
  return {std::string(fields[1]),
          std::string(fields[0]),
          toChoice(fields[1]),
          {toTime(fields[2]), static_cast<std::size_t>(toInteger(fields[3], "workspace_bytes"))}};
}

// The engine without the knobs that say how sums are split, which heuristics fit to each batch.
std::string splitlessText(const EngineChoice& choice) {
  EngineChoice rest{choice.engine, {}};
  for (const KnobChoice& knob : choice.knobs) {
    if (knob.type != CUDNN_KNOB_TYPE_SPLIT_K && knob.type != CUDNN_KNOB_TYPE_SPLIT_K_BUF &&
        knob.type != CUDNN_KNOB_TYPE_SPLIT_K_SLC) {
      rest.knobs.push_back(knob);
    }
  }
  return engineText(rest);
}

}  // namespace

std::string engineText(const EngineChoice& choice) {
  std::vector<KnobChoice> knobs = choice.knobs;
  std::sort(knobs.begin(), knobs.end(), [](const KnobChoice& a, const KnobChoice& b) {
    return a.type < b.type;
  });
  std::string text = "eng" + std::to_string(choice.engine);
  for (const KnobChoice& knob : knobs) {
    text += "_k" + std::to_string(static_cast<int>(knob.type)) + "=" + std::to_string(knob.value);
  }
  return text;
}

void EngineProfile::load(const std::string& path) {
  const std::vector<std::string> lines = readLines(path);
  Engines* engines = nullptr;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    try {
      if (i == 1 && lines[i] != kEngineHeader) {
        throw std::runtime_error(std::string("header is not ") + kEngineHeader);
      }
      if (i == 1 || lines[i].empty()) continue;
      const std::vector<std::string_view> fields = splitLine(lines[i]);
      if (fields.size() == kProblemColumns) {
        engines = &problems_[toRecordedProblem(fields)][toBatch(fields)];
      } else if (fields.size() == kEngineColumns && engines != nullptr) {
        engines->push_back(toEngine(fields));
      } else {
        throw std::runtime_error("is the line of neither a problem nor an engine of one");
      }
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ":" + std::to_string(i + 1) + ": " + error.what());
    }
  }
  if (problems_.empty()) throw std::runtime_error(path + ": holds no measurements");
}

EngineProfile::Engines EngineProfile::interpolated(const Batches& batches, int batch) {
  const auto above = batches.lower_bound(batch);
  Engines engines = above == batches.end() ? batches.rbegin()->second : above->second;
  if (above == batches.begin()) return engines;
  if (above == batches.end()) {
    const double part = static_cast<double>(batch) / batches.rbegin()->first;
    for (RecordedEngine& engine : engines) engine.cost = between(Cost{}, engine.cost, part);
    return engines;
  }
  const auto below = std::prev(above);
  const double part = static_cast<double>(batch - below->first) / (above->first - below->first);
  std::map<std::string, Cost> low;
  for (const RecordedEngine& engine : below->second) {
    low.emplace(splitlessText(engine.choice), engine.cost);
  }
  Engines common;
  for (RecordedEngine& engine : engines) {
    const auto found = low.find(splitlessText(engine.choice));
    if (found == low.end()) continue;
    engine.cost = between(found->second, engine.cost, part);
    common.push_back(std::move(engine));
  }
  return common;
}

const std::vector<RecordedEngine>* EngineProfile::find(const ConvolutionProblem& problem) const {
  if (problems_.empty() || !isRecordable(problem)) return nullptr;
  const auto found = problems_.find(recordedProblem(problem));
  if (found == problems_.end()) return nullptr;
  const auto exact = found->second.find(problem.batch());
  if (exact != found->second.end()) return &exact->second;
  const std::lock_guard<std::mutex> lock(mutex_);
  Batches& known = interpolated_[found->first];
  const auto [place, inserted] = known.try_emplace(problem.batch());
  if (inserted) place->second = interpolated(found->second, problem.batch());
  return &place->second;
}

}  // namespace ucudnn::simulator
