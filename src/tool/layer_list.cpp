#include "tool/layer_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <istream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string_view>

#include "support/files.hpp"
#include "support/text.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::array<const char*, 12> kRequired = {"source",
                                                   "W",
                                                   "H",
                                                   "C_in",
                                                   "N",
                                                   "C_out",
                                                   "kernel_w",
                                                   "kernel_h",
                                                   "pad_w",
                                                   "pad_h",
                                                   "stride_w",
                                                   "stride_h"};
constexpr std::array<const char*, 9> kOptional = {"dilation_w",
                                                  "dilation_h",
                                                  "groups",
                                                  "data_type",
                                                  "D",
                                                  "kernel_d",
                                                  "pad_d",
                                                  "stride_d",
                                                  "dilation_d"};
constexpr std::array<const char*, 4> kDataTypes = {"float", "half", "bfloat16", "double"};

// Generous for what is a convolution, and small enough for the sums and products below; a million
// samples are planned within seconds.
constexpr int kMostNumber = 1 << 20;
constexpr double kMostElements = 1e12;  // of a tensor; more than any device holds
constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;
constexpr std::size_t kMostLineBytes = 10000;
constexpr std::size_t kMostNameBytes = 200;
constexpr std::size_t kMostLayers = 10000;

constexpr const char* kBlanks = " \t\r";

/// Cells of a line; one in double quotes may hold commas, and "" for a quote. Empty: a quote is not
/// closed.
std::vector<std::string> splitCells(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"')
        cells.back() += line[++i];
      else
        quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  if (quoted) return {};
  for (std::string& cell : cells) cell = std::string(trimmed(cell, kBlanks));
  return cells;
}

/// One line of a list, with what an error message needs.
class Line {
 public:
  Line(const std::string& file, int number) : file_(file), number_(number) {}

  std::map<std::string, std::string> cells;

  bool has(const std::string& column) const { return cells.count(column) != 0; }

  int number(const std::string& column, int least) const {
    const std::string& text = cells.at(column);
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::invalid_argument || end != text.data() + text.size())
      refuse(column, fmt::format("\"{}\" is not a whole number", excerpt(text)));
    const bool isTooLong = error == std::errc::result_out_of_range;
    if (isTooLong ? text[0] == '-' : value < least)
      refuse(column, fmt::format("{} is less than {}", excerpt(text), least));
    if (isTooLong || value > kMostNumber)
      refuse(column, fmt::format("{} is more than {}", excerpt(text), kMostNumber));
    return value;
  }
  int number(const std::string& column, int least, int otherwise) const {
    return has(column) && !cells.at(column).empty() ? number(column, least) : otherwise;
  }

  [[noreturn]] void refuse(const std::string& column, const std::string& why) const {
    throw BadInput(fmt::format("{}, line {}, column {}: {}", excerpt(file_), number_, column, why));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw BadInput(fmt::format("{}, line {}: {}", excerpt(file_), number_, why));
  }

  std::vector<std::string> split(const std::string& text) const {
    if (text.size() > kMostLineBytes)
      refuse(fmt::format("it has {} bytes, more than {}", text.size(), kMostLineBytes));
    std::vector<std::string> split = splitCells(text);
    if (split.empty()) refuse(fmt::format("a quote is not closed: {}", excerpt(text)));
    return split;
  }

 private:
  const std::string& file_;
  int number_;
};

std::vector<std::string> readHeader(const std::string& text, const Line& line) {
  std::vector<std::string> header = line.split(text);
  std::set<std::string> seen;
  for (const std::string& column : header) {
    const auto names = [&](const char* known) { return column == known; };
    if (std::none_of(kRequired.begin(), kRequired.end(), names) &&
        std::none_of(kOptional.begin(), kOptional.end(), names))
      line.refuse(fmt::format("unknown column \"{}\"; the columns are {},{}",
                              excerpt(column, 30),
                              fmt::join(kRequired, ","),
                              fmt::join(kOptional, ",")));
    if (!seen.insert(column).second) line.refuse(fmt::format("column {} stands twice", column));
  }
  for (const char* column : kRequired)
    if (seen.count(column) == 0)
      line.refuse(
          fmt::format("column {} is missing; the columns are {}; `ucudnn bench --help` says more",
                      column,
                      fmt::join(kRequired, ",")));
  if (seen.count("D") != seen.count("kernel_d")) line.refuse("columns D and kernel_d go together");
  return header;
}

double product(const std::vector<int>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 1.0, std::multiplies<>());
}

/// "" if cuDNN's sizes in bytes stay far from 2^63.
std::string excessOf(const Layer& layer) {
  for (const auto& [tensor, sizes] : {std::make_pair("input", layer.inputSizes()),
                                      std::make_pair("filter", layer.filterSizes()),
                                      std::make_pair("output", layer.outputSizes())})
    if (product(sizes) > kMostElements)
      return fmt::format(
          "the {} has {:.3g} elements, more than {:g}", tensor, product(sizes), kMostElements);
  return {};
}

std::string nameOf(const Line& line) {
  const std::string& name = line.cells.at("source");
  if (name.size() > kMostNameBytes)
    line.refuse(
        "source",
        fmt::format(
            "\"{}\" has {} bytes, more than {}", excerpt(name), name.size(), kMostNameBytes));
  if (!isPrintable(name))
    line.refuse("source",
                fmt::format("\"{}\" is not UTF-8 without control characters", excerpt(name)));
  return name;
}

std::string dataTypeOf(const Line& line) {
  if (!line.has("data_type")) return {};
  const std::string& type = line.cells.at("data_type");
  if (!type.empty() && std::find(kDataTypes.begin(), kDataTypes.end(), type) == kDataTypes.end())
    line.refuse("data_type",
                fmt::format("\"{}\" is none of {}", excerpt(type), fmt::join(kDataTypes, ", ")));
  return type;
}

Layer toLayer(const Line& line) {
  Layer layer;
  layer.name = nameOf(line);
  layer.batch = line.number("N", 1);
  layer.inputChannels = line.number("C_in", 1);
  layer.outputChannels = line.number("C_out", 1);
  layer.groups = line.number("groups", 1, 1);
  if (layer.inputChannels % layer.groups != 0 || layer.outputChannels % layer.groups != 0)
    line.refuse("groups", fmt::format("{} does not divide C_in and C_out", layer.groups));
  layer.dataType = dataTypeOf(line);
  const bool deep = line.has("D") && !line.cells.at("D").empty();
  for (const std::string dimension : {"d", "h", "w"}) {
    if (dimension == "d" && !deep) continue;
    const char* const sizeColumn = dimension == "d" ? "D" : dimension == "h" ? "H" : "W";
    layer.size.push_back(line.number(sizeColumn, 1));
    layer.kernel.push_back(line.number("kernel_" + dimension, 1));
    layer.pad.push_back(line.number("pad_" + dimension, 0, 0));
    layer.stride.push_back(line.number("stride_" + dimension, 1, 1));
    layer.dilation.push_back(line.number("dilation_" + dimension, 1, 1));
    const long padded = long{layer.size.back()} + 2L * layer.pad.back();
    const long reach = long{layer.dilation.back()} * (layer.kernel.back() - 1) + 1;
    if (reach > padded)
      line.refuse("kernel_" + dimension,
                  fmt::format("the kernel reaches over {} of {} padded inputs", reach, padded));
  }
  if (const std::string excess = excessOf(layer); !excess.empty()) line.refuse(excess);
  return layer;
}

/// cuDNN wants a number in each cell but those with a default; `number` would report an empty
/// optional one as missing.
void requireCells(const Line& line) {
  for (const char* column : kRequired)
    if (line.cells.at(column).empty()) line.refuse(column, "is empty");
}

}  // namespace

std::vector<int> Layer::inputSizes() const {
  std::vector<int> sizes = {batch, inputChannels};
  sizes.insert(sizes.end(), size.begin(), size.end());
  return sizes;
}

std::vector<int> Layer::filterSizes() const {
  std::vector<int> sizes = {outputChannels, inputChannels / groups};
  sizes.insert(sizes.end(), kernel.begin(), kernel.end());
  return sizes;
}

std::vector<int> Layer::outputSizes() const {
  std::vector<int> sizes = {batch, outputChannels};
  for (std::size_t i = 0; i < size.size(); ++i) {
    const int reach = dilation[i] * (kernel[i] - 1) + 1;
    sizes.push_back((size[i] + 2 * pad[i] - reach) / stride[i] + 1);
  }
  return sizes;
}

double Layer::multiplyAdds() const {
  return product(outputSizes()) * product(kernel) * inputChannels / groups;
}

double Layer::mostElements() const {
  return std::max({product(inputSizes()), product(filterSizes()), product(outputSizes())});
}

std::string Layer::shape() const {
  std::string text = fmt::format("{}x{}x{} k{} {} pad {} stride {}",
                                 batch,
                                 inputChannels,
                                 fmt::join(size, "x"),
                                 outputChannels,
                                 fmt::join(kernel, "x"),
                                 fmt::join(pad, "x"),
                                 fmt::join(stride, "x"));
  if (product(dilation) != 1) text += fmt::format(" dilation {}", fmt::join(dilation, "x"));
  if (groups != 1) text += fmt::format(" groups {}", groups);
  if (!dataType.empty()) text += " " + dataType;
  return text;
}

std::vector<Layer> parseLayers(std::istream& stream, const std::string& file) {
  std::vector<Layer> layers;
  std::vector<std::string> header;
  std::map<std::string, int> namesakes;
  std::string text;
  for (int number = 1; std::getline(stream, text); ++number) {
    if (number == 1 && text.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0)
      text.erase(0, kByteOrderMark.size());
    if (trimmed(text, kBlanks).empty() || text[0] == '#') continue;
    Line line(file, number);
    if (header.empty()) {
      header = readHeader(text, line);
      continue;
    }
    const std::vector<std::string> cells = line.split(text);
    if (cells.size() != header.size())
      line.refuse(fmt::format("{} cells, but the header has {}", cells.size(), header.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) line.cells[header[i]] = cells[i];
    requireCells(line);
    Layer layer = toLayer(line);
    const int occurrence = ++namesakes[layer.name];
    if (occurrence > 1) layer.name += fmt::format("#{}", occurrence);
    layers.push_back(std::move(layer));
    if (layers.size() > kMostLayers)
      line.refuse(
          fmt::format("it is the list's {}th layer, more than {}", layers.size(), kMostLayers));
  }
  if (header.empty()) throw BadInput(fmt::format("{}: no header line", excerpt(file)));
  if (layers.empty()) throw BadInput(fmt::format("{}: no layers", excerpt(file)));
  return layers;
}

namespace {

std::string contentOf(const std::string& file) {
  try {
    return readFile(file, kMostFileBytes);
  } catch (const std::runtime_error& reason) {
    throw BadInput(fmt::format("{}: {}", excerpt(file), reason.what()));
  }
}

}  // namespace

std::vector<Layer> readLayers(const std::vector<std::string>& files, int batchSize) {
  std::vector<Layer> all;
  for (const std::string& file : files) {
    std::istringstream stream(contentOf(file));
    std::vector<Layer> layers = parseLayers(stream, file);
    std::move(layers.begin(), layers.end(), std::back_inserter(all));
    if (all.size() > kMostLayers)
      throw BadInput(
          fmt::format("{}: with it there are more than {} layers", excerpt(file), kMostLayers));
  }
  if (batchSize == 0) return all;
  for (Layer& layer : all) {
    layer.batch = batchSize;
    if (const std::string excess = excessOf(layer); !excess.empty())
      throw BadInput(fmt::format("--batch-size: {}: {}", excerpt(layer.name), excess));
  }
  return all;
}

std::vector<Layer> filterLayers(std::vector<Layer> layers,
                                const std::vector<std::string>& patterns) {
  if (patterns.empty()) return layers;
  const auto unwanted = [&](const Layer& layer) {
    return std::none_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), layer.name.c_str(), 0) == 0;
    });
  };
  layers.erase(std::remove_if(layers.begin(), layers.end(), unwanted), layers.end());
  if (layers.empty())
    throw BadInput(fmt::format("--layers: no layer matches {}",
                               excerpt(fmt::format("{}", fmt::join(patterns, ", ")))));
  return layers;
}

}  // namespace ucudnn::tool
