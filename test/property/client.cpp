#include "client.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include "../support/checked.hpp"
#include "../support/simulator.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kAllMemory = std::size_t{64} << 30;

// Objects of plans stay with the process; these kinds never do.
const char* const kLeakKinds[] = {
    "stream", "event", "graph", "graphExec", "device memory", "host memory", "cudnnHandle"};

}  // namespace

Client::Client(const Scenario& scenario, Report& report)
    : scenario_(scenario), report_(report), random_(scenario.seed * 0x9E3779B97F4A7C15U + 7) {}

Client::Baseline Client::look() const {
  Baseline result;
  for (const char* kind : kLeakKinds) result.handles.push_back(liveHandles(kind));
  for (int device = 0; device < scenario_.devices; ++device)
    result.bytes.push_back(liveBytes(device));
  return result;
}

void Client::makeSites() {
  for (const ProblemChoice& problem : scenario_.problems) {
    ProblemChoice single = problem;
    single.convolution.parts = 1;
    const int device = random_.between(0, scenario_.devices - 1);
    check(cudaSetDevice(device));
    for (const ucudnnOperation_t operation : kOperations)
      sites_.push_back(std::make_unique<Site>(problem, operation, device));
    sites_.push_back(std::make_unique<Site>(single, UCUDNN_BIAS_ACTIVATION_FORWARD, device));
  }
}

void Client::addHandle(int device) {
  check(cudaSetDevice(device));
  ClientHandle added;
  added.device = device;
  added.adopted = random_.chance(0.3);
  if (added.adopted) {
    cudnnHandle_t native = nullptr;
    check(cudnnCreate(&native));
    added.handle = native;
  } else {
    check(cudnnCreate(&added.handle));
  }
  handles_.push_back(added);
}

/// An adopted handle may end as it began, with plain cuDNN.
void Client::destroyHandle(std::size_t place) {
  const ClientHandle gone = handles_[place];
  handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(place));
  const bool plainly = gone.adopted && random_.chance(0.7);
  plainlyDestroyed_ = plainlyDestroyed_ || plainly;
  if (plainly)
    check(cudnnDestroy(static_cast<cudnnHandle_t>(gone.handle)));
  else
    check(cudnnDestroy(gone.handle));
}

void Client::replaceHandle() {
  const std::size_t place = random_.below(handles_.size());
  const int device = handles_[place].device;
  report_.trace("a handle of device " + std::to_string(device) + " is replaced");
  dropGraphs(device);  // the workspace of a captured call goes with the last handle
  destroyHandle(place);
  addHandle(device);
}

void Client::replaceStream() {
  const int device = random_.between(0, scenario_.devices - 1);
  auto& streams = streams_[static_cast<std::size_t>(device)];
  check(cudaSetDevice(device));
  cudaStream_t& place = streams[random_.below(streams.size())];
  report_.trace("a stream of device " + std::to_string(device) + " is replaced");
  check(cudaStreamDestroy(place));
  check(cudaStreamCreateWithFlags(&place,
                                  random_.chance(0.5) ? cudaStreamNonBlocking : cudaStreamDefault));
}

/// As when a framework's allocator holds nearly everything, and gives some back later.
void Client::changeMemory() {
  memoryIsShort_ = !memoryIsShort_;
  for (int device = 0; device < scenario_.devices; ++device) {
    const std::size_t few = random_.pick<std::size_t>({0, 512, 8192, 65536, std::size_t{1} << 20});
    setMemory(device, memoryIsShort_ ? few : kAllMemory);
    report_.trace("free memory: " + std::to_string(memoryIsShort_ ? few : kAllMemory));
  }
}

void Client::changeSettings() {
  ClientHandle& changed = handles_[random_.below(handles_.size())];
  const int policy = random_.between(0, 2);
  report_.trace("policy " + std::to_string(policy));
  check(changed.handle.setOptimizerBatchSizePolicy(static_cast<ucudnnBatchSizePolicy_t>(policy)));
}

void Client::lookAt(Site& site, const char* after) {
  check(cudaSetDevice(site.device()));
  const std::string what = site.difference();
  if (!what.empty()) report_.fail(site.text(), std::string("after ") + after + ", " + what);
}

void Client::launchGraphs() {
  ClientGraph& graph = graphs_[random_.below(graphs_.size())];
  check(cudaSetDevice(graph.device));
  for (int repetition = random_.between(1, 2); repetition > 0; --repetition) {
    for (Site* site : graph.sites) site->restore();
    const auto& streams = streams_[static_cast<std::size_t>(graph.device)];
    report_.trace("a graph is launched");
    check(cudaGraphLaunch(graph.exec, random_.pick(streams)));
    check(cudaDeviceSynchronize());
    for (Site* site : graph.sites) lookAt(*site, "a graph's launch");
  }
}

void Client::dropGraphs(int device) {
  for (ClientGraph& graph : graphs_)
    if (graph.device == device) check(cudaGraphExecDestroy(graph.exec));
  graphs_.erase(std::remove_if(graphs_.begin(),
                               graphs_.end(),
                               [&](const ClientGraph& graph) { return graph.device == device; }),
                graphs_.end());
}

void Client::end() {
  for (int device = 0; device < scenario_.devices; ++device) setMemory(device, kAllMemory);
  for (int device = 0; device < scenario_.devices; ++device) dropGraphs(device);
  waitForDevices();
  const bool streamsFirst = random_.chance(0.5);
  const auto destroyStreams = [&] {
    for (const auto& streams : streams_)
      for (const cudaStream_t stream : streams) check(cudaStreamDestroy(stream));
  };
  if (streamsFirst) destroyStreams();
  while (!handles_.empty()) destroyHandle(random_.below(handles_.size()));
  if (!streamsFirst) destroyStreams();
  sites_.clear();
}

void Client::checkLeaks(const Baseline& before) {
  const Baseline after = look();
  if (violationCount() != 0) report_.fail("", std::to_string(violationCount()) + " violations");
  // If an adopted handle was destroyed behind the library's back, the library keeps its objects for
  // it.
  if (plainlyDestroyed_ && scenario_.totalBytes > 0) return;
  // A device that helps to measure for another keeps a stream and a handle for the process's life.
  const auto helpersOf = [&](const std::string& kind) -> std::int64_t {
    const bool isKept = kind == "stream" || kind == "cudnnHandle";
    const bool helps = scenario_.environment.count("UCUDNN_BENCHMARK_DEVICES") > 0;
    return isKept && helps ? scenario_.devices : 0;
  };
  // Its graphs stay within their setting.
  const auto staysOf = [&](const std::string& kind) {
    return plainlyDestroyed_ && kind == "graphExec";
  };
  for (std::size_t i = 0; i < after.handles.size(); ++i)
    if (!staysOf(kLeakKinds[i]) &&
        (after.handles[i] < before.handles[i] ||
         after.handles[i] > before.handles[i] + helpersOf(kLeakKinds[i])))
      report_.fail("",
                   std::to_string(after.handles[i] - before.handles[i]) + " of \"" + kLeakKinds[i] +
                       "\" are left");
  for (std::size_t i = 0; i < after.bytes.size(); ++i)
    if (after.bytes[i] != before.bytes[i])
      report_.fail("", std::to_string(after.bytes[i] - before.bytes[i]) + " bytes are left");
}

void Client::run() {
  for (int device = 0; device < scenario_.devices; ++device) {
    check(cudaSetDevice(device));
    check(cudaFree(nullptr));
  }
  const Baseline before = look();
  makeSites();
  streams_.resize(static_cast<std::size_t>(scenario_.devices));
  for (int device = 0; device < scenario_.devices; ++device) {
    check(cudaSetDevice(device));
    for (int i = 0; i < scenario_.threads + 1; ++i) {
      const unsigned flags = random_.chance(0.5) ? cudaStreamNonBlocking : cudaStreamDefault;
      auto& streams = streams_[static_cast<std::size_t>(device)];
      check(cudaStreamCreateWithFlags(&streams.emplace_back(), flags));
    }
    for (int i = 0; i < scenario_.threads + 1; ++i) addHandle(device);
  }
  for (int round = 0; round < scenario_.rounds; ++round) {
    if (scenario_.limitsMemory && random_.chance(0.25)) changeMemory();
    if (random_.chance(0.15)) replaceHandle();
    if (random_.chance(0.15)) replaceStream();
    if (random_.chance(0.1)) changeSettings();
    if (!graphs_.empty() && random_.chance(0.4)) launchGraphs();
    act(chooseParts());
  }
  end();
  checkLeaks(before);
  // No kernel of the simulator is wrong here.
  double wrong = -1;
  check(ucudnnGetStatistic("kernelsWrong", &wrong));
  if (wrong != 0) report_.fail("", std::to_string(wrong) + " kernels were found wrong");
}

void runClient(const Scenario& scenario, Report& report) {
  for (const auto& [name, value] : scenario.environment) ::setenv(name.c_str(), value.c_str(), 1);
  Client(scenario, report).run();
}

}  // namespace ucudnn::test
