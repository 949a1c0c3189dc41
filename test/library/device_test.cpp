// Handles of a machine with several devices: all that μ-cuDNN does happens on the handle's own.
#include <cstdlib>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

class DeviceTest : public LibraryTest {
 protected:
  static constexpr int kChannels = 4;
  /// In a process that sees these devices, if it is the simulator's.
  static ChildResult runOn(const std::string& devices,
                           const std::string& command,
                           std::map<std::string, std::string> environment = {}) {
    environment["UCUDNN_SIMULATOR_DEVICES"] = devices;
    return runClient({command, fftCase(kChannels).serialized()}, environment);
  }
  /// The client "reuse", in which an address must come back: AddressSanitizer would keep what is
  /// freed for a while.
  static ChildResult reuse(const std::string& devices,
                           std::map<std::string, std::string> environment = {}) {
    const char* const options = std::getenv("ASAN_OPTIONS");
    environment["ASAN_OPTIONS"] = std::string(options == nullptr ? "" : options) +
                                  ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0";
    return runOn(devices, "reuse", std::move(environment));
  }
  static bool haveTwo() {
    int count = 0;
    EXPECT_CUDA(cudaGetDeviceCount(&count));
    return onSimulator() || count > 1;
  }
  static bool said(const ChildResult& child, const std::string& line) {
    return child.output.find(line + "\n") != std::string::npos;
  }
};

TEST_F(DeviceTest, QueryUnderAnotherCurrentDeviceTimesTheHandlesOwn) {
  if (!haveTwo()) GTEST_SKIP() << "needs two devices";
  for (const char* const devices : {"H200,H200", "P100-SXM2,H200"})
    for (const char* const total : {"0", "1MiB"}) {
      SCOPED_TRACE(std::string(devices) + ", total " + total);
      const ChildResult child =
          runOn(devices, "elsewhere", {{"UCUDNN_TOTAL_WORKSPACE_SIZE", total}});
      EXPECT_EQ(0, child.status) << child.output;
      if (!onSimulator()) continue;
      EXPECT_TRUE(said(child, "planned on its device: 1")) << child.output;
      EXPECT_TRUE(said(child, "clock 0 0.000")) << child.output;
    }
}

// A raw handle's end by plain cudnnDestroy goes unnoticed; what was kept for it must do no harm to
// whoever gets its address.
TEST_F(DeviceTest, AdoptedHandlesAddressMayComeBackOnAnotherDevice) {
  if (!haveTwo()) GTEST_SKIP() << "needs two devices";
  for (const char* const devices : {"H200,H200", "H200,P100-SXM2"})
    for (const char* const total : {"0", "1MiB"}) {
      SCOPED_TRACE(std::string(devices) + ", total " + total);
      const ChildResult child = reuse(devices, {{"UCUDNN_TOTAL_WORKSPACE_SIZE", total}});
      EXPECT_EQ(0, child.status) << child.output;
      if (!onSimulator()) continue;
      EXPECT_TRUE(said(child, "address used again: 1")) << child.output;
      EXPECT_TRUE(said(child, "the former device's clock stands: 1")) << child.output;
    }
}

TEST_F(DeviceTest, GraphsOfAnAdoptedHandleRunOnItsDeviceOnly) {
  if (!haveTwo()) GTEST_SKIP() << "needs two devices";
  const ForcedSplits forced({fftCase(kChannels)});
  const ChildResult child = reuse("H200,H200");
  EXPECT_EQ(0, child.status) << child.output;
  if (!onSimulator()) return;
  EXPECT_TRUE(said(child, "address used again: 1")) << child.output;
  EXPECT_TRUE(said(child, "the former device's clock stands: 1")) << child.output;
  EXPECT_TRUE(said(child, "replayed 9")) << child.output;
  EXPECT_TRUE(said(child, "replayed 18")) << child.output;
}

}  // namespace
}  // namespace ucudnn::test
