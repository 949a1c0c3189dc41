#include "simulator/cudnn/profile.hpp"

#include <algorithm>
#include <stdexcept>

namespace ucudnn::simulator {
namespace {

constexpr std::size_t kColumns = 20;

}  // namespace

void Profile::addLine(const std::string& line) {
  const std::vector<std::string_view> fields = splitLine(line);
  if (fields.size() != kColumns) {
    throw std::runtime_error("has " + std::to_string(fields.size()) + " columns instead of " +
                             std::to_string(kColumns));
  }
  const RecordedProblem key = toRecordedProblem(fields);
  const int batch = toBatch(fields);
  const int algorithm = toInt(fields[14], "algorithm");
  const Cost cost{toTime(fields[18]),
                  static_cast<std::size_t>(toInteger(fields[19], "workspace_bytes"))};

  Entry& entry = entries_[key];
  const auto place = std::lower_bound(entry.batches.begin(), entry.batches.end(), batch);
  if (place == entry.batches.end() || *place != batch) entry.batches.insert(place, batch);
  std::vector<Row>& rows = entry.byAlgorithm[algorithm];
  const auto row = std::lower_bound(
      rows.begin(), rows.end(), batch, [](const Row& r, int b) { return r.batch < b; });
  if (row == rows.end() || row->batch != batch) rows.insert(row, Row{batch, cost});
}

void Profile::load(const std::string& path) {
  const std::vector<std::string> lines = readLines(path);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    try {
      if (!lines[i].empty()) addLine(lines[i]);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ":" + std::to_string(i + 1) + ": " + error.what());
    }
  }
  if (entries_.empty()) throw std::runtime_error(path + ": holds no measurements");
}

Profile::Match Profile::find(const ConvolutionProblem& problem, int algorithm, Cost* cost) const {
  if (entries_.empty() || !isRecordable(problem)) return Match::kNone;
  const auto found = entries_.find(recordedProblem(problem));
  if (found == entries_.end()) return Match::kNone;
  const Entry& entry = found->second;
  const auto rows = entry.byAlgorithm.find(algorithm);
  if (rows == entry.byAlgorithm.end()) return Match::kUnavailable;
  const auto at = [&](int batch) -> const Cost* {
    for (const Row& row : rows->second) {
      if (row.batch == batch) return &row.cost;
    }
    return nullptr;
  };

  const int batch = problem.batch();
  const auto above = std::lower_bound(entry.batches.begin(), entry.batches.end(), batch);
  const int high = above == entry.batches.end() ? entry.batches.back() : *above;
  const Cost* highCost = at(high);
  if (highCost == nullptr) return Match::kUnavailable;
  if (above == entry.batches.end()) {
    *cost = between(Cost{}, *highCost, static_cast<double>(batch) / high);
  } else if (high == batch || above == entry.batches.begin()) {
    *cost = *highCost;
  } else {
    const int low = *(above - 1);
    const Cost* lowCost = at(low);
    if (lowCost == nullptr) return Match::kUnavailable;
    *cost = between(*lowCost, *highCost, static_cast<double>(batch - low) / (high - low));
  }
  return Match::kAvailable;
}

}  // namespace ucudnn::simulator
