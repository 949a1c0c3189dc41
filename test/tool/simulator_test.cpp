// The whole tool on the simulator, with the profile that was recorded on an H200.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#if UCUDNN_HAVE_SQLITE
#include <sqlite3.h>
#endif

#include "tool/simulated_tool.hpp"

namespace ucudnn::test {
namespace {

class SimulatedTool : public ToolTest {};

// The output of misc/demo.sh. The sums are those of misc/profiles/h200_legacy_algorithms.csv: 47.4
// ms undivided, 14.6 ms split, 11.3 ms without a limit. Split takes 0.15 ms more, because conv2's
// forward is kept from Winograd. It takes 0.47 less because calls of several kernels are replayed,
// 0.62 less because the largest batches that fit are tried, and 0.16 less because outputs are
// borrowed.
TEST_F(SimulatedTool, BenchesAlexNet) {
  const Json result = run("bench " + kAlexNet);
  EXPECT_TRUE(result.at("machine").at("simulated"));
  const Json& totals = result.at("totals");
  EXPECT_NEAR(totals.at("cudnn_ms"), 47.4, 0.1);
  EXPECT_NEAR(totals.at("ucudnn_ms"), 13.50, 0.1);
  EXPECT_EQ(totals.at("less_accurate"), 0);
  EXPECT_NEAR(totals.at("unlimited_ms"), 11.3, 0.1);
  EXPECT_GT(totals.at("speedup"), 3.2);
  EXPECT_GT(totals.at("kernels_measured"), 100);
  EXPECT_LT(totals.at("prediction_maximum_error"), 0.01);
  ASSERT_EQ(result.at("rows").size(), 15U);
  for (const Json& row : result.at("rows")) {
    SCOPED_TRACE(row.dump());
    EXPECT_LE(row.at("workspace_bytes"), row.at("limit_bytes"));
    EXPECT_EQ(row.at("limit_bytes"), 67108864);
    // Filter gradients are summed in another order and rounded once a micro-batch.
    EXPECT_LE(row.at("relative_error"), 1e-6);
    for (const char* const undivided :
         {"cudnn_relative_error", "unlimited_relative_error", "picked_relative_error"})
      EXPECT_EQ(row.at(undivided), 0) << undivided;
    int samples = 0;
    for (const Json& part : row.at("configuration"))
      samples += part.at("batch").get<int>() * part.at("count").get<int>();
    EXPECT_EQ(samples, 256);
  }
  EXPECT_NE(outcome_.output.find("sampled"), std::string::npos) << outcome_.output;
  EXPECT_NE(outcome_.output.find("recorded on a GPU: "), std::string::npos) << outcome_.output;
  EXPECT_NE(outcome_.output.find("speed-up over cuDNN: 3."), std::string::npos) << outcome_.output;
}

// The fastest split of this 5x5 convolution within the limit is Winograd's, whose error is a
// multiple of what cuDNN's own choice (an FFT) has.
TEST_F(SimulatedTool, ASplitBringsInNoErrorThatCudnnsOwnChoiceDoesNotHave) {
  const Json row = run("plan " + kAlexNet + " --layers conv2 --operations forward --limit 56MiB",
                       "UCUDNN_BORROW_OUTPUT=0")
                       .at("rows")
                       .at(0);
  const double chosenMs = row.at("predicted_ms");
  const auto isWinograd = [](const Json& part) {
    return part.at("kernel") == "WINOGRAD_NONFUSED/default";
  };
  bool couldBeFaster = false;
  for (const Json& kernel : row.at("candidates"))
    if (isWinograd(kernel) && kernel.at("workspace_bytes") <= row.at("limit_bytes") &&
        kernel.at("time_ms").get<double>() * 256 / kernel.at("batch").get<int>() < chosenMs)
      couldBeFaster = true;
  EXPECT_TRUE(couldBeFaster) << "the test shows nothing";
  for (const Json& part : row.at("configuration")) EXPECT_FALSE(isWinograd(part)) << part;
}

TEST_F(SimulatedTool, ChecksSmallLayersInFull) {
  std::ofstream(directory_.file("small.csv"))
      << "source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,stride_h,groups\n"
      << "plain,12,12,4,6,8,3,3,1,1,1,1,1\ngrouped,12,12,4,6,8,3,3,1,1,2,2,2\n";
  for (const char* options : {"--data-type float --math fma",
                              "--data-type half --math tensor",
                              "--data-type bfloat16 --layout nhwc",
                              "--data-type double --math fma --policy all"}) {
    const Json result = run("bench " + directory_.file("small.csv") + " " + options);
    EXPECT_EQ(outcome_.output.find("sampled"), std::string::npos) << outcome_.output;
    ASSERT_EQ(result.at("rows").size(), 6U) << options;
    for (const Json& row : result.at("rows"))
      EXPECT_LE(row.at("relative_error"), 0.004) << options << row.dump();
  }
}

// One sample, two and three spatial dimensions, each layer in its own type.
TEST_F(SimulatedTool, BenchesAListOfSeveralDataTypes) {
  const std::string file = directory_.file("types.csv");
  std::ofstream(file)
      << "source,data_type,D,H,W,C_in,N,C_out,kernel_d,kernel_h,kernel_w,pad_d,pad_h,pad_w,"
         "stride_d,stride_h,stride_w\n"
      << "a,half,,9,12,8,1,8,,3,3,,1,1,,1,1\nb,bfloat16,6,8,9,8,1,8,3,3,3,0,1,0,1,1,1\n"
      << "c,float,5,8,9,4,1,8,1,3,3,0,0,0,1,2,2\nd,,4,6,6,4,1,4,3,3,3,1,1,1,1,1,1\n";
  const Json result = run("bench --data-type double --math fma " + file);
  ASSERT_EQ(result.at("rows").size(), 12U);
  // Roundings of the output: half's, bfloat16's, float's and none.
  const double most[] = {5e-4, 4e-3, 1e-7, 1e-15};
  for (std::size_t i = 0; i < 12; ++i) {
    const Json& row = result.at("rows").at(i);
    EXPECT_LE(row.at("relative_error"), most[i / 3]) << row.dump();
    EXPECT_GT(row.at("ucudnn_ms"), 0) << row.dump();
  }
  EXPECT_EQ(result.at("rows").at(3).at("shape"),
            "1x8x6x8x9 k8 3x3x3 pad 0x1x0 stride 1x1x1 bfloat16");
}

// Its tensors have up to 1.8e9 elements, which the tool neither fills nor reads here.
TEST_F(SimulatedTool, LargeTensorsAreNotCompared) {
  const Json result =
      run("bench " UCUDNN_LAYERS "/one_sample.csv --layers 'frames*,hunyuan-256-*'");
  ASSERT_EQ(result.at("rows").size(), 6U);
  for (const Json& row : result.at("rows")) {
    EXPECT_TRUE(row.at("relative_error").is_null()) << row.dump();
    EXPECT_GT(row.at("unlimited_workspace_bytes"), row.at("limit_bytes")) << row.dump();
    EXPECT_GT(row.at("cudnn_ms"), 2 * row.at("unlimited_ms").get<double>()) << row.dump();
  }
  EXPECT_NE(outcome_.output.find("off for 2 of 2 layers"), std::string::npos) << outcome_.output;
}

TEST_F(SimulatedTool, UndividedIsWhatCudnnDoes) {
  const Json result =
      run("bench " + kAlexNet + " --policy undivided --no-check --layers 'conv[45]'");
  for (const Json& row : result.at("rows")) {
    EXPECT_NEAR(row.at("speedup"), 1, 0.001) << row.dump();
    EXPECT_TRUE(row.at("relative_error").is_null());
    EXPECT_EQ(row.at("configuration").at(0).at("kernel"), row.at("cudnn_kernel"));
    EXPECT_EQ(row.at("replayed"), 0);
  }
}

TEST_F(SimulatedTool, UndividedKernelsAreTheAutotunersWhateverTheEnvironmentSays) {
  const std::string conv = kAlexNet + " --kernels all --layers conv2 --operations forward ";
  const std::string plans = directory_.file("plans.json");
  run("plan " + conv + "--save " + plans);
  const Json expected = run("bench --no-check " + conv).at("rows").at(0);
  ASSERT_GT(expected.at("undivided_ms"), 1.1 * expected.at("ucudnn_ms").get<double>());
  for (const std::string& environment :
       {"UCUDNN_PLANS=" + plans, std::string("UCUDNN_TOTAL_WORKSPACE_SIZE=1GiB")}) {
    const Json row = run("bench --no-check " + conv, environment).at("rows").at(0);
    EXPECT_EQ(row.at("undivided_kernel"), expected.at("undivided_kernel")) << environment;
    EXPECT_NEAR(row.at("undivided_ms"), expected.at("undivided_ms"), 1e-6) << environment;
  }
}

// The least time of conv2 on an H200, by misc/profiles: 0.41683 ms with one of cuDNN's engines,
// 0.512 with its algorithms.
TEST_F(SimulatedTool, EachLimitIsComparedWithCudnnsBestAtAnyWorkspace) {
  const Json result =
      run("bench --no-check " + kAlexNet +
              " --kernels all --layers conv2 --operations forward --limit 8MiB,1GiB",
          "UCUDNN_SIMULATOR_PROFILE=" UCUDNN_PROFILES "/h200_legacy_algorithms.csv," UCUDNN_PROFILES
          "/h200_engines.csv");
  ASSERT_EQ(result.at("rows").size(), 2U);
  for (const Json& row : result.at("rows")) {
    SCOPED_TRACE(row.dump());
    EXPECT_NEAR(row.at("best_ms"), 0.41683, 2e-5);
    EXPECT_EQ(row.at("best_kernel"), "eng67_k2=18_k13=0_k18=0_k25=1_k27=8_k28=1");
    EXPECT_EQ(row.at("best_workspace_bytes"), 192331923);
    EXPECT_NEAR(row.at("unlimited_ms"), 0.512, 1e-3);
    EXPECT_LE(row.at("workspace_bytes"), row.at("limit_bytes"));
  }
  EXPECT_EQ(result.at("rows").at(0).at("limit_bytes"), 8 << 20);
  EXPECT_EQ(result.at("rows").at(1).at("limit_bytes"), 1 << 30);
  const Json& limits = result.at("against_best");
  ASSERT_EQ(limits.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(limits.at(i).at("minimum_best_speedup"),
                0.41683 / result.at("rows").at(i).at("ucudnn_ms").get<double>(),
                1e-3);
  EXPECT_LT(limits.at(0).at("minimum_best_speedup"), 0.9);
  EXPECT_GE(limits.at(1).at("minimum_best_speedup"), 1);
}

TEST_F(SimulatedTool, ReplayIsTheEnvironmentsUnlessAnOptionSaysOtherwise) {
  const std::string conv = kAlexNet + " --layers conv2 --operations forward";
  const struct {
    const char* option;
    const char* environment;
    bool replay;
  } kCases[] = {{"", "", true},
                {"", "UCUDNN_GRAPH_MEMORY=0", false},
                {" --replay on", "UCUDNN_GRAPH_MEMORY=0", true},
                {" --replay off", "", false}};
  for (const auto& each : kCases) {
    SCOPED_TRACE(std::string(each.environment) + each.option);
    const Json bench = run("bench --no-check " + conv + each.option, each.environment);
    EXPECT_EQ(bench.at("settings").at("replay"), each.replay);
    EXPECT_NE(outcome_.output.find(each.replay ? "replay on\n" : "replay off\n"), std::string::npos)
        << outcome_.output;
    const Json plan = run("plan " + conv + each.option, each.environment);
    EXPECT_EQ(plan.at("settings").at("replay"), each.replay);
    if (each.replay) continue;
    EXPECT_EQ(bench.at("rows").at(0).at("replayed"), 0);
    for (const char* const counter : {"replayed_calls", "graphs", "graph_bytes"})
      EXPECT_EQ(bench.at("totals").at(counter), 0) << counter;
    EXPECT_EQ(plan.at("rows").at(0).at("predicted_replayed"), false);
  }
}

TEST_F(SimulatedTool, LayersThatFailAreReportedAndTheStatusIs1) {
  // 8 * 10^9 bytes of input and of output on a device of 17 * 10^9: the workspace no longer fits.
  // cuDNN's tensors have fewer than 2^31 elements.
  std::ofstream(directory_.file("huge.csv"))
      << "source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,stride_h\n"
      << "huge,1000,1000,2,1000,2,3,3,1,1,1,1\nsmall,8,8,2,2,2,3,3,1,1,1,1\n";
  const std::string file = directory_.file("result.json");
  const Outcome outcome = runTool("bench " + directory_.file("huge.csv") + " --json " + file +
                                      " --operations forward --limit 4GiB",
                                  "UCUDNN_SIMULATOR_DEVICES=P100-SXM2");
  EXPECT_EQ(outcome.status, 1) << outcome.error;
  const Json result = Json::parse(readFile(file));
  EXPECT_EQ(result.at("totals").at("failed"), 1);
  EXPECT_NE(result.at("rows").at(0).at("error").get<std::string>().find("out of memory"),
            std::string::npos);
  EXPECT_TRUE(result.at("rows").at(1).at("error").is_null());
  EXPECT_NE(outcome.output.find("huge forward failed: out of memory"), std::string::npos)
      << outcome.output;
}

TEST_F(SimulatedTool, PlansWithoutRunning) {
  const Json result =
      run("plan " + kAlexNet + " --layers conv2 --operations forward --limit 64MiB");
  ASSERT_EQ(result.at("rows").size(), 1U);
  const Json& row = result.at("rows").at(0);
  EXPECT_GT(row.at("candidates").size(), 10U);
  double earlierMs = 1e9;
  std::size_t earlierBytes = 0;
  for (const Json& point : row.at("front")) {
    EXPECT_LT(point.at("time_ms"), earlierMs);
    EXPECT_GE(point.at("workspace_bytes"), earlierBytes);
    earlierMs = point.at("time_ms");
    earlierBytes = point.at("workspace_bytes");
  }
  EXPECT_LT(earlierMs, 1e9);
  EXPECT_EQ(row.at("configuration").at(0).at("kernel"), "FFT_TILING/default");
  EXPECT_EQ(row.at("configuration").at(0).at("borrows"), true);
  for (const Json& point : row.at("front")) {
    int samples = 0;
    for (const Json& part : point.at("configuration"))
      samples += part.at("batch").get<int>() * part.at("count").get<int>();
    EXPECT_EQ(samples, 256) << point;
  }
  EXPECT_NE(outcome_.output.find("  within 64 MiB: "), std::string::npos) << outcome_.output;
  EXPECT_EQ(outcome_.output.find("FFT_TILING"), std::string::npos) << outcome_.output;
  for (const char* const part : {"\n   * ", " + 2 x 84\n"})
    EXPECT_NE(outcome_.output.find(part), std::string::npos) << part << outcome_.output;
  run("plan --verbose " + kAlexNet + " --layers conv2 --operations forward --limit 64MiB");
  for (const char* const part : {"      1 x 53   FFT_TILING/default in its output\n",
                                 "ms a sample",
                                 "IMPLICIT_PRECOMP_GEMM/default"})
    EXPECT_NE(outcome_.output.find(part), std::string::npos) << part << outcome_.output;
}

TEST_F(SimulatedTool, InfoSaysThatItIsSimulated) {
  const Outcome outcome = runTool("info");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.output.find("NVIDIA H200 (simulated)"), std::string::npos) << outcome.output;
}

TEST_F(SimulatedTool, RefusesADeviceThatIsNotThere) {
  const Outcome outcome = runTool("bench " + kAlexNet + " --device 7");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.error, "ucudnn: --device: there is no device 7 (accepted: 0 to 0)\n");
}

TEST_F(SimulatedTool, ASmallSizeWithoutAUnitIsRemarkedOnce) {
  const Outcome outcome =
      runTool("plan " + kAlexNet + " --layers conv2 --limit 64", "UCUDNN_SIMULATOR_ARITHMETIC=off");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.error,
            "ucudnn: --limit: 64 means 64 bytes: write 64MiB, or 64B if that is meant\n");
}

TEST_F(SimulatedTool, RefusedBenchmarkDevicesAreOneLine) {
  for (const char* log : {"warn", "off"}) {
    const Outcome outcome = runTool(
        "bench " + kAlexNet, std::string("UCUDNN_BENCHMARK_DEVICES=9 UCUDNN_LOG_LEVEL=") + log);
    EXPECT_EQ(outcome.status, 2) << log;
    EXPECT_NE(outcome.error.find("UCUDNN_BENCHMARK_DEVICES"), std::string::npos) << outcome.error;
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
  }
}

#if UCUDNN_HAVE_SQLITE
TEST_F(SimulatedTool, WarmDatabaseMeasuresNothing) {
  const std::string environment = "UCUDNN_DATABASE=" + directory_.file("kernels.db");
  const Json cold = run("bench --no-check " + kAlexNet, environment);
  const Json warm = run("bench --no-check " + kAlexNet, environment);
  EXPECT_GT(cold.at("totals").at("kernels_measured"), 0);
  EXPECT_EQ(warm.at("totals").at("kernels_measured"), 0);
  EXPECT_EQ(warm.at("totals").at("kernels_loaded"), cold.at("totals").at("kernels_measured"));
  for (std::size_t i = 0; i < 15; ++i)
    EXPECT_EQ(warm.at("rows").at(i).at("configuration"), cold.at("rows").at(i).at("configuration"));
}

TEST_F(SimulatedTool, DatabaseRoundTrip) {
  const std::string first = directory_.file("first.db");
  const std::string second = directory_.file("second.db");
  const std::string third = directory_.file("third.db");
  const std::string exported = directory_.file("kernels.json");
  run("bench --no-check --layers conv2 " + kAlexNet, "UCUDNN_DATABASE=" + first);
  const Outcome list = runTool("db list --database " + first);
  EXPECT_EQ(list.status, 0) << list.error;
  EXPECT_NE(list.output.find("NVIDIA H200 (simulated)"), std::string::npos) << list.output;
  EXPECT_NE(list.output.find("\n3 problems, "), std::string::npos) << list.output;
  EXPECT_NE(list.output.find("  bwd data 64x27x27 k192 5x5 pad 2x2 stride 1x1, float\n"),
            std::string::npos)
      << list.output;
  EXPECT_EQ(list.output.find("x=float"), std::string::npos) << list.output;
  EXPECT_NE(runTool("db list --verbose --database " + first).output.find("backward_data x=float:*"),
            std::string::npos);

  EXPECT_EQ(runTool("db export " + first + " --database " + first).status, 2);  // it is kept
  EXPECT_EQ(runTool("db export " + exported + " --database " + first).status, 0);
  EXPECT_EQ(runTool("db export - --database " + first).output, readFile(exported));
  EXPECT_EQ(runTool("db import " + exported + " --database " + second).status, 0);
  EXPECT_EQ(runTool("db merge " + second + " --database " + third).status, 0);
  EXPECT_EQ(runTool("db list --database " + third).output, list.output);
  const Json warm = run("bench --no-check --layers conv2 " + kAlexNet, "UCUDNN_DATABASE=" + third);
  EXPECT_EQ(warm.at("totals").at("kernels_measured"), 0);

  const std::string plans = directory_.file("plans.db");
  EXPECT_EQ(runTool("db merge --for-plans " + first + " " + third + " --database " + plans).status,
            0);
  EXPECT_NE(runTool("db list --database " + plans).output, list.output);  // it has fewer kernels
  const Json lean = run("bench --no-check --layers conv2 " + kAlexNet, "UCUDNN_DATABASE=" + plans);
  EXPECT_EQ(lean.at("totals").at("kernels_measured"), 0);
  for (std::size_t i = 0; i < warm.at("rows").size(); ++i)
    EXPECT_EQ(lean.at("rows").at(i).at("configuration"), warm.at("rows").at(i).at("configuration"));

  // The tool and the library name this machine alike.
  const Outcome kept = runTool("db prune --other-machines --database " + third);
  EXPECT_EQ(kept.output, "0 batch sizes removed\n") << kept.error;
  const Outcome removed = runTool("db prune --other-machines --database " + third,
                                  "UCUDNN_SIMULATOR_DEVICES=P100-SXM2");
  EXPECT_EQ(removed.status, 0) << removed.error;
  EXPECT_NE(removed.output, "0 batch sizes removed\n");
  EXPECT_EQ(runTool("db list --database " + third).output, "0 problems, 0 kernels\n");
}

// `ucudnn run` keeps a file for each machine.
TEST_F(SimulatedTool, ADatabaseMayBeAFolder) {
  const std::string home = directory_.path(), folder = home + "/ucudnn/";
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  const std::string bench = "bench --no-check --layers conv2 --batch-size 8 " + kAlexNet;
  EXPECT_GT(run(bench + " --database " + folder).at("totals").at("kernels_measured"), 0);
  EXPECT_EQ(run(bench + " --database " + folder).at("totals").at("kernels_measured"), 0);
  EXPECT_GT(run(bench + " --no-database", "UCUDNN_DATABASE=" + folder)
                .at("totals")
                .at("kernels_measured"),
            0);
  run(bench + " --database " + folder, "UCUDNN_SIMULATOR_DEVICES=P100-SXM2");
  const std::string kept =
      "env -u UCUDNN_DATABASE XDG_CACHE_HOME=" + home;  // as `ucudnn run` has it
  const Outcome list = runTool("db list", kept);
  EXPECT_NE(list.output.find("NVIDIA H200 (simulated)"), std::string::npos) << list.error;
  EXPECT_NE(list.output.find("P100"), std::string::npos) << list.output;
  EXPECT_NE(list.output.find("\n6 problems, "), std::string::npos) << list.output;

  std::istringstream lines(list.output);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;

  const std::string all = directory_.file("all.db"), json = directory_.file("all.json");
  EXPECT_EQ(runTool("db merge " + folder + " --database " + all).status, 0);
  EXPECT_EQ(runTool("db list --database " + all).output, list.output);
  EXPECT_EQ(runTool("db export " + json + " --database " + folder).status, 0);
  EXPECT_EQ(runTool("db export - --database " + all).output, readFile(json));
  const Outcome merged = runTool("db merge " + all, kept);
  EXPECT_EQ(merged.status, 2);
  EXPECT_NE(merged.error.find(folder + " is a folder: name one of its files"), std::string::npos)
      << merged.error;
  EXPECT_EQ(runTool("db prune --other-machines", kept).status, 0);
  EXPECT_NE(runTool("db list", kept).output.find("\n3 problems, "), std::string::npos);
  std::filesystem::create_directory(home + "/empty");
  EXPECT_NE(runTool("db list --database " + home + "/empty").error.find("there is no database"),
            std::string::npos);
}

TEST_F(SimulatedTool, ATimeOutOfRangeDoesNotStopTheList) {
  const std::string database = directory_.file("file.db");
  run("bench --no-check --layers conv2 " + kAlexNet, "UCUDNN_DATABASE=" + database);
  for (const char* time : {"9223372036854775807", "-9223372036854775807", "99999999999999"}) {
    sqlite3* file = nullptr;
    ASSERT_EQ(sqlite3_open(database.c_str(), &file), SQLITE_OK);
    const std::string change = std::string("UPDATE size SET measured_at = ") + time;
    EXPECT_EQ(sqlite3_exec(file, change.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(file);
    const Outcome list = runTool("db list --database " + database);
    EXPECT_EQ(list.status, 0) << time << ": " << list.error;
  }
}

TEST_F(SimulatedTool, HostileJsonIsRefusedBeforeItIsBuilt) {
  const std::string file = directory_.file("hostile.json");
  const auto import = [&](const std::string& text) {
    std::ofstream(file) << text;
    const Outcome outcome = runTool("db import " + file + " --database " + directory_.file("x.db"));
    EXPECT_EQ(outcome.status, 2) << text.substr(0, 20);
    EXPECT_LE(outcome.error.size(), 500U);
    return outcome.error;
  };
  std::string nested;
  for (int i = 0; i < 1000000; ++i) nested += "{\"a\":";
  for (const std::string& text : {std::string(1000000, '['), nested}) {
    EXPECT_NE(import(text).find("nested deeper than 16 levels"), std::string::npos);
  }
  std::string flat = "[";
  for (int i = 0; i <= 10000000; ++i) flat += "1,";
  EXPECT_NE(import(flat).find("more than 10000000 names and values"), std::string::npos);
  EXPECT_NE(import('"' + std::string(20000000, 'a')).find("missing closing quote"),
            std::string::npos);
}
#endif

TEST_F(SimulatedTool, ResultsThatCannotBeWrittenAreAFailure) {
  const std::string arguments = " --layers conv2 --batch-size 4 " + kAlexNet;
  for (const char* command : {"bench --no-check", "plan", "plan --json -"}) {
    const Outcome outcome = runTool(command + arguments, "", "/dev/full");
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_NE(outcome.error.find("cannot be written"), std::string::npos) << outcome.error;
  }
  // The table is there when the file's disk is full.
  const Outcome table = runTool("plan --json /dev/full" + arguments);
  EXPECT_EQ(table.status, 2);
  EXPECT_NE(table.output.find("Pareto front"), std::string::npos);
}

TEST_F(SimulatedTool, AReaderThatHasEnoughCostsNoResults) {
  const std::string json = directory_.file("results.json"), status = directory_.file("status");
  const std::string command = "{ UCUDNN_KERNELS=legacy '" UCUDNN_TOOL
                              "' plan --layers conv2 --batch-size 4 " +
                              kAlexNet + " --json " + json + "; echo $? >" + status + "; } | true";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(readFile(status), "0\n");
  EXPECT_EQ(Json::parse(readFile(json)).at("rows").size(), 3U);
}

// Ctrl-C, or `timeout`, in the midst of a list.
TEST_F(SimulatedTool, AnInterruptedBenchWritesWhatItHas) {
  const std::string json = directory_.file("results.json"), log = directory_.file("log");
  const std::string command = "UCUDNN_KERNELS=legacy UCUDNN_LOG_LEVEL=info UCUDNN_LOG_FILE=" + log +
                              " '" UCUDNN_TOOL "' bench --no-check " + kAlexNet + " --json " +
                              json +
                              " >/dev/null & tool=$!; "
                              "until grep -q 'kernels timed' " +
                              log +
                              " 2>/dev/null; do kill -0 $tool || exit 9; sleep 0.01; done; "
                              "kill -TERM $tool; wait $tool";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
  const Json result = Json::parse(readFile(json));
  ASSERT_EQ(result.at("rows").size(), 15U);
  EXPECT_EQ(result.at("rows").front().at("error"), Json(nullptr));
  EXPECT_GT(result.at("rows").front().at("ucudnn_ms"), 0);
  EXPECT_EQ(result.at("rows").back().at("error"), "not run: interrupted");
}

// Plans that `plan --save` writes run as they were shown, and nothing is measured.
TEST_F(SimulatedTool, SavedPlansRunUnmeasured) {
  const std::string saved = directory_.file("plans.json");
  const Json planned =
      run("plan --kernels all --layers conv2,conv3 " + kAlexNet + " --save " + saved);
  const Json benched =
      run("bench --no-check --layers conv2,conv3 " + kAlexNet, "UCUDNN_PLANS=" + saved);
  EXPECT_EQ(benched.at("totals").at("kernels_measured"), 0);
  ASSERT_EQ(benched.at("rows").size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    const Json& row = benched.at("rows").at(i);
    EXPECT_EQ(row.at("configuration"), planned.at("rows").at(i).at("configuration"));
    EXPECT_EQ(row.at("predicted_ms"), planned.at("rows").at(i).at("predicted_ms"));
  }
}

#if UCUDNN_HAVE_DIVISION
TEST_F(SimulatedTool, SavedPlansAreDividedUnmeasured) {
  const std::string saved = directory_.file("plans.json");
  const std::string network = "--total-workspace 120MiB " + kAlexNet;
  run("plan " + network + " --save " + saved);
  const Json benched = run("bench --no-check " + network, "UCUDNN_PLANS=" + saved);
  EXPECT_EQ(benched.at("network").at("kernels_measured"), 0);
}
#endif

}  // namespace
}  // namespace ucudnn::test
