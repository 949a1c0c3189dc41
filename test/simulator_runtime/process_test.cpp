// The settings of the environment, and the output at exit. Each test runs in its own process,
// started anew (the "threadsafe" style), because settings are read once.
#include <csignal>
#include <cstdlib>
#include <string>

#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

class SimulatedProcessTest : public testing::Test {
 protected:
  SimulatedProcessTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

void leak() {
  cudaEvent_t event = nullptr;
  cudaStream_t stream = nullptr;
  void* pointer = nullptr;
  cudaEventCreate(&event);
  cudaStreamCreate(&stream);
  cudaMalloc(&pointer, 16);
  cudaStreamDestroy(stream);
}

void overrun() {
  void* pointer = nullptr;
  cudaMalloc(&pointer, 16);
  static_cast<char*>(pointer)[16] = 0;
  cudaDeviceSynchronize();
}

TEST_F(SimulatedProcessTest, LeaksAreReportedAtExit) {
  setenv("UCUDNN_SIMULATOR_LEAKS", "1", 1);
  EXPECT_EXIT((leak(), std::exit(0)),
              testing::ExitedWithCode(0),
              "leaked at exit: 1 device memory, 1 event");
}

void leakGraph() {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaStreamDestroy(stream);
}

TEST_F(SimulatedProcessTest, GraphsAreLeaksToo) {
  setenv("UCUDNN_SIMULATOR_LEAKS", "1", 1);
  EXPECT_EXIT((leakGraph(), std::exit(0)),
              testing::ExitedWithCode(0),
              "leaked at exit: 1 graph, 1 graphExec");
}

TEST_F(SimulatedProcessTest, LeaksAreNotReportedUnasked) {
  unsetenv("UCUDNN_SIMULATOR_LEAKS");
  EXPECT_EXIT((leak(), std::exit(0)), testing::ExitedWithCode(0), "^$");
}

TEST_F(SimulatedProcessTest, StrictnessAborts) {
  setenv("UCUDNN_SIMULATOR_STRICT", "abort", 1);
  EXPECT_EXIT(overrun(), testing::KilledBySignal(SIGABRT), "written beyond the 16 bytes");
}

TEST_F(SimulatedProcessTest, WritingToFreedMemoryIsFoundAtExit) {
  const auto misuse = [] {
    void* pointer = nullptr;
    cudaMalloc(&pointer, 16);
    cudaFree(pointer);
    static_cast<char*>(pointer)[3] = 0;
    std::exit(0);
  };
  unsetenv("UCUDNN_SIMULATOR_STRICT");
  EXPECT_EXIT(misuse(), testing::ExitedWithCode(0), "after it was freed");
}

TEST_F(SimulatedProcessTest, TheEnvironmentChoosesTheFailingCall) {
  const auto count = [] {
    int failed = 0;
    for (int i = 1; i <= 5; ++i) {
      if (cudaSetDevice(0) != cudaSuccess) failed = i;
    }
    std::exit(failed);
  };
  setenv("UCUDNN_SIMULATOR_FAIL_CALL", "3", 1);
  EXPECT_EXIT(count(), testing::ExitedWithCode(3), "");
}

struct SettingCase {
  const char* variable;
  const char* value;
  const char* message;
};

TEST_F(SimulatedProcessTest, SettingsThatAreNotUnderstoodEndTheProcess) {
  const SettingCase cases[] = {
      {"UCUDNN_SIMULATOR_DEVICES", "H200,K80", "no model 'K80'; there are:.* V100-SXM2"},
      {"UCUDNN_SIMULATOR_DEVICES", ",", "no model ''"},
      {"UCUDNN_SIMULATOR_ARITHMETIC", "some", "full, sampled, off or timed, not some"},
      {"UCUDNN_SIMULATOR_FAIL_CALL", "x", "is a number, not x"},
      {"UCUDNN_SIMULATOR_CALL_US", "-1", "is a number, not -1"},
      {"UCUDNN_SIMULATOR_RANDOM_TIMES", "dice", "is a number, not dice"},
      {"UCUDNN_SIMULATOR_MEASURING_COST", "2", "0 or 1, not 2"},
      {"UCUDNN_SIMULATOR_LEAKS", "yes", "0, 1 or all, not yes"},
      {"UCUDNN_SIMULATOR_STRICT", "1", "0 or abort, not 1"},
  };
  for (const SettingCase& test : cases) {
    const char* const previous = std::getenv(test.variable);
    const std::string saved = previous != nullptr ? previous : "";
    setenv(test.variable, test.value, 1);
    int count = 0;
    EXPECT_EXIT(cudaGetDeviceCount(&count), testing::ExitedWithCode(2), test.message);
    setenv(test.variable, saved.c_str(), 1);
  }
}

}  // namespace
}  // namespace ucudnn::test
