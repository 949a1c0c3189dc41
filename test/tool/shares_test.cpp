// `ucudnn shares` and `ucudnn bench --data-parallel` on simulated devices of several kinds.
#include <cmath>
#include <numeric>

#include "tool/simulated_tool.hpp"

namespace ucudnn::test {
namespace {

const std::string kShares = "shares " + kAlexNet + " ";
const std::string kDataParallel = "bench --data-parallel --repeats 3 " + kAlexNet + " ";

/// By their models: the profile is one device's, and would be every one's.
std::string simulated(const std::string& models) {
  return "UCUDNN_SIMULATOR_PROFILE= UCUDNN_SIMULATOR_DEVICES=" + models + " ";
}
const std::string kTwo = "UCUDNN_SIMULATOR_DEVICES=H200,H200 ";
const std::string kFour = simulated("P100-SXM2,V100-SXM2,A100-SXM4-80GB,H200");

std::vector<int> samplesOf(const Json& dealt) {
  std::vector<int> samples;
  for (const Json& device : dealt.at("devices")) samples.push_back(device.at("samples"));
  return samples;
}

int sum(const std::vector<int>& samples) {
  return std::accumulate(samples.begin(), samples.end(), 0);
}

class SharesTest : public ToolTest {
 protected:
  /// A command that fails: its line on stderr.
  std::string refused(int status, const std::string& arguments, const std::string& environment) {
    const Outcome outcome = runTool(arguments, environment);
    EXPECT_EQ(outcome.status, status) << outcome.output;
    return outcome.error;
  }
};

TEST_F(SharesTest, OfUnequalDevicesGoBySpeed) {
  const Json result = run(kShares + "--devices 0,1,2,3", kFour);
  const Json& best = result.at("shares");
  const std::vector<int> samples = samplesOf(best);
  EXPECT_EQ(sum(samples), 256);
  double slowestMs = 0, speeds = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    if (i > 0) {
      EXPECT_GT(samples[i], samples[i - 1]) << "the models are named by speed";
    }
    const Json& device = best.at("devices").at(i);
    slowestMs = std::max(slowestMs, device.at("predicted_ms").get<double>());
    EXPECT_LE(device.at("workspace_bytes"), result.at("devices").at(i).at("limit_bytes"));
    speeds += 1 / result.at("devices").at(i).at("alone_ms").get<double>();
  }
  EXPECT_DOUBLE_EQ(best.at("step_ms"), slowestMs);
  EXPECT_EQ(result.at("devices").at(0).at("planned_ms").at("256"),
            result.at("devices").at(0).at("alone_ms"));
  EXPECT_EQ(samplesOf(result.at("equal_shares")), std::vector<int>(4, 64));
  EXPECT_GT(result.at("equal_shares").at("step_ms"), 2 * slowestMs);
  EXPECT_LT(slowestMs, result.at("devices").at(3).at("alone_ms"));
  // No more than the speeds that each has with the whole mini-batch, but for kernels' granularity.
  EXPECT_NEAR(slowestMs * speeds, 1, 0.15);
}

TEST_F(SharesTest, OfEqualDevicesAreEqual) {
  const Json result = run(kShares + "--devices 0,1", kTwo);
  EXPECT_EQ(samplesOf(result.at("shares")), (std::vector<int>{128, 128}));
  EXPECT_EQ(result.at("shares"), result.at("equal_shares"));
  EXPECT_NE(outcome_.output.find("128"), std::string::npos) << outcome_.output;
}

TEST_F(SharesTest, EachDeviceHasItsOwnLimit) {
  const Json result = run(kShares + "--devices 0,1 --limit 64MiB,8MiB", kTwo);
  const std::vector<int> samples = samplesOf(result.at("shares"));
  EXPECT_GT(samples[0], samples[1] + 16);
  EXPECT_LE(result.at("shares").at("devices").at(1).at("workspace_bytes"), 8 << 20);
  EXPECT_GT(result.at("shares").at("devices").at(0).at("workspace_bytes"), 8 << 20);
  EXPECT_LT(result.at("shares").at("step_ms"), result.at("equal_shares").at("step_ms"));
}

TEST_F(SharesTest, KeepWithinMemoryAndCountTheRest) {
  const Json small = run(kShares + "--devices 0,1 --memory 256,80", kTwo);
  EXPECT_EQ(samplesOf(small.at("shares")), (std::vector<int>{176, 80}));
  EXPECT_TRUE(small.at("equal_shares").is_null());
  const Json slow = run(kShares + "--devices 0,1 --rest 0,0,0,0.1", kTwo);
  const std::vector<int> samples = samplesOf(slow.at("shares"));
  EXPECT_GT(samples[0], 2 * samples[1]) << "0.06 ms a sample, and 0.16";
  const Json alone = run(kShares + "--devices 0,1 --exchange 1000", kTwo);
  EXPECT_EQ(samplesOf(alone.at("shares")), (std::vector<int>{256, 0}));
}

#if UCUDNN_HAVE_SQLITE
// A cluster is planned where none of it is.
TEST_F(SharesTest, OfADatabasesMachinesAreThoseOfTheMachines) {
  const std::string database = directory_.file("merged.db");
  const Json there =
      run(kShares + "--devices 0,1", simulated("V100-SXM2,H200") + "UCUDNN_DATABASE=" + database);
  const Json here = run(kShares + "--database " + database +
                            " --machine 'NVIDIA V100-SXM2 (simulated)'"
                            " --machine 'NVIDIA H200 (simulated)'",
                        simulated("P100-SXM2"));
  EXPECT_EQ(sum(samplesOf(here.at("shares"))), 256);
  for (std::size_t i = 0; i < 2; ++i) {
    const double aloneMs = there.at("devices").at(i).at("alone_ms");
    EXPECT_NEAR(here.at("devices").at(i).at("alone_ms"), aloneMs, 0.03 * aloneMs) << i;
  }
  const double stepMs = there.at("shares").at("step_ms");
  EXPECT_NEAR(here.at("shares").at("step_ms"), stepMs, 0.05 * stepMs);
  const std::string error =
      refused(2, kShares + "--database " + database + " --machine 'NVIDIA X'", kTwo);
  EXPECT_NE(error.find("NVIDIA V100-SXM2 (simulated)"), std::string::npos) << error;
}
#endif

TEST_F(SharesTest, BadOptionsAreNamed) {
  const auto expect = [&](const std::string& arguments, const std::string& what) {
    const std::string error = refused(2, arguments, kTwo);
    EXPECT_NE(error.find(what), std::string::npos) << arguments << "\n" << error;
  };
  expect(kShares, "--devices");
  expect(kShares + "--devices 0,2", "--devices: there is no device 2");
  expect(kShares + "--devices 0,1 --memory 1,2,3", "--memory");
  expect(kShares + "--devices 0,1 --limit 1MiB,2MiB,3MiB", "--limit");
  expect(kShares + "--devices 0,1 --rest 1", "--rest");
  expect(kDataParallel, "--devices");
  expect(kDataParallel + "--devices 0,0", "twice");
  expect(kDataParallel + "--devices 0,2", "--devices: there is no device 2");
  expect(kDataParallel + "--devices 0,1 --total-workspace 1MiB", "--total-workspace");
}

TEST_F(SharesTest, TooLittleMemoryIsSaid) {
  const std::string error = refused(1, kShares + "--devices 0,1 --memory 100", kTwo);
  EXPECT_NE(error.find("--memory"), std::string::npos) << error;
}

/// Within 1 %, as the issue of shares asks for.
void expectAsPredicted(const Json& timed) {
  const double measuredMs = timed.at("measured_ms");
  EXPECT_NEAR(timed.at("predicted_ms"), measuredMs, 0.01 * measuredMs) << timed;
  EXPECT_NEAR(timed.at("planned_ms"), measuredMs, 0.01 * measuredMs) << timed;
}

TEST_F(SharesTest, DataParallelStepsAreAsPredicted) {
  const Json result = run(kDataParallel + "--batch-size 1024 --devices 0,1,2,3", kFour);
  const Json& measured = result.at("measured");
  expectAsPredicted(measured.at("shares"));
  expectAsPredicted(measured.at("equal_shares"));
  for (const Json& alone : measured.at("alone")) expectAsPredicted(alone);
  // The speed-up as predicted, too.
  const Json& best = measured.at("shares");
  const double aloneMs = measured.at("alone").back().at("measured_ms");
  const double predicted = result.at("predicted").at("devices").at(3).at("alone_ms").get<double>() /
                           best.at("predicted_ms").get<double>();
  EXPECT_NEAR(aloneMs / best.at("measured_ms").get<double>(), predicted, 0.01 * predicted);
  EXPECT_DOUBLE_EQ(measured.at("speedup"), aloneMs / best.at("measured_ms").get<double>());
  EXPECT_GT(measured.at("exchange").at("bytes"), 4 * 2000000);
}

TEST_F(SharesTest, DataParallelKeepsWithinMemory) {
  const Json result = run(kDataParallel + "--devices 0,1 --memory 256,80", kTwo);
  EXPECT_EQ(result.at("measured").at("shares").at("samples"), (std::vector<int>{176, 80}));
  expectAsPredicted(result.at("measured").at("shares"));
}

TEST_F(SharesTest, ADeviceThatFailsEndsAll) {
  const std::string missing = refused(2, kDataParallel + "--devices 0,2", kTwo);
  EXPECT_NE(missing.find("device 2"), std::string::npos) << missing;
  // More workspace than a P100 has memory.
  const std::string full =
      refused(1, kDataParallel + "--devices 0,1 --limit 64MiB,40GiB", simulated("H200,P100-SXM2"));
  EXPECT_NE(full.find("device 1"), std::string::npos) << full;
  EXPECT_NE(full.find("memory"), std::string::npos) << full;
  const std::string partial =
      refused(1, kDataParallel + "--devices 0,1 --multiprocessors 132,64", kTwo);
  EXPECT_NE(partial.find("--multiprocessors"), std::string::npos) << partial;
}

// At any call: the library does without some of them.
TEST_F(SharesTest, ACallThatFailsLetsNobodyWait) {
  int failures = 0;
  for (const int call : {20, 200, 400, 1000}) {
    const Outcome outcome =
        runTool(kDataParallel + "--layers conv5 --devices 0,1",
                kTwo + "UCUDNN_KERNELS=legacy UCUDNN_SIMULATOR_FAIL_CALL=" + std::to_string(call));
    if (outcome.status == 0) continue;
    ++failures;
    EXPECT_EQ(outcome.status, 1) << call << outcome.error;
    EXPECT_NE(outcome.error.find("ucudnn: device "), std::string::npos) << call << outcome.error;
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace ucudnn::test
