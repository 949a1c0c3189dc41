// The table that people read.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "support/settings.hpp"
#include "support/sizes.hpp"
#include "support/text.hpp"
#include "tool/report.hpp"

namespace ucudnn::tool {
namespace {

std::string factor(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}x", *value) : "-";
}

std::string distance(const std::optional<double>& value) {
  return value ? fmt::format("{:.1e}", *value) : "-";
}

/// Columns on a terminal: UTF-8's continuation bytes take none.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// Takes away the columns that say nothing.
void eraseColumns(std::vector<std::vector<std::string>>& lines,
                  const std::vector<std::string>& headers) {
  for (const std::string& header : headers) {
    const auto found = std::find(lines.front().begin(), lines.front().end(), header);
    const auto column = found - lines.front().begin();
    for (auto& line : lines) line.erase(line.begin() + column);
  }
}

bool haveSeveralLimits(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return row.limitBytes != rows.front().limitBytes;
  });
}

std::vector<std::vector<std::string>> linesOf(const std::vector<Row>& rows, const Totals& totals) {
  std::vector<std::vector<std::string>> lines = {{"layer",
                                                  "operation",
                                                  "limit",
                                                  "cuDNN ms",
                                                  "μ-cuDNN ms",
                                                  "predicted",
                                                  "undivided",
                                                  "unlimited",
                                                  "best",
                                                  "speed-up",
                                                  "replayed",
                                                  "workspace",
                                                  "error",
                                                  "cuDNN's",
                                                  "configuration"}};
  for (const Row& row : rows)
    lines.push_back({row.layer,
                     row.operation,
                     formatSize(row.limitBytes),
                     milliseconds(row.cudnnMs),
                     milliseconds(row.ucudnnMs),
                     milliseconds(row.predictedMs),
                     milliseconds(row.undividedMs),
                     milliseconds(row.unlimitedMs),
                     milliseconds(row.bestMs()),
                     factor(row.speedup()),
                     percent(row.replayed),
                     row.ucudnnMs ? formatSize(row.workspaceBytes) : "-",
                     distance(row.relativeError),
                     distance(row.pickedRelativeError),
                     row.error.empty() ? toText(row.configuration) : "FAILED: " + row.error});
  lines.push_back({"total",
                   "",
                   "",
                   milliseconds(totals.cudnnMs),
                   milliseconds(totals.ucudnnMs),
                   milliseconds(totals.predictedMs),
                   milliseconds(totals.undividedMs),
                   milliseconds(totals.unlimitedMs),
                   "",
                   factor(totals.speedup),
                   "",
                   "",
                   "",
                   "",
                   ""});
  const auto hasNone = [&](std::optional<double> Row::*time) {
    return std::none_of(rows.begin(), rows.end(), [&](const Row& row) { return row.*time; });
  };
  std::vector<std::string> unused;
  if (!haveSeveralLimits(rows)) unused.emplace_back("limit");
  if (hasNone(&Row::undividedMs)) unused.emplace_back("undivided");
  if (hasNone(&Row::engineMs)) unused.emplace_back("best");
  eraseColumns(lines, unused);
  return lines;
}

void writeSums(std::ostream& stream, const Report& report, const Totals& totals) {
  stream << fmt::format(
      "\nspeed-up {} in total, geometric mean {}, largest {}; prediction off by {} (median), {} "
      "(largest)\n",
      factor(totals.speedup),
      factor(totals.geometricMeanSpeedup),
      factor(totals.maximumSpeedup),
      percent(totals.predictionMedianError),
      percent(totals.predictionMaximumError));
  for (const AgainstBest& limit : compareWithBest(report.rows))
    if (limit.rows > 0)
      stream << fmt::format(
          "within {}, against cuDNN's best at any workspace: geometric mean {} of {} rows, least "
          "{} "
          "({})\n",
          formatSize(limit.limitBytes),
          factor(limit.geometricMean),
          limit.rows,
          factor(limit.minimum),
          printable(limit.minimumRow));
  stream << fmt::format("planning {:.1f} ms: {} kernels measured, {} loaded from the database\n",
                        totals.planningMs,
                        report.kernelsMeasured,
                        report.kernelsLoaded);
  if (report.graphs > 0)
    stream << fmt::format("{} calls were replayed; {} graphs are kept, which take {}\n",
                          report.replayedCalls,
                          report.graphs,
                          formatSize(static_cast<std::size_t>(report.graphBytes)));
  if (totals.lessAccurate > 0)
    stream << fmt::format(
        "{} of {} rows are split with an error above that of what cuDNN picks without a limit\n",
        totals.lessAccurate,
        totals.rows);
  if (totals.failed > 0)
    stream << fmt::format("{} of {} rows failed\n", totals.failed, totals.rows);
}

}  // namespace

std::string milliseconds(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "-";
}

void writeColumns(std::ostream& stream,
                  const std::vector<std::vector<std::string>>& cells,
                  std::size_t leftColumns) {
  std::vector<std::size_t> widths;
  std::vector<std::vector<std::string>> lines = cells;
  for (auto& line : lines) {
    // Names come from databases and from drivers, too.
    for (std::string& cell : line) cell = printable(cell);
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
  }
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - width(line[i]), ' ');
      const bool left = i < leftColumns || i + 1 == widths.size();
      text += (i == 0 ? "" : "  ") + (left ? line[i] + padding : padding + line[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    stream << text << '\n';
  }
}

void writeTable(std::ostream& stream, const Report& report) {
  for (const std::string& remark : report.remarks) stream << printable(remark) << '\n';
  if (!report.remarks.empty()) stream << '\n';
  const Totals totals = computeTotals(report.rows);
  writeColumns(stream, linesOf(report.rows, totals), 2);
  writeSums(stream, report, totals);
}

}  // namespace ucudnn::tool
