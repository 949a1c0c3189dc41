// Shared by recorded tables: lines of fields, and the problems that they name.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/cudnn/problem.hpp"

namespace ucudnn::simulator {

/// The cost of one algorithm or engine for one problem.
struct Cost {
  double timeMs = 0;
  std::size_t workspaceBytes = 0;
};

/// A problem of a table, whatever its batch: float, NCHW, one group, no dilation.
struct RecordedProblem {
  int operation;
  int math;
  std::array<int, 10> numbers;  ///< c, h, w, k, kh, kw, pad_h, pad_w, stride_h, stride_w
  bool operator<(const RecordedProblem& other) const;
};

/// Columns that name a problem and its batch size: the first of every table.
constexpr const char* kProblemHeader =
    "layer,operation,math,batch,c,h,w,k,kh,kw,pad_h,pad_w,stride_h,stride_w";
constexpr std::size_t kProblemColumns = 14;

std::vector<std::string_view> splitLine(std::string_view line);

/// The functions that read fields throw std::runtime_error("COLUMN is 'FIELD'").
[[noreturn]] void badField(const char* column, std::string_view field);
long long toInteger(std::string_view field, const char* column);
int toInt(std::string_view field, const char* column);
double toTime(std::string_view field);

/// REQUIRES: as many fields as kProblemColumns, or more.
RecordedProblem toRecordedProblem(const std::vector<std::string_view>& fields);
int toBatch(const std::vector<std::string_view>& fields);

/// Whether tables name problems of this kind.
bool isRecordable(const ConvolutionProblem& problem);

/// REQUIRES: isRecordable.
RecordedProblem recordedProblem(const ConvolutionProblem& problem);

/// Linear; `part` of the way from low to high. The workspace is rounded up.
Cost between(const Cost& low, const Cost& high, double part);

/// The file's lines without their ends. Throws std::runtime_error("FILE: cannot be opened").
std::vector<std::string> readLines(const std::string& path);

}  // namespace ucudnn::simulator
