#include "simulator/cudnn/profile.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <tuple>

namespace ucudnn::simulator {
namespace {

constexpr const char* kHeader =
    "layer,operation,math,batch,c,h,w,k,kh,kw,pad_h,pad_w,stride_h,stride_w,algorithm,"
    "algorithm_name,math_type,deterministic,time_ms,workspace_bytes";
constexpr std::size_t kColumns = 20;

enum Math { kFma, kTf32 };

std::vector<std::string_view> splitLine(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

[[noreturn]] void badField(const char* column, std::string_view field) {
  throw std::runtime_error(std::string(column) + " is '" + std::string(field) + "'");
}

long long toInteger(std::string_view field, const char* column) {
  const std::string text(field);
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0) badField(column, field);
  return value;
}

int toInt(std::string_view field, const char* column) {
  const long long value = toInteger(field, column);
  if (value > INT32_MAX) badField(column, field);
  return static_cast<int>(value);
}

double toTime(std::string_view field) {
  const std::string text(field);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value > 0) || !std::isfinite(value)) {
    badField("time_ms", field);
  }
  return value;
}

int toOperation(std::string_view field) {
  if (field == "forward") return static_cast<int>(Operation::kForward);
  if (field == "backward_data") return static_cast<int>(Operation::kBackwardData);
  if (field == "backward_filter") return static_cast<int>(Operation::kBackwardFilter);
  badField("operation", field);
}

int toMath(std::string_view field) {
  if (field == "fma") return kFma;
  if (field == "tf32") return kTf32;
  badField("math", field);
}

// What the recorded tables stand for: float, NCHW, one group, no dilation.
bool isRecordable(const ConvolutionProblem& problem) {
  const auto& convolution = problem.convolution;
  return problem.x.rank == 4 && problem.x.type == CUDNN_DATA_FLOAT && problem.groups() == 1 &&
         convolution.dilation[0] == 1 && convolution.dilation[1] == 1 &&
         problem.filterFormat == CUDNN_TENSOR_NCHW && isPackedNchwSample(problem.x) &&
         isPackedNchwSample(problem.y);
}

Cost between(const Cost& low, const Cost& high, double part) {
  Cost cost;
  cost.timeMs = low.timeMs + (high.timeMs - low.timeMs) * part;
  const auto lowBytes = static_cast<double>(low.workspaceBytes);
  const auto highBytes = static_cast<double>(high.workspaceBytes);
  cost.workspaceBytes =
      static_cast<std::size_t>(std::ceil(lowBytes + (highBytes - lowBytes) * part));
  return cost;
}

}  // namespace

bool Profile::Key::operator<(const Key& other) const {
  return std::tie(operation, math, numbers) < std::tie(other.operation, other.math, other.numbers);
}

void Profile::addLine(const std::string& line) {
  const std::vector<std::string_view> fields = splitLine(line);
  if (fields.size() != kColumns) {
    throw std::runtime_error("has " + std::to_string(fields.size()) + " columns instead of " +
                             std::to_string(kColumns));
  }
  Key key{toOperation(fields[1]), toMath(fields[2]), {}};
  static constexpr const char* kNames[] = {
      "c", "h", "w", "k", "kh", "kw", "pad_h", "pad_w", "stride_h", "stride_w"};
  for (std::size_t i = 0; i < key.numbers.size(); ++i) {
    key.numbers[i] = toInt(fields[4 + i], kNames[i]);
  }
  const int batch = toInt(fields[3], "batch");
  if (batch == 0) badField("batch", fields[3]);
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
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    try {
      if (number == 1) {
        if (line != kHeader) throw std::runtime_error(std::string("header is not ") + kHeader);
      } else if (!line.empty()) {
        addLine(line);
      }
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  if (file.bad() || entries_.empty()) throw std::runtime_error(path + ": holds no measurements");
}

Profile::Match Profile::find(const ConvolutionProblem& problem, int algorithm, Cost* cost) const {
  if (entries_.empty() || !isRecordable(problem)) return Match::kNone;
  const auto& convolution = problem.convolution;
  const Key key{static_cast<int>(problem.operation),
                convolution.mathType == CUDNN_FMA_MATH ? kFma : kTf32,
                {problem.x.dims[1],
                 problem.x.dims[2],
                 problem.x.dims[3],
                 problem.w.dims[0],
                 problem.w.dims[2],
                 problem.w.dims[3],
                 convolution.pad[0],
                 convolution.pad[1],
                 convolution.stride[0],
                 convolution.stride[1]}};
  const auto found = entries_.find(key);
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

const Profile& recordedProfile() {
  // Never destroyed: handles may be used from static destructors.
  static const Profile* const profile = [] {
    auto* loaded = new Profile();
    const char* paths = std::getenv("UCUDNN_SIMULATOR_PROFILE");
    try {
      std::istringstream list(paths == nullptr ? "" : paths);
      for (std::string path; std::getline(list, path, ',');) {
        if (!path.empty()) loaded->load(path);
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "ucudnn simulator: UCUDNN_SIMULATOR_PROFILE: %s\n", error.what());
      loaded->markInvalid();
    }
    return loaded;
  }();
  return *profile;
}

}  // namespace ucudnn::simulator
