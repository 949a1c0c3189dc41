// A client of cuDNN alone: it includes nothing of μ-cuDNN's, and is linked with nothing of it. It
// writes its results to a file, so that runs can be compared.
//
//   plain MODE FILE
//
//   query     asks for algorithms and sizes, then runs, as PyTorch does with its legacy API
//   find      lets cuDNN measure within a workspace, then runs
//   fixed     runs with a workspace of 2 MiB, and asks nothing
//   graph     builds plans of the graph API, and runs the first of each operation
//   autotune  runs all of them, once each
//   single    the same as graph, of one sample
//   unasked   never asks a plan for its workspace
//   refill    makes a plan of a descriptor that cuDNN has filled twice
//   outlive   asks for the workspace of a plan whose handle is gone
//   crowd     executes with more tensors than the graph has
//   exact     runs deterministic engines that need no workspace
//   fast      runs engines that have tensor cores
//   capture   captures them, and runs nothing before
//   shapes    runs all engines of convolutions with groups and in 3-D, and captures them
//   quick     "graph", and fails if somebody has asked the legacy API's heuristics
//   frontend  describes the fused operation as cudnn-frontend does, and runs the first engine
//   frontends the same, all engines
//   xla       runs fused operations with other activations, all engines
//   scaled    the same with a convolution that is scaled
//   huge      has a tensor that legacy descriptors can't describe
//   odd       runs graphs that no plan is for
//   twice     asks for workspaces again after the cap has been raised
//   again     runs a plan many times, with other handles and where others were
//   ends      asks plans for their workspace while another thread destroys their handle
//   asks      the same while another thread executes plans of the same handle
//   caps      the same while a third one changes the cap
//   threads   "find" in three threads, each with a handle
//   waits     the same, three times over, while another thread waits for the device again and again
//   unseen    the same, but the waits are by ways that the preload does not see
//   turns     two threads call in turns, as a framework's forward and backward passes do
//   outside   the handles are made and ended by cuDNN's functions, which the preload does not see
//   fork      a child that calls nothing of cuDNN's, and one that calls all of it; then "find"
//   forks     children that use all of it, forked while threads do
//   exec      becomes "find"
//   atexit    makes a handle; "find" in the destructor of a static object
//
// Prints "workspace BYTES", the most that any call was given, and "captures N", how often a stream
// was captured. Exit status: 0; 3: a call failed, and said so.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "graph_forks.hpp"
#include "graph_habits.hpp"
#include "graph_lives.hpp"
#include "graph_threads.hpp"
#include "odd_graphs.hpp"

using namespace plain;

namespace {

/// Runs with a handle that `create` makes and `destroy` ends.
template <typename Use>
void withHandle(Use use,
                decltype(&cudnnCreate) create = cudnnCreate,
                decltype(&cudnnDestroy) destroy = cudnnDestroy) {
  cudnnHandle_t handle = nullptr;
  CHECK(create(&handle));
  use(handle);
  CHECK(destroy(handle));
}

void find(std::vector<float>& results) {
  withHandle([&](cudnnHandle_t handle) { Layer().find(handle, results); });
}

void runGraphs(GraphUse use, std::vector<float>& results, const Shape& shape = {}) {
  withHandle([&](cudnnHandle_t handle) { GraphLayer(shape).run(handle, use, results); });
}

void runShapes(std::vector<float>& results) {
  Shape grouped, volume;
  grouped.batch = volume.batch = 3;
  grouped.groups = 2, grouped.channels = 96;
  volume.image = {6, 6, 6}, volume.channels = 48, volume.filter = 3;
  for (const Shape& shape : {grouped, volume})
    withHandle([&](cudnnHandle_t handle) { GraphHabits(shape).everyEngine(handle, results); });
}

void runHuge(std::vector<float>& results) {
  Shape shape;
  shape.channels = 96, shape.filters = 8, shape.batch = 3;
  withHandle([&](cudnnHandle_t handle) { HugeLayer(shape).run(handle, results); });
}

void findInThreads(std::vector<float>& results, int rounds = 1) {
  constexpr int kThreads = 3;
  std::vector<float> each[kThreads];
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (std::vector<float>& own : each)
    threads.emplace_back([&] {
      try {
        for (int i = 0; i < rounds; ++i) find(own);
      } catch (const std::exception& error) {
        std::printf("%s\n", error.what());
        ++failures;
      }
    });
  for (std::thread& thread : threads) thread.join();
  check(failures, "threads");
  for (const std::vector<float>& own : each) results.insert(results.end(), own.begin(), own.end());
}

using Wait = decltype(&cudaDeviceSynchronize);

void findBesideWaits(std::vector<float>& results, Wait wait) {
  std::atomic<bool> done{false};
  int failed = 0;
  std::thread waiting([&] {
    while (!done && failed == 0) {
      failed = wait();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  findInThreads(results, 3);
  done = true;
  waiting.join();
  check(failed, "cudaDeviceSynchronize");
}

/// Null: the library is not loaded, or has no such function.
Wait functionOf(const char* library, const char* name) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Wait>(handle != nullptr ? dlsym(handle, name) : nullptr);
}

/// As ctypes and CuPy wait, as the driver's clients do, and by calls that wait besides.
cudaError_t waitInOtherWays() {
  static const std::string runtime = "libcudart.so." + std::to_string(CUDART_VERSION / 1000);
  static const Wait ofRuntime = functionOf(runtime.c_str(), "cudaDeviceSynchronize");
  static const Wait ofDriver = functionOf("libcuda.so.1", "cuCtxSynchronize");  // not simulated
  if (ofRuntime == nullptr) return cudaErrorSharedObjectSymbolNotFound;
  void* memory = nullptr;
  cudaError_t error = ofRuntime();
  if (error == cudaSuccess && ofDriver != nullptr) error = ofDriver();
  if (error == cudaSuccess) error = cudaStreamSynchronize(cudaStreamLegacy);
  if (error == cudaSuccess) error = cudaStreamSynchronize(cudaStreamPerThread);
  if (error == cudaSuccess) error = cudaMalloc(&memory, 4096);
  if (error == cudaSuccess) error = cudaFree(memory);
  return error;
}

/// The simulator counts calls; elsewhere: none.
long long callsOf(const char* function) {
  const auto count = reinterpret_cast<std::int64_t (*)(const char*)>(
      dlsym(RTLD_DEFAULT, "ucudnnSimulatorCallCount"));
  return count != nullptr ? count(function) : 0;
}

/// Legacy heuristics take as long as building a plan, and no graph needs them.
void runWithoutHeuristics(std::vector<float>& results) {
  runGraphs(GraphUse::kFirst, results);
  for (const char* const function : {"cudnnGetConvolutionForwardAlgorithm_v7",
                                     "cudnnGetConvolutionBackwardDataAlgorithm_v7",
                                     "cudnnGetConvolutionBackwardFilterAlgorithm_v7"})
    check(callsOf(function) != 0, function);
}

void findInTurns(std::vector<float>& results) {
  for (int i = 0; i < 3; ++i) {
    find(results);
    std::thread([&] { find(results); }).join();
  }
}

void runOutside(std::vector<float>& results) {
  void* const library = dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) throw std::runtime_error(dlerror());
  // The C library's own dlsym, which libucudnn_preload.so does not stand in front of.
  const auto find = reinterpret_cast<decltype(&dlsym)>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  if (find == nullptr) throw std::runtime_error(dlerror());
  const auto create = reinterpret_cast<decltype(&cudnnCreate)>(find(library, "cudnnCreate"));
  const auto destroy = reinterpret_cast<decltype(&cudnnDestroy)>(find(library, "cudnnDestroy"));
  const auto use = [&](cudnnHandle_t handle) { Layer().find(handle, results); };
  for (int i = 0; i < 2; ++i) withHandle(use, create, destroy);  // perhaps at the same address
  withHandle(use, create, cudnnDestroy);
  withHandle(use, cudnnCreate, destroy);
  withHandle(use);
}

void inChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = -1;
  waitpid(child, &status, 0);
  check(status, "child");
}

void runForked(std::vector<float>& results) {
  inChild([] { return 0; });
  inChild([] {
    try {
      std::vector<float> own;
      find(own);
      return own.empty() ? 1 : 0;
    } catch (const std::exception&) {
      return 3;
    }
  });
  find(results);
  inChild([] { return 0; });
}

void write(const char* file, const std::vector<float>& results) {
  std::FILE* const stream = std::fopen(file, "wb");
  if (stream == nullptr) throw std::runtime_error("fopen");
  std::fwrite(results.data(), sizeof(float), results.size(), stream);
  std::fclose(stream);
}

/// Works when the process ends, as some programs destroy their handles then.
class AtExit {
 public:
  ~AtExit() {
    if (file == nullptr) return;
    std::vector<float> results;
    find(results);
    write(file, results);
  }
  const char* file = nullptr;
} atExit;

}  // namespace

extern "C" __attribute__((visibility("default"))) int plainMain(int count, char** words) {
  if (count < 3) return 2;
  const std::string mode = words[1];
  try {
    std::vector<float> results;
    if (mode == "exec") {
      char find[] = "find";
      words[1] = find;
      execv("/proc/self/exe", words);
      throw std::runtime_error("execv");
    }
    if (mode == "find") find(results);
    if (mode == "atexit") atExit.file = words[2];
    if (mode == "atexit") withHandle([](cudnnHandle_t) {});
    if (mode == "query") withHandle([&](cudnnHandle_t handle) { Layer().query(handle, results); });
    if (mode == "fixed") withHandle([&](cudnnHandle_t handle) { Layer().fixed(handle, results); });
    if (mode == "graph") runGraphs(GraphUse::kFirst, results);
    if (mode == "quick") runWithoutHeuristics(results);
    if (mode == "autotune") runGraphs(GraphUse::kAll, results);
    if (mode == "single") {
      Shape single;
      single.batch = 1;
      runGraphs(GraphUse::kFirst, results, single);
    }
    if (mode == "unasked") runGraphs(GraphUse::kUnasked, results);
    if (mode == "twins") runGraphs(GraphUse::kTwins, results);
    if (mode == "refill")
      withHandle([&](cudnnHandle_t handle) { GraphHabits().refill(handle, results); });
    if (mode == "outlive") GraphHabits().outlive(results);
    if (mode == "crowd")
      withHandle([&](cudnnHandle_t handle) { GraphHabits().crowd(handle, results); });
    if (mode == "exact")
      withHandle([&](cudnnHandle_t handle) { GraphHabits().exact(handle, results); });
    if (mode == "fast")
      withHandle([&](cudnnHandle_t handle) { GraphHabits().fast(handle, results); });
    if (mode == "capture")
      withHandle([&](cudnnHandle_t handle) { GraphHabits().capture(handle, results); });
    if (mode == "twice")
      withHandle([&](cudnnHandle_t handle) { GraphHabits().askTwice(handle, results); });
    if (mode == "shapes") runShapes(results);
    if (mode == "frontend" || mode == "frontends")
      withHandle([&](cudnnHandle_t handle) {
        FrontendLayer().run(
            handle, mode == "frontend" ? GraphUse::kFirst : GraphUse::kAll, results);
      });
    if (mode == "xla") withHandle([&](cudnnHandle_t handle) { runXlaGraphs(handle, results); });
    if (mode == "scaled")
      withHandle([&](cudnnHandle_t handle) { runScaledGraph(handle, results); });
    if (mode == "huge") runHuge(results);
    if (mode == "odd") withHandle([&](cudnnHandle_t handle) { runOddGraphs(handle, results); });
    if (mode == "first often") GraphLives::runFirst(results, 600);
    if (mode == "again") GraphLives::run(results, false);
    if (mode == "again measured") GraphLives::run(results, true);
    if (mode == "ends") GraphThreads::end();
    if (mode == "asks") GraphThreads::executeBeside(false);
    if (mode == "caps") GraphThreads::executeBeside(true);
    if (mode == "threads") findInThreads(results);
    if (mode == "waits") findBesideWaits(results, cudaDeviceSynchronize);
    if (mode == "unseen") findBesideWaits(results, waitInOtherWays);
    if (mode == "turns") findInTurns(results);
    if (mode == "outside") runOutside(results);
    if (mode == "fork") runForked(results);
    if (mode == "forks") GraphForks().run();
    if (mode != "atexit") write(words[2], results);
    std::printf(
        "workspace %zu\ncaptures %lld\n", mostWorkspace.load(), callsOf("cudaStreamBeginCapture"));
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
}
