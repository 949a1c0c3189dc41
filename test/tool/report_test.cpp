#include "tool/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <cmath>
#include <limits>
#include <sstream>

#include "tool/columns.hpp"

namespace ucudnn::tool {
namespace {

Row makeRow(double cudnnMs, double ucudnnMs, double predictedMs) {
  Row row;
  row.layer = "conv";
  row.operation = "forward";
  row.cudnnMs = cudnnMs;
  row.ucudnnMs = ucudnnMs;
  row.predictedMs = predictedMs;
  row.unlimitedMs = 1;
  row.replayed = 0.75;
  row.planningMs = 10;
  row.limitBytes = 1024;
  row.workspaceBytes = 512;
  row.configuration = {{64, "FFT/fma", 3}, {32, "GEMM/fma", 1}};
  row.relativeError = 1e-6;
  return row;
}

std::string tableOf(const Report& report, bool verbose = false) {
  std::ostringstream stream;
  writeTable(stream, report, verbose);
  return stream.str();
}

Row makeFailure() {
  Row row;
  row.layer = "broken, \"quite\"";
  row.operation = "backward_data";
  row.planningMs = 5;
  row.limitBytes = 1024;
  row.error = "out of memory";
  return row;
}

TEST(Report, TotalsSumAndAverage) {
  const Totals totals =
      computeTotals({makeRow(8, 2, 2.2), makeRow(3, 3, 2.7), makeRow(4, 2, 2), makeFailure()});
  EXPECT_EQ(totals.rows, 4U);
  EXPECT_EQ(totals.failed, 1U);
  EXPECT_DOUBLE_EQ(totals.cudnnMs, 15);
  EXPECT_DOUBLE_EQ(totals.ucudnnMs, 7);
  EXPECT_DOUBLE_EQ(totals.unlimitedMs, 3);
  EXPECT_DOUBLE_EQ(totals.predictedMs, 6.9);
  EXPECT_DOUBLE_EQ(*totals.speedup, 15.0 / 7);
  EXPECT_NEAR(*totals.geometricMeanSpeedup, 2, 1e-12);  // of 4, 1 and 2
  EXPECT_DOUBLE_EQ(*totals.maximumSpeedup, 4);
  EXPECT_DOUBLE_EQ(totals.planningMs, 35);
  EXPECT_NEAR(*totals.predictionMedianError, 0.1, 1e-12);
  EXPECT_NEAR(*totals.predictionMaximumError, 0.1, 1e-12);
}

TEST(Report, TheUndividedAreSummedWhereAllRowsHaveThem) {
  Report report;
  report.rows = {makeRow(8, 2, 2), makeRow(3, 3, 3), makeFailure()};
  const auto table = [&] { return tableOf(report); };
  EXPECT_EQ(table().find("undivided"), std::string::npos) << table();
  report.rows[0].undividedMs = 4;
  EXPECT_FALSE(computeTotals(report.rows).undividedMs);
  EXPECT_TRUE(toJson(report).at("totals").at("undivided_ms").is_null());
  report.rows[1].undividedMs = 3;
  report.rows[1].undividedKernel = "eng1";
  EXPECT_DOUBLE_EQ(*computeTotals(report.rows).undividedMs, 7);
  EXPECT_EQ(toJson(report).at("totals").at("undivided_ms"), 7);
  EXPECT_EQ(toJson(report).at("rows").at(1).at("undivided_kernel"), "eng1");
  EXPECT_NE(table().find("undivided"), std::string::npos) << table();
  EXPECT_NE(table().find("7.000"), std::string::npos) << table();
}

TEST(Report, RowsThatLackATimeAreInNoSum) {
  Row row = makeRow(8, 2, 2);
  row.unlimitedMs.reset();
  const Totals totals = computeTotals({row});
  EXPECT_EQ(totals.cudnnMs, 0);
  EXPECT_FALSE(totals.speedup);
  EXPECT_FALSE(totals.geometricMeanSpeedup);
}

TEST(Report, TheBestIsTheFasterOfAlgorithmAndEngine) {
  Row row = makeRow(8, 2, 2);
  row.unlimitedKernel = "FFT/fma";
  row.unlimitedWorkspaceBytes = 10;
  row.engineKernel = "eng1";
  row.engineWorkspaceBytes = 20;
  Report report;
  const auto json = [&] {
    report.rows = {row};
    return toJson(report).at("rows").at(0);
  };
  EXPECT_EQ(row.bestSpeedup(), 0.5) << "no engine was asked";
  EXPECT_EQ(json().at("best_kernel"), "FFT/fma");
  row.engineMs = 1.5;
  EXPECT_EQ(row.bestMs(), 1);
  row.engineMs = 0.8;
  EXPECT_EQ(json().at("best_ms"), 0.8);
  EXPECT_EQ(json().at("best_speedup"), 0.4);
  EXPECT_EQ(json().at("best_kernel"), "eng1");
  EXPECT_EQ(json().at("best_workspace_bytes"), 20);
  row.ucudnnMs.reset();
  EXPECT_FALSE(row.bestSpeedup());
}

TEST(Report, EachLimitIsComparedWithTheBest) {
  Report report;
  for (const std::size_t limit : {1024, 2048}) {
    for (const double ucudnnMs : {0.5, 2.0, 1.0}) {  // best at any workspace: 1
      report.rows.push_back(makeRow(8, ucudnnMs, 2));
      report.rows.back().limitBytes = limit;
      report.rows.back().layer = "conv" + std::to_string(report.rows.size());
    }
    report.rows.push_back(makeFailure());
    report.rows.back().limitBytes = limit;
  }
  report.rows[0].ucudnnMs = 0.25;
  const auto limits = compareWithBest(report.rows);
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].limitBytes, 1024U);
  EXPECT_EQ(limits[0].rows, 3U);
  EXPECT_NEAR(*limits[0].geometricMean, std::cbrt(2), 1e-12);  // of 4, 1/2 and 1
  EXPECT_EQ(limits[0].minimum, 0.5);
  EXPECT_EQ(limits[0].minimumRow, "conv2 forward");
  EXPECT_NEAR(*limits[1].geometricMean, 1, 1e-12);
  EXPECT_EQ(limits[1].minimumRow, "conv6 forward");
  const auto json = toJson(report).at("against_best");
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json.at(1).at("limit_bytes"), 2048);
  EXPECT_EQ(json.at(1).at("minimum_best_speedup"), 0.5);
  const std::string table = tableOf(report);
  EXPECT_NE(table.find("speed-up within 1 KiB over cuDNN's best without a limit: geometric mean "
                       "1.26x\n  worst   0.50x  conv2 forward\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("  best   32.00x  conv1 forward within 1 KiB\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("  limit"), std::string::npos) << table;
  report.rows.resize(4);
  EXPECT_EQ(tableOf(report).find("  limit"), std::string::npos) << tableOf(report);
}

TEST(Report, NoRowsHaveNoMeans) {
  const Totals totals = computeTotals({});
  EXPECT_FALSE(totals.speedup);
  EXPECT_FALSE(totals.maximumSpeedup);
  EXPECT_FALSE(totals.predictionMedianError);
}

TEST(Report, PredictionErrorHasASign) {
  EXPECT_NEAR(*makeRow(8, 2, 2.2).predictionError(), 0.1, 1e-12);
  EXPECT_NEAR(*makeRow(8, 2, 1.8).predictionError(), -0.1, 1e-12);
  EXPECT_FALSE(makeFailure().predictionError());
}

TEST(Report, JsonHasTheFieldsThatOthersRead) {
  Report report;
  report.machine = {{"device", "D"}};
  report.settings = {{"policy", "all"}};
  report.rows = {makeRow(8, 2, 2), makeFailure()};
  report.kernelsMeasured = 7;
  report.replayedCalls = 30;
  report.graphs = 2;
  report.graphBytes = 4096;
  const auto json = nlohmann::json::parse(toJson(report).dump());
  EXPECT_EQ(json.at("machine").at("device"), "D");
  EXPECT_EQ(json.at("settings").at("policy"), "all");
  for (const char* field : {"cudnn_ms",
                            "ucudnn_ms",
                            "unlimited_ms",
                            "predicted_ms",
                            "speedup",
                            "geometric_mean_speedup",
                            "maximum_speedup",
                            "planning_ms",
                            "kernels_measured",
                            "kernels_loaded",
                            "replayed_calls",
                            "prediction_median_error",
                            "prediction_maximum_error"})
    EXPECT_TRUE(json.at("totals").at(field).is_number()) << field;
  EXPECT_EQ(json.at("totals").at("kernels_measured"), 7);
  EXPECT_EQ(json.at("totals").at("replayed_calls"), 30);
  EXPECT_EQ(json.at("totals").at("graphs"), 2);
  EXPECT_EQ(json.at("totals").at("graph_bytes"), 4096);
  ASSERT_EQ(json.at("rows").size(), 2U);
  const auto& row = json.at("rows").at(0);
  EXPECT_EQ(row.at("layer"), "conv");
  EXPECT_EQ(row.at("operation"), "forward");
  EXPECT_EQ(row.at("speedup"), 4);
  EXPECT_EQ(row.at("replayed"), 0.75);
  EXPECT_EQ(row.at("limit_bytes"), 1024);
  EXPECT_EQ(row.at("workspace_bytes"), 512);
  EXPECT_EQ(row.at("relative_error"), 1e-6);
  EXPECT_TRUE(row.at("cudnn_relative_error").is_null());
  EXPECT_TRUE(row.at("error").is_null());
  EXPECT_EQ(row.at("configuration"),
            nlohmann::json::parse(R"([{"batch": 64, "kernel": "FFT/fma", "count": 3},
                                      {"batch": 32, "kernel": "GEMM/fma", "count": 1}])"));
  EXPECT_TRUE(json.at("rows").at(1).at("ucudnn_ms").is_null());
  EXPECT_TRUE(json.at("rows").at(1).at("replayed").is_null());
  EXPECT_EQ(json.at("rows").at(1).at("error"), "out of memory");
}

TEST(Report, JsonHasNullForNan) {
  Report report;
  report.rows = {makeRow(8, 2, 2)};
  report.rows[0].relativeError = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(toJson(report).at("rows").at(0).at("relative_error").is_null());
}

TEST(Report, ASplitIsLessAccurateWhenItsErrorIsAboveThatOfCudnnsPicks) {
  Row row = makeRow(8, 2, 2);  // split
  row.relativeError = 1e-5;
  EXPECT_FALSE(row.isLessAccurate()) << "nothing to compare with";
  for (const double other : {0.95e-5, 2e-5}) {
    row.unlimitedRelativeError = other;
    EXPECT_FALSE(row.isLessAccurate()) << other;
  }
  row.unlimitedRelativeError = 0.5e-5;
  EXPECT_TRUE(row.isLessAccurate());
  row.pickedRelativeError = 1e-5;
  EXPECT_FALSE(row.isLessAccurate()) << "cuDNN's heuristics pick such a kernel";
  row.pickedRelativeError = 0.4e-5;
  EXPECT_TRUE(row.isLessAccurate());
  Report report;
  report.rows = {row, makeRow(8, 2, 2)};
  EXPECT_EQ(toJson(report).at("totals").at("less_accurate"), 1);
  EXPECT_NE(tableOf(report).find("1 of 2 rows are split with an error above"), std::string::npos);
  Row small = row;
  small.unlimitedRelativeError = small.pickedRelativeError = 0;
  small.relativeError = 0.9e-6;
  EXPECT_FALSE(small.isLessAccurate()) << "another order of summation";
  row.configuration = {{256, "GEMM/fma", 1}};
  EXPECT_FALSE(row.isLessAccurate()) << "undivided it is what cuDNN runs";
}

TEST(Report, TableBeginsWithTheSumAndTheExtremes) {
  Report report;
  report.remarks = {"a remark"};
  report.rows = {makeRow(8, 2, 2.2), makeRow(3, 3, 3), makeFailure()};
  report.rows[1].layer = "conv2";
  const std::string text = tableOf(report);
  EXPECT_EQ(text.find("a remark\n\nspeed-up over cuDNN: 2.20x in all, geometric mean 2.00x\n"
                      "  best    4.00x  conv forward\n  worst   1.00x  conv2 forward\n"),
            0U)
      << text;
  EXPECT_NE(text.find("1 of 3 rows failed\n"), std::string::npos) << text;
  EXPECT_NE(text.find("broken, \"quite\" backward_data failed: out of memory\n"), std::string::npos)
      << text;
  for (const char* const word : {"FFT", "graphs", "0.750", "75.0 %"})
    EXPECT_EQ(text.find(word), std::string::npos) << word << "\n" << text;
}

TEST(Report, VerboseSaysHowEachRowRuns) {
  Report report;
  report.rows = {makeRow(8, 2, 2.2), makeFailure()};
  report.kernelsMeasured = 7;
  report.replayedCalls = 30;
  report.graphs = 2;
  report.graphBytes = 4096;
  report.rows[0].configuration[1].borrows = true;
  const std::string text = tableOf(report, true);
  for (const char* const line :
       {"  unlimited 1.000 ms, predicted 2.200 ms, replayed 75.0 %, error 1.0e-06 (cuDNN's -)\n",
        "      3 x 64   FFT/fma\n",
        "    +   1 x 32   GEMM/fma in its output\n",
        "Planning took 15.0 ms: 7 kernels measured, 0 from the database.\n",
        "Predictions are off by 10.0 % (median), 10.0 % (largest).\n",
        "30 calls were replayed; 2 graphs are kept, which take 4 KiB.\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

// Names, numbers and splits as wide as they get.
TEST(Report, NoLineIsWiderThanATerminal) {
  Report report;
  for (int i = 0; i < 3; ++i) {
    Row row = makeRow(12345.678, 1234.567, 1234.567);
    row.layer = "features.denseblock3.denselayer12.conv2";
    row.operation = "backward_filter";
    row.undividedMs = row.engineMs = 12345.678;
    row.limitBytes = row.workspaceBytes = 1023 * 1024;
    row.configuration.clear();
    for (int batch = 250; batch > 100; batch -= 7)
      row.configuration.push_back({batch, std::string(60, 'k'), 1 + batch % 3, true});
    report.rows.push_back(row);
  }
  const auto widest = [](const std::string& text) {
    std::size_t most = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      most = std::max(most, line.size() - std::count(line.begin(), line.end(), '\xCE'));
    return most;
  };
  EXPECT_LE(widest(tableOf(report, true)), 105U) << tableOf(report);
  EXPECT_NE(tableOf(report).find("feature....conv2"), std::string::npos) << tableOf(report);
  report.rows[0].limitBytes = 1024;
  EXPECT_LE(widest(tableOf(report)), 120U) << tableOf(report);
}

TEST(Report, UsualLinesFitATerminal) {
  Report report;
  report.rows = {makeRow(8, 2, 2.2)};
  report.rows[0].layer = "layer4.0.conv2";
  report.rows[0].operation = "backward_filter";
  report.rows[0].undividedMs = 100;
  report.rows[0].workspaceBytes = 1023 * 1024;
  report.rows[0].configuration = {{128, "A", 1}, {64, "A", 1}, {32, "A", 1}, {16, "A", 2}};
  const std::string table = tableOf(report);
  EXPECT_NE(table.find(" 128 + 64 + 3 more\n"), std::string::npos) << table;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 101U) << line;
}

TEST(Report, SplitsAreShort) {
  EXPECT_EQ(splitText({{256, "GEMM", 1}}, 20), "undivided");
  EXPECT_EQ(splitText({{64, "GEMM", 4}}, 20), "4 x 64");
  EXPECT_EQ(splitText({{88, "A", 1, true}, {84, "B", 1}, {84, "C", 1}}, 20), "88 + 2 x 84");
  const std::vector<MicroBatches> many = {{90, "A", 1}, {50, "A", 2}, {30, "A", 1}, {9, "A", 4}};
  EXPECT_EQ(splitText(many, 30), "90 + 2 x 50 + 30 + 4 x 9");
  EXPECT_EQ(splitText(many, 22), "90 + 2 x 50 + 5 more");
  EXPECT_EQ(splitText(many, 1), "90 + 7 more");
}

TEST(Report, NamesAreShort) {
  EXPECT_EQ(layerName("conv1"), "conv1");
  EXPECT_EQ(layerName("block12/unit_3/bottleneck"), "block12...leneck");
  EXPECT_EQ(operationName("forward"), "forward");
  EXPECT_EQ(operationName("backward_filter"), "bwd filter");
}

TEST(Columns, TextsAreShortenedInTheMiddle) {
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghijk", 10), "abcd...ijk");
  EXPECT_EQ(shortened("μμμμμμ", 5), "μ...μ");
}

TEST(Columns, TextsAreWrappedBetweenWords) {
  EXPECT_EQ(wrapped("one two  three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("a longerthanseven b", 7), "a\nlongerthanseven\nb");
  EXPECT_EQ(wrapped("", 7), "");
}

TEST(Columns, ControlCharactersReachNoTerminal) {
  std::ostringstream stream;
  writeColumns(stream, {{"a\x1b[31m\n", "\xff", "\xe2\x80\xae", "μ"}}, 4);
  EXPECT_EQ(stream.str(), "a\\x1b[31m\\x0a  \\xff  \\xe2\\x80\\xae  μ\n");
}

TEST(Report, NoTextLosesTheJson) {
  const nlohmann::ordered_json json = {{"command", "ucudnn \xff\x1b"}};
  EXPECT_EQ(toText(json), "{\n  \"command\": \"ucudnn \xef\xbf\xbd\\u001b\"\n}\n");
}

TEST(Columns, CountCharactersNotBytes) {
  std::ostringstream stream;
  writeColumns(stream, {{"μ", "1", "x"}, {"ab", "22", ""}}, 1);
  EXPECT_EQ(stream.str(), "μ    1  x\nab  22\n");
}

}  // namespace
}  // namespace ucudnn::tool
