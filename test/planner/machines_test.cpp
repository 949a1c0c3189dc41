// Devices of one model are one machine. The simulator has two of one and a third of another.
#include "planner/machines.hpp"

#include <cudnn.h>
#include <gtest/gtest.h>

#include "support/settings.hpp"
#include "support/simulator.hpp"

namespace ucudnn {
namespace {

class MachinesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::onSimulator()) GTEST_SKIP() << "needs the simulator's devices";
  }
  Machines machines_;
};

TEST_F(MachinesTest, DevicesOfOneModelShareANumber) {
  const int first = machines_.ofDevice(0);
  EXPECT_EQ(machines_.ofDevice(1), first);
  EXPECT_NE(machines_.ofDevice(2), first);
  EXPECT_EQ(machines_.ofDevice(0), first) << "asked again";
}

TEST_F(MachinesTest, AKeySaysWhatMeasurementsDependOn) {
  const MachineKey key = machines_.key(machines_.ofDevice(2));
  EXPECT_NE(key.deviceName.find("P100"), std::string::npos) << key.deviceName;
  EXPECT_EQ(key.computeCapability, 60);
  EXPECT_GT(key.multiprocessorCount, 0);
  EXPECT_GT(key.driverVersion, 0);
  EXPECT_GT(key.cudaVersion, 0);
  EXPECT_EQ(key.cudnnVersion, cudnnGetVersion());
  EXPECT_TRUE(key.simulated);
}

TEST_F(MachinesTest, BenchmarkDevicesAreTheOthersOfTheSameModel) {
  using Ids = std::vector<int>;
  EXPECT_EQ(benchmarkDevices({}, false, 0, machines_), Ids{});
  EXPECT_EQ(benchmarkDevices({0}, false, 0, machines_), Ids{});
  EXPECT_EQ(benchmarkDevices({1}, false, 0, machines_), Ids{1});
  EXPECT_EQ(benchmarkDevices({0, 1}, false, 1, machines_), Ids{0});
}

TEST_F(MachinesTest, EachKindIsMeasuredOnItsOwn) {
  using Ids = std::vector<int>;
  EXPECT_EQ(benchmarkDevices({0, 1, 2}, false, 0, machines_), Ids{1});
  EXPECT_EQ(benchmarkDevices({0, 1, 2}, false, 2, machines_), Ids{});
  EXPECT_EQ(benchmarkDevices({}, true, 1, machines_), Ids{0}) << "all: the third as well";
}

TEST_F(MachinesTest, DevicesThatDoNotExistAreRefused) {
  EXPECT_THROW(benchmarkDevices({3}, false, 0, machines_), BadSetting);
}

}  // namespace
}  // namespace ucudnn
