// ResNet-50's convolutions as recorded on an H200 (misc/profiles/h200_resnet50_n128.csv).
#pragma once

#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "division/workspace_division.hpp"
#include "optimizer/workspace_reuse.hpp"

namespace ucudnn::test {

constexpr int kResnet50Batch = 128;

inline std::vector<std::map<std::string, std::string>> readCsv(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " can't be read");
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::stringstream cells(line);
    std::vector<std::string> values;
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(cell);
    if (names.empty()) {
      names = values;
      continue;
    }
    std::map<std::string, std::string> row;
    for (std::size_t i = 0; i < names.size() && i < values.size(); ++i) row[names[i]] = values[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The kernels of the 53 layers, three operations each, at powers of two; `math` is "fma" or
/// "tf32".
inline std::vector<CandidateTable> resnet50Tables(const std::string& math) {
  const auto key = [](const auto& row, std::initializer_list<const char*> columns) {
    std::string text;
    for (const char* column : columns) text += row.at(column) + " ";
    return text;
  };
  std::map<std::string, CandidateTable> recorded;
  for (const auto& row : readCsv(UCUDNN_MISC "/profiles/h200_resnet50_n128.csv"))
    if (row.at("math") == math)
      recorded[row.at("operation") + " " +
               key(row, {"c", "h", "w", "k", "kh", "kw", "pad_h", "pad_w", "stride_h", "stride_w"})]
              [std::stoi(row.at("batch"))]
                  .push_back({std::stoi(row.at("algorithm")),
                              std::stod(row.at("time_ms")),
                              std::stoul(row.at("workspace_bytes"))});
  std::vector<CandidateTable> tables;
  for (const auto& layer : readCsv(UCUDNN_MISC "/layers/resnet50.csv")) {
    const std::string shape = key(layer,
                                  {"C_in",
                                   "H",
                                   "W",
                                   "C_out",
                                   "kernel_h",
                                   "kernel_w",
                                   "pad_h",
                                   "pad_w",
                                   "stride_h",
                                   "stride_w"});
    for (const char* operation : {"forward ", "backward_data ", "backward_filter "})
      tables.push_back(recorded.at(operation + shape));
  }
  return tables;
}

/// The Pareto fronts of tables at ResNet-50's mini-batch, to be divided.
inline std::vector<DivisionItem> divisionItems(const std::vector<CandidateTable>& tables) {
  std::vector<DivisionItem> items;
  for (const CandidateTable& table : tables) {
    DivisionItem& item = items.emplace_back();
    for (const Configuration& point :
         paretoFront(table, kResnet50Batch, {std::numeric_limits<std::size_t>::max()}, 0.002))
      item.options.push_back({point.timeMs, point.workspaceBytes});
  }
  return items;
}

/// A candidate at every size: between two recorded sizes, each kernel of both lies on the line.
inline CandidateTable atAllSizes(const CandidateTable& recorded) {
  CandidateTable all = recorded;
  for (auto above = std::next(recorded.begin()); above != recorded.end(); ++above) {
    const auto& [lower, below] = *std::prev(above);
    for (int size = lower + 1; size < above->first; ++size)
      for (const Candidate& a : below)
        for (const Candidate& b : above->second)
          if (a.kernel == b.kernel) {
            const double part = static_cast<double>(size - lower) / (above->first - lower);
            const auto between = [&](double from, double to) { return from + part * (to - from); };
            all[size].push_back(
                {a.kernel,
                 between(a.timeMs, b.timeMs),
                 static_cast<std::size_t>(between(static_cast<double>(a.workspaceBytes),
                                                  static_cast<double>(b.workspaceBytes)))});
          }
  }
  return all;
}

}  // namespace ucudnn::test
