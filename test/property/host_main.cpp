// The property test of tensors in host memory: random convolutions on the simulator, whose tensors
// lie in random places, within random budgets.
//
//   ucudnn_host_property [--seed S] [--count N] [--trace]
//
// runs the clients of the seeds S, ..., S + N - 1, each in a process of its own, with five problems
// each. Calls give cuDNN's result, bit by bit if no tiles add up; within what a refusal names, too;
// replayed by a graph; on several threads at a time. A call of which any function fails returns a
// status, and the next one is right. Nothing is left behind. Exit status 1: something was found,
// and printed with the seed that replays it.
#include <cstdio>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "../library/host_tensors.hpp"
#include "report.hpp"
#include "seeds.hpp"

using namespace ucudnn::test;

namespace {

constexpr int kProblemsPerClient = 5;
constexpr unsigned kClientSeconds = 120;  // a hang, not slowness

/// One problem and what becomes of it.
struct HostProblem {
  ConvolutionCase convolution;
  ucudnnOperation_t operation = UCUDNN_FORWARD;
  Places places{};
  double alpha = 1, beta = 0;
  std::size_t budget = 0;
  bool ownsWorkspace = false, isCaptured = false;
  int failures = 0;  ///< calls of which a function fails

  std::string text() const {
    std::ostringstream text;
    text << convolution.serialized() << ' ' << toText(operation) << " places "
         << static_cast<int>(places[0]) << static_cast<int>(places[1])
         << static_cast<int>(places[2]) << " alpha " << alpha << " beta " << beta << " budget "
         << budget << (ownsWorkspace ? " total" : "") << (isCaptured ? " captured" : "")
         << " failures " << failures;
    return text.str();
  }
};

HostProblem randomProblem(std::mt19937& random, bool isAlone) {
  HostProblem problem;
  problem.convolution = randomCase(random);
  problem.operation = kOperations[random() % 3];
  for (Place& place : problem.places) place = static_cast<Place>(random() % 3);
  problem.places[random() % 3] = static_cast<Place>(1 + random() % 2);
  problem.alpha = random() % 4 == 0 ? 2 : 1;
  problem.beta = random() % 3 == 0 ? 0.5 : 0;
  problem.budget = std::size_t{1} << (9 + random() % 15);
  problem.ownsWorkspace = random() % 8 == 0;
  if (isAlone && random() % 4 == 0) problem.failures = 8;
  if (isAlone && random() % 4 == 0) {  // other threads wait for the device
    problem.isCaptured = true;
    for (Place& place : problem.places)
      if (place == Place::kPageable) place = Place::kPinned;
  }
  return problem;
}

/// The bytes that a refusal has named in the log; 0: it has named none.
std::size_t bytesNamed(const std::string& log) {
  const std::vector<std::string> lines = linesWith(log, {"need", "bytes of device memory"});
  std::smatch match;
  if (lines.empty() || !std::regex_search(lines.back(), match, std::regex("need ([0-9]+) bytes")))
    return 0;
  return std::stoull(match[1]);
}

/// Whether tiles of the log's last plan add to one part of the output, or none is told.
bool adds(const HostProblem& problem, const std::string& log) {
  const std::vector<std::string> lines = linesWith(log, {" on host memory: ", " tiles of "});
  std::smatch match;
  if (lines.empty() ||
      !std::regex_search(
          lines.back(), match, std::regex("tiles of [0-9]+ x [0-9]+ [a-z]+ x ([0-9]+) x ([0-9]+)")))
    return true;
  const ConvolutionCase& whole = problem.convolution;
  return problem.operation == UCUDNN_BACKWARD_FILTER ||
         (whole.groups == 1 &&
          (problem.operation == UCUDNN_FORWARD ? std::stoi(match[2]) < whole.channels
                                               : std::stoi(match[1]) < whole.filters));
}

/// Runs one problem on handles and a stream of its own.
class Trial {
 public:
  Trial(const HostProblem& problem,
        std::mt19937& random,
        bool isAlone,
        std::string log,
        Report& report)
      : problem_(problem),
        random_(random),
        isAlone_(isAlone),
        log_(std::move(log)),
        report_(report),
        convolution_(problem.convolution) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess, "stream");
    check(cudnnSetStream(handles_.ours, stream_) == CUDNN_STATUS_SUCCESS, "cudnnSetStream");
  }
  ~Trial() {
    static_cast<void>(cudnnSetStream(handles_.ours, nullptr));
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void run() {
    const auto known = inCoreIfAny(
        convolution_, handles_.native, problem_.operation, problem_.alpha, problem_.beta);
    if (!known) return;
    expected_ = *known;
    check(handles_.ours.setTotalWorkspaceSize(problem_.ownsWorkspace ? 1 << 20 : 0) ==
              CUDNN_STATUS_SUCCESS,
          "setTotalWorkspaceSize");
    setBudget(problem_.budget);
    cudnnStatus_t status = callOnce(CUDNN_STATUS_ALLOC_FAILED);
    if (status == CUDNN_STATUS_ALLOC_FAILED) {
      const std::size_t named = bytesNamed(log_);
      check(named > problem_.budget, "a refusal names no more bytes");
      setBudget(named);
      status = callOnce(CUDNN_STATUS_SUCCESS);
    }
    for (int i = 0; i < problem_.failures; ++i) failOnce();
    if (problem_.isCaptured) capture();
  }

 private:
  void check(bool isGood, const char* what) {
    if (!isGood) report_.fail(problem_.text(), what);
  }
  void setBudget(std::size_t bytes) {
    check(handles_.ours.setDeviceMemory(bytes) == CUDNN_STATUS_SUCCESS, "setDeviceMemory");
  }
  void checkOutput(PlacedCall& call, const char* what) {
    check(cudaStreamSynchronize(stream_) == cudaSuccess, "cudaStreamSynchronize");
    const std::vector<char> output = call.output(problem_.operation);
    if (isAlone_ && !adds(problem_, log_)) return check(output == expected_, what);
    check(distance(convolution_.geometry(problem_.operation), output, expected_) <=
              tolerance(problem_.convolution),
          what);
  }
  cudnnStatus_t call(PlacedCall& placed) {
    return placed.run(handles_.ours, problem_.operation, problem_.alpha, problem_.beta);
  }

  /// On tensors of its own, which the call changes.
  cudnnStatus_t callOnce(cudnnStatus_t mayFail) {
    PlacedCall placed(convolution_, problem_.places);
    const cudnnStatus_t status = call(placed);
    if (status == CUDNN_STATUS_SUCCESS)
      checkOutput(placed, "the result is wrong");
    else
      check(status == mayFail, cudnnGetErrorString(status));
    return status;
  }

  /// One of the functions of the call, or of the call behind it, fails.
  void failOnce() {
    PlacedCall placed(convolution_, problem_.places);
    failCall(1 + static_cast<std::int64_t>(random_() % 200));
    const cudnnStatus_t status = call(placed);
    failCall(0);
    static_cast<void>(cudaGetLastError());
    if (status == CUDNN_STATUS_SUCCESS) checkOutput(placed, "the result beside a failure is wrong");
    check(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
    callOnce(CUDNN_STATUS_SUCCESS);
  }

  void capture() {
    PlacedCall placed(convolution_, problem_.places);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal) == cudaSuccess,
          "cudaStreamBeginCapture");
    check(call(placed) == CUDNN_STATUS_SUCCESS, "a call with a plan is not captured");
    check(cudaStreamEndCapture(stream_, &graph) == cudaSuccess, "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess, "cudaGraphInstantiate");
    const int launches = problem_.beta == 0 ? 2 : 1;
    for (int i = 0; i < launches; ++i)
      check(cudaGraphLaunch(exec, stream_) == cudaSuccess, "cudaGraphLaunch");
    checkOutput(placed, "a graph's result is wrong");
    check(cudaGraphExecDestroy(exec) == cudaSuccess, "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph) == cudaSuccess, "cudaGraphDestroy");
  }

  const HostProblem& problem_;
  std::mt19937& random_;
  const bool isAlone_;  ///< nobody else writes to the log, and its last plan is the call's
  const std::string log_;
  Report& report_;
  Convolution convolution_;
  const Handles handles_;
  cudaStream_t stream_ = nullptr;
  std::vector<char> expected_;
};

void runClient(unsigned long long seed, const std::string& log, Report& report) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  if (random() % 3 == 0) setOddChannels(OddChannels::kPadded);
  const bool isAlone = random() % 4 != 0;
  // Budgets that are named in a log that threads share can't be told apart: theirs are enough.
  std::vector<HostProblem> problems;
  for (int i = 0; i < kProblemsPerClient; ++i) {
    problems.push_back(randomProblem(random, isAlone));
    if (!isAlone) problems.back().budget = std::size_t{64} << 20;
    report.trace(problems.back().text());
  }
  { const Handles first; }  // cuDNN and the library keep what is made once
  const std::int64_t resources = liveResources();
  const auto run = [&](const HostProblem& problem) {
    std::mt19937 own(static_cast<std::mt19937::result_type>(seed + 1));
    try {
      Trial(problem, own, isAlone, log, report).run();
    } catch (const std::exception& error) {
      report.fail(problem.text(), error.what());
    }
  };
  std::vector<std::thread> threads;
  for (const HostProblem& problem : problems) {
    if (isAlone)
      run(problem);
    else
      threads.emplace_back([&] { run(problem); });
  }
  for (std::thread& thread : threads) thread.join();
  if (liveResources() != resources)
    report.fail("seed " + std::to_string(seed),
                std::to_string(liveResources() - resources) + " objects are left");
}

struct HostScenario {
  std::map<std::string, std::string> environment;
  bool usesDatabase = false;
};

bool run(const Seeds& seeds, unsigned long long seed) {
  const TemporaryDirectory directory;
  HostScenario scenario;
  scenario.environment = {{"UCUDNN_LOG_FILE", directory.file("log")},
                          {"UCUDNN_LOG_LEVEL", "info"},
                          {"UCUDNN_BENCHMARK_SHARE", "0"},
                          {"UCUDNN_SIMULATOR_STRICT", "abort"}};
  const auto complaints = [&](const HostScenario& each) {
    const ForkResult result = runForked(
        [&](const Answer& answer) {
          const EnvironmentGuard environment(each.environment);
          Report report(answer, seeds.traces);
          runClient(seed, each.environment.at("UCUDNN_LOG_FILE"), report);
        },
        kClientSeconds);
    return result.answer + complaintsOf(result);
  };
  return runSeed(seeds, seed, scenario, complaints, "", "misc/scripts/property.sh --host 5");
}

}  // namespace

int main(int count, char** words) {
  return runSeeds(count, words, kProblemsPerClient, run);
}
