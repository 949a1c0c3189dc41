// The table that people read.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "support/settings.hpp"
#include "support/sizes.hpp"
#include "support/text.hpp"
#include "tool/columns.hpp"
#include "tool/report.hpp"

namespace ucudnn::tool {
namespace {

using Lines = std::vector<std::vector<std::string>>;

constexpr std::size_t kNameColumns = 16;  // of a layer; most names are shorter

std::string factor(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}x", *value) : "-";
}

std::string distance(const std::optional<double>& value) {
  return value ? fmt::format("{:.1e}", *value) : "-";
}

/// Removes the columns that say nothing.
void eraseColumns(Lines& lines, const std::vector<std::string>& headers) {
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

template <typename Value>
bool haveNone(const std::vector<Row>& rows, std::optional<Value> Row::*value) {
  return std::none_of(rows.begin(), rows.end(), [&](const Row& row) { return row.*value; });
}

Lines linesOf(const std::vector<Row>& rows, const Totals& totals) {
  Lines lines = {{"layer",
                  "operation",
                  "limit",
                  "cuDNN",
                  "undivided",
                  "best",
                  "μ-cuDNN",
                  "speed-up",
                  "workspace"}};
  for (const Row& row : rows)
    lines.push_back({layerName(row.layer),
                     operationName(row.operation),
                     formatSize(row.limitBytes),
                     milliseconds(row.cudnnMs),
                     milliseconds(row.undividedMs),
                     milliseconds(row.bestMs()),
                     milliseconds(row.ucudnnMs),
                     factor(row.speedup()),
                     row.ucudnnMs ? formatSize(row.workspaceBytes) : "-"});
  lines.push_back({"total",
                   "",
                   "",
                   milliseconds(totals.cudnnMs),
                   milliseconds(totals.undividedMs),
                   milliseconds(totals.bestMs),
                   milliseconds(totals.ucudnnMs),
                   factor(totals.speedup),
                   ""});
  std::vector<std::string> unused;
  if (!haveSeveralLimits(rows)) unused.emplace_back("limit");
  if (haveNone(rows, &Row::undividedMs)) unused.emplace_back("undivided");
  eraseColumns(lines, unused);
  const std::size_t left = columnsLeft(lines);
  lines.front().emplace_back("split");
  for (std::size_t i = 0; i < rows.size(); ++i)
    lines[i + 1].push_back(rows[i].error.empty() ? splitText(rows[i].configuration, left)
                                                 : "FAILED");
  return lines;
}

std::string nameOf(const Row& row, bool severalLimits) {
  return printable(fmt::format("{} {}{}",
                               row.layer,
                               row.operation,
                               severalLimits ? " within " + formatSize(row.limitBytes) : ""));
}

/// The rows with the largest and the least speed-up.
void writeExtremes(std::ostream& stream, const std::vector<Row>& rows) {
  const Row* best = nullptr;
  const Row* worst = nullptr;
  for (const Row& row : rows) {
    if (!row.speedup()) continue;
    if (best == nullptr || row.speedup() > best->speedup()) best = &row;
    if (worst == nullptr || row.speedup() < worst->speedup()) worst = &row;
  }
  if (best == worst) return;
  const bool severalLimits = haveSeveralLimits(rows);
  for (const auto& [label, row] : {std::pair("best", best), {"worst", worst}})
    stream << fmt::format("  {:5} {:>7}  {}\n",
                          label,
                          factor(row->speedup()),
                          shortened(nameOf(*row, severalLimits), 80));
}

/// The lines before the table, for a reader in a hurry.
void writeSummary(std::ostream& stream, const Report& report, const Totals& totals) {
  stream << fmt::format("speed-up over cuDNN: {} in all, geometric mean {}\n",
                        factor(totals.speedup),
                        factor(totals.geometricMeanSpeedup));
  writeExtremes(stream, report.rows);
  for (const AgainstBest& limit : compareWithBest(report.rows))
    if (limit.rows > 0)
      stream << fmt::format(
          "speed-up within {} over cuDNN's best without a limit: geometric mean {}\n"
          "  worst {:>7}  {}\n",
          formatSize(limit.limitBytes),
          factor(limit.geometricMean),
          factor(limit.minimum),
          shortened(printable(limit.minimumRow), 80));
  if (totals.lessAccurate > 0)
    stream << fmt::format(
        "{} of {} rows are split with an error above that of what cuDNN picks without a limit\n",
        totals.lessAccurate,
        totals.rows);
  if (totals.failed > 0)
    stream << fmt::format("{} of {} rows failed\n", totals.failed, totals.rows);
}

void writeLegend(std::ostream& stream, const std::vector<Row>& rows) {
  std::string text = "Times are ms. cuDNN: its fastest algorithm within the limit. ";
  if (!haveNone(rows, &Row::undividedMs)) text += "undivided: the fastest kernel within it. ";
  text += "best: cuDNN's fastest without a limit. `ucudnn bench --help` says more.";
  stream << wrapped(text, kMostColumns) << '\n';
}

void writeFailures(std::ostream& stream, const std::vector<Row>& rows) {
  for (const Row& row : rows)
    if (!row.error.empty())
      stream << fmt::format(
          "{} failed: {}\n", nameOf(row, haveSeveralLimits(rows)), printable(row.error));
}

void writeDetails(std::ostream& stream, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    stream << fmt::format("\n{} ({})\n", nameOf(row, haveSeveralLimits(rows)), row.shape);
    stream << fmt::format(
        "  unlimited {} ms, predicted {} ms, replayed {}, error {} (cuDNN's {})\n  plan\n",
        milliseconds(row.unlimitedMs),
        milliseconds(row.predictedMs),
        percent(row.replayed),
        distance(row.relativeError),
        distance(row.pickedRelativeError));
    writeConfiguration(stream, row.configuration, "    ");
  }
}

void writeCounters(std::ostream& stream, const Report& report, const Totals& totals) {
  stream << fmt::format("\nPlanning took {:.1f} ms: {} kernels measured, {} from the database.\n",
                        totals.planningMs,
                        report.kernelsMeasured,
                        report.kernelsLoaded);
  stream << fmt::format("Predictions are off by {} (median), {} (largest).\n",
                        percent(totals.predictionMedianError),
                        percent(totals.predictionMaximumError));
  if (report.graphs > 0)
    stream << fmt::format("{} calls were replayed; {} graphs are kept, which take {}.\n",
                          report.replayedCalls,
                          report.graphs,
                          formatSize(static_cast<std::size_t>(report.graphBytes)));
}

}  // namespace

std::string layerName(const std::string& layer) {
  return shortened(printable(layer), kNameColumns);
}

std::string operationName(const std::string& operation) {
  constexpr const char kBackward[] = "backward_";
  return operation.rfind(kBackward, 0) == 0 ? "bwd " + operation.substr(sizeof(kBackward) - 1)
                                            : operation;
}

std::string splitText(const std::vector<MicroBatches>& configuration, std::size_t columns) {
  if (configuration.size() == 1 && configuration.front().count == 1) return "undivided";
  int left = 0;
  for (const MicroBatches& part : configuration) left += part.count;
  std::string text;
  for (std::size_t i = 0; i < configuration.size();) {
    int count = 0;
    const int batch = configuration[i].batch;
    for (; i < configuration.size() && configuration[i].batch == batch; ++i)
      count += configuration[i].count;
    left -= count;
    const std::string part =
        (text.empty() ? "" : " + ") +
        (count == 1 ? fmt::format("{}", batch) : fmt::format("{} x {}", count, batch));
    const std::string rest = left > 0 ? fmt::format(" + {} more", left) : "";
    if (!text.empty() && text.size() + part.size() + rest.size() > columns)
      return text + fmt::format(" + {} more", left + count);
    text += part;
  }
  return text;
}

void writeConfiguration(std::ostream& stream,
                        const std::vector<MicroBatches>& configuration,
                        const std::string& indent) {
  for (const MicroBatches& part : configuration)
    stream << fmt::format("{}{}{:>3} x {:<4} {}{}\n",
                          indent,
                          &part == configuration.data() ? "  " : "+ ",
                          part.count,
                          part.batch,
                          printable(part.kernel),
                          part.borrows ? " in its output" : "");
}

void writeTable(std::ostream& stream, const Report& report, bool verbose) {
  for (const std::string& remark : report.remarks) stream << printable(remark) << '\n';
  if (!report.remarks.empty()) stream << '\n';
  const Totals totals = computeTotals(report.rows);
  writeSummary(stream, report, totals);
  stream << '\n';
  writeColumns(stream, linesOf(report.rows, totals), 2);
  stream << '\n';
  writeLegend(stream, report.rows);
  writeFailures(stream, report.rows);
  if (!verbose) return;
  writeDetails(stream, report.rows);
  writeCounters(stream, report, totals);
}

}  // namespace ucudnn::tool
