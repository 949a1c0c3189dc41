#include "simulator/cudnn/profile_fields.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <tuple>

namespace ucudnn::simulator {
namespace {

enum Math { kFma, kTf32 };

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

}  // namespace

bool RecordedProblem::operator<(const RecordedProblem& other) const {
  return std::tie(operation, math, numbers) < std::tie(other.operation, other.math, other.numbers);
}

std::vector<std::string_view> splitLine(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

void badField(const char* column, std::string_view field) {
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

RecordedProblem toRecordedProblem(const std::vector<std::string_view>& fields) {
  RecordedProblem problem{toOperation(fields[1]), toMath(fields[2]), {}};
  static constexpr const char* kNames[] = {
      "c", "h", "w", "k", "kh", "kw", "pad_h", "pad_w", "stride_h", "stride_w"};
  for (std::size_t i = 0; i < problem.numbers.size(); ++i) {
    problem.numbers[i] = toInt(fields[4 + i], kNames[i]);
  }
  return problem;
}

int toBatch(const std::vector<std::string_view>& fields) {
  const int batch = toInt(fields[3], "batch");
  if (batch == 0) badField("batch", fields[3]);
  return batch;
}

bool isRecordable(const ConvolutionProblem& problem) {
  const auto& convolution = problem.convolution;
  return problem.x.rank == 4 && problem.x.type == CUDNN_DATA_FLOAT && problem.groups() == 1 &&
         convolution.dilation[0] == 1 && convolution.dilation[1] == 1 &&
         convolution.pad == convolution.endPad && problem.filterFormat == CUDNN_TENSOR_NCHW &&
         isPackedNchwSample(problem.x) && isPackedNchwSample(problem.y);
}

RecordedProblem recordedProblem(const ConvolutionProblem& problem) {
  const auto& convolution = problem.convolution;
  return {static_cast<int>(problem.operation),
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

std::vector<std::string> readLines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  if (file.bad()) throw std::runtime_error(path + ": holds no measurements");
  return lines;
}

}  // namespace ucudnn::simulator
