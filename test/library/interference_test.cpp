// Clients in other processes, whose every N-th call of CUDA or cuDNN from within the library goes
// wrong (fault/cuda_fault.cpp). Nothing else is known of the libraries behind: so any client can be
// run in this way by hand, on a GPU, too.
#include <regex>

#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

class InterferenceTest : public LibraryTest {
 protected:
  static ConvolutionCase smallCase() {
    ConvolutionCase result;
    result.batch = 4;
    result.channels = result.filters = 4;
    result.input = {6, 6};
    return result;
  }

  struct Ending {
    ChildResult child;
    long calls = 0, faults = 0;
  };
  static Ending run(const std::string& command,
                    const std::string& kind,
                    long every,
                    std::map<std::string, std::string> environment) {
    environment.insert({{"LD_PRELOAD", UCUDNN_CUDA_FAULT_LIBRARY},
                        {"ASAN_OPTIONS", "verify_asan_link_order=0"},
                        {"UCUDNN_LOG_LEVEL", "off"},
                        {"UCUDNN_SIMULATOR_STRICT", "0"},
                        {"CUDA_FAULT_KIND", kind},
                        {"CUDA_FAULT_EVERY", std::to_string(every)},
                        {"CUDA_FAULT_COUNT", "1"}});
    Ending ending;
    ending.child = runClient({command, smallCase().serialized()}, environment);
    std::smatch match;
    const std::regex sums("cuda calls: (\\d+), (\\d+) of them");
    if (std::regex_search(ending.child.output, match, sums)) {
      ending.calls = std::stol(match[1]);
      ending.faults = std::stol(match[2]);
    }
    return ending;
  }

  /// A call of the client's may fail, and say so. A wrong result, an end by a signal and waiting
  /// for ever are what must not be.
  static void expectSurvival(const std::string& command,
                             const std::map<std::string, std::string>& environment) {
    const Ending whole = run(command, "error", 1'000'000'000, environment);
    ASSERT_EQ(0, whole.child.status) << whole.child.output;
    ASSERT_GT(whole.calls, 20) << whole.child.output;
    for (const std::string kind : {"error", "late", "sticky"})
      for (const long every : {1L, 2L, 3L, 5L, 8L, 13L, 21L, 55L, 233L}) {
        SCOPED_TRACE(command + ", " + kind + ", every " + std::to_string(every));
        const Ending ending = run(command, kind, every, environment);
        EXPECT_TRUE(ending.child.status == 0 || ending.child.status == 3)
            << ending.child.status << ": " << ending.child.output;
        EXPECT_EQ(ending.faults > 0, ending.calls >= every);
      }
    const Ending slow = run(command, "slow", 20, environment);
    EXPECT_EQ(0, slow.child.status) << slow.child.output;
    EXPECT_GT(slow.faults, 0);
  }
};

TEST_F(InterferenceTest, SplitCallsSurvive) {
  const ForcedSplits forced({smallCase()});
  expectSurvival("run", {});
}

TEST_F(InterferenceTest, SplitCallsOfEnginesSurvive) {
  const EnvironmentGuard engines("UCUDNN_KERNELS", "engines");
  const ForcedSplits forced({smallCase()});
  expectSurvival("run", {});
}

TEST_F(InterferenceTest, MeasuringSurvives) {
  expectSurvival("plan", {{"UCUDNN_BATCH_SIZE_POLICY", "undivided"}, {"UCUDNN_KERNELS", "legacy"}});
}

/// Calls at fault that recover: results are right, and most calls are planned all the same.
TEST_F(InterferenceTest, RareFaultsAreForgotten) {
  const ForcedSplits forced({smallCase()});
  const Ending rare = run("run", "error", 89, {});
  EXPECT_EQ(0, rare.child.status) << rare.child.output;
  EXPECT_GT(rare.faults, 0);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(rare.child.output, match, std::regex("split (\\d+)")));
  EXPECT_GT(std::stol(match[1]), 0);
}

}  // namespace
}  // namespace ucudnn::test
