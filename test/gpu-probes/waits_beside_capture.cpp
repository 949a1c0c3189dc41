// Which calls fail while another thread captures a stream, and which void the capture: asks a GPU.
// Knows nothing of μ-cuDNN. misc/docs/ARCHITECTURE.md ("Captures") and the simulator's captures
// follow its output.
//
//   build/bin/probe_waits_beside_capture, or where nothing of ours is built:
//   g++ -std=c++17 -I$CUDA/include waits_beside_capture.cpp -L$CUDA/lib -l:libcudart.so.13 -ldl
//   -lpthread
//
// For each mode of the capture (relaxed, thread-local, global), on a stream that waits for no
// other, a row for each call. "elsewhere": the call is made by another thread, in mode global, as a
// thread is that never heard of captures; "relaxed": by another thread in mode relaxed; "here": by
// the capturing thread, in mode relaxed. Each of the three says what the call returned and, after
// the slash, what the capture's end did. A trailing "!" marks what fails; -1: there is no such
// function here; 600: not ready.
//
// Then: when the destructor of a user object runs that the graph under capture holds.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr int kManyFills = 2000;  // 0.2 s of an H200

void* driverFunction(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  return driver != nullptr ? dlsym(driver, name) : nullptr;
}

/// By a function of the driver's, whose errors are numbers like the runtime's. -1: there is none.
template <typename... Arguments>
int driver(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(driverFunction(name));
  return function != nullptr ? function(arguments...) : -1;
}

int synchronizeByHandle() {
  void* const runtime = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
  const auto function = reinterpret_cast<int (*)()>(
      runtime != nullptr ? dlsym(runtime, "cudaDeviceSynchronize") : nullptr);
  return function != nullptr ? function() : -1;
}

struct Things {
  cudaStream_t captured = nullptr, blocking = nullptr, apart = nullptr;
  cudaEvent_t event = nullptr;  // recorded on `apart`, before
  char *memory = nullptr, *spare[64] = {};
  char host[64] = {};
  int used = 0;  // of spare
  char* takeSpare() { return spare[used++]; }
};

struct Call {
  const char* name;
  std::function<int(Things&)> make;
};

int userObject(Things& things) {
  cudaUserObject_t object = nullptr;
  cudaGraph_t graph = nullptr;
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  if (const int error = cudaStreamGetCaptureInfo(things.captured, &status, &id, &graph))
    return error;
  if (const int error = cudaUserObjectCreate(
          &object, &things, [](void*) {}, 1, cudaUserObjectNoDestructorSync))
    return error;
  return cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
}

const std::vector<Call> kCalls = {
    {"nothing", [](Things&) { return 0; }},
    {"cudaDeviceSynchronize", [](Things&) { return int(cudaDeviceSynchronize()); }},
    {"cudaDeviceSynchronize by dlsym", [](Things&) { return synchronizeByHandle(); }},
    {"cuCtxSynchronize", [](Things&) { return driver("cuCtxSynchronize"); }},
    {"cudaStreamSynchronize(0)", [](Things&) { return int(cudaStreamSynchronize(nullptr)); }},
    {"cuStreamSynchronize(0)", [](Things&) { return driver("cuStreamSynchronize", nullptr); }},
    {"cudaStreamSynchronize(perThread)",
     [](Things&) { return int(cudaStreamSynchronize(cudaStreamPerThread)); }},
    {"cudaStreamSynchronize(blocking)",
     [](Things& t) { return int(cudaStreamSynchronize(t.blocking)); }},
    {"cudaStreamSynchronize(apart)", [](Things& t) { return int(cudaStreamSynchronize(t.apart)); }},
    {"cudaStreamQuery(0)", [](Things&) { return int(cudaStreamQuery(nullptr)); }},
    {"cudaStreamQuery(apart)", [](Things& t) { return int(cudaStreamQuery(t.apart)); }},
    {"cudaEventSynchronize", [](Things& t) { return int(cudaEventSynchronize(t.event)); }},
    {"cudaEventQuery", [](Things& t) { return int(cudaEventQuery(t.event)); }},
    {"cudaMalloc",
     [](Things&) {
       void* memory = nullptr;
       return int(cudaMalloc(&memory, 1 << 20));  // leaks
     }},
    {"cudaFree", [](Things& t) { return int(cudaFree(t.takeSpare())); }},
    {"cudaFree(0)", [](Things&) { return int(cudaFree(nullptr)); }},
    {"cudaMemcpy to host",
     [](Things& t) { return int(cudaMemcpy(t.host, t.memory, 64, cudaMemcpyDeviceToHost)); }},
    {"cudaMemcpy to device",
     [](Things& t) { return int(cudaMemcpy(t.memory, t.host, 64, cudaMemcpyHostToDevice)); }},
    {"cudaMemset", [](Things& t) { return int(cudaMemset(t.memory, 0, 64)); }},
    {"cudaMemsetAsync(0)",
     [](Things& t) { return int(cudaMemsetAsync(t.memory, 0, 64, nullptr)); }},
    {"cudaMallocHost",
     [](Things&) {
       void* memory = nullptr;
       return int(cudaMallocHost(&memory, 4096));
     }},
    {"cudaMallocAsync(apart)",
     [](Things& t) {
       void* memory = nullptr;
       return int(cudaMallocAsync(&memory, 4096, t.apart));
     }},
    {"cudaMemGetInfo",
     [](Things&) {
       std::size_t free = 0, total = 0;
       return int(cudaMemGetInfo(&free, &total));
     }},
    {"cudaUserObjectCreate, -Retain on the graph", userObject},
};

Things make() {
  Things t;
  cudaStreamCreateWithFlags(&t.captured, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&t.apart, cudaStreamNonBlocking);
  cudaStreamCreate(&t.blocking);
  cudaEventCreate(&t.event);
  void* memory = nullptr;
  cudaMalloc(&memory, kBytes);
  t.memory = static_cast<char*>(memory);
  for (char*& spare : t.spare) {
    cudaMalloc(&memory, 4096);
    spare = static_cast<char*>(memory);
  }
  cudaMemsetAsync(t.memory, 0, 64, t.apart);
  cudaEventRecord(t.event, t.apart);
  cudaDeviceSynchronize();
  return t;
}

enum class Who { kElsewhere, kElsewhereRelaxed, kHere };

std::string attempt(Things& t, const Call& call, cudaStreamCaptureMode mode, Who who) {
  if (cudaStreamBeginCapture(t.captured, mode) != cudaSuccess) return "no capture !";
  cudaMemsetAsync(t.memory + 4096, 0, 64, t.captured);
  int result = 0;
  const auto make = [&](bool relaxed) {
    cudaStreamCaptureMode own = cudaStreamCaptureModeRelaxed;
    if (relaxed) cudaThreadExchangeStreamCaptureMode(&own);
    result = call.make(t);
    cudaGetLastError();
    if (relaxed) cudaThreadExchangeStreamCaptureMode(&own);
  };
  if (who == Who::kHere)
    make(true);
  else
    std::thread([&] { make(who == Who::kElsewhereRelaxed); }).join();
  cudaMemsetAsync(t.memory + 8192, 0, 64, t.captured);
  cudaGraph_t graph = nullptr;
  const int end = cudaStreamEndCapture(t.captured, &graph);
  cudaGetLastError();
  if (graph != nullptr) cudaGraphDestroy(graph);
  const bool fails = (result > 0 && result != cudaErrorNotReady) || end != 0;
  return std::to_string(result) + "/" + std::to_string(end) + (fails ? " !" : "");
}

/// A graph of some fills, which holds an object that counts its end.
cudaGraph_t captureWithObject(Things& t, std::atomic<int>* ended, int fills, bool isVoid) {
  cudaUserObject_t object = nullptr;
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr, captured = nullptr;
  cudaStreamBeginCapture(t.captured, cudaStreamCaptureModeRelaxed);
  for (int i = 0; i < fills; ++i) cudaMemsetAsync(t.memory, 0, kBytes, t.captured);
  cudaStreamGetCaptureInfo(t.captured, &status, nullptr, &graph);
  const auto end = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
  cudaUserObjectCreate(&object, ended, end, 1, cudaUserObjectNoDestructorSync);
  cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
  if (isVoid) cudaDeviceSynchronize();
  cudaStreamEndCapture(t.captured, &captured);
  cudaGetLastError();
  return captured;
}

/// It may run a while later, on a thread of CUDA's.
int settled(const std::atomic<int>& ended) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  int device = 0;
  cudaGetDevice(&device);  // the simulator's run in a call
  return ended;
}

void probeUserObjects(Things& t) {
  cudaDeviceSynchronize();
  std::printf("\nends of a user object that the graph under capture holds (expected)\n");
  std::atomic<int> ended{0};
  cudaGraphExec_t exec = nullptr;
  cudaGraph_t graph = captureWithObject(t, &ended, 1, false);
  cudaGraphInstantiateWithFlags(&exec, graph, 0);
  cudaGraphDestroy(graph);
  std::printf("graph destroyed, not its executable: %d (0)\n", settled(ended));
  cudaGraphLaunch(exec, t.apart);
  cudaStreamSynchronize(t.apart);
  cudaGraphExecDestroy(exec);
  std::printf("executable destroyed: %d (1)\n", settled(ended));

  ended = 0;
  graph = captureWithObject(t, &ended, kManyFills, false);
  cudaGraphInstantiateWithFlags(&exec, graph, 0);
  cudaGraphDestroy(graph);
  cudaGraphLaunch(exec, t.apart);
  cudaGraphExecDestroy(exec);
  const int during = ended;
  const bool isRunning = cudaStreamQuery(t.apart) == cudaErrorNotReady;
  std::printf(
      "destroyed while it %s: %d (0)", isRunning ? "runs" : "ran, too short to tell", during);
  cudaStreamSynchronize(t.apart);
  std::printf(", afterwards: %d (1)\n", settled(ended));

  ended = 0;
  captureWithObject(t, &ended, 1, true);
  std::printf("void capture: %d (1)\n", settled(ended));

  ended = 0;
  graph = captureWithObject(t, &ended, 1, false);
  cudaGraph_t parent = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphCreate(&parent, 0);
  cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, graph);
  cudaGraphDestroy(graph);
  cudaGraphInstantiateWithFlags(&exec, parent, 0);
  cudaGraphDestroy(parent);
  std::printf("child graph, parent's executable lives: %d (0)", settled(ended));
  cudaGraphExecDestroy(exec);
  std::printf(", destroyed: %d (1)\n", settled(ended));
}

}  // namespace

int main() {
  int device = 0, driverVersion = 0, runtimeVersion = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    std::printf("no device\n");
    return 1;
  }
  cudaDriverGetVersion(&driverVersion);
  cudaRuntimeGetVersion(&runtimeVersion);
  std::printf("%s, driver %d, runtime %d\n", properties.name, driverVersion, runtimeVersion);
  const std::pair<const char*, cudaStreamCaptureMode> modes[] = {
      {"relaxed", cudaStreamCaptureModeRelaxed},
      {"thread-local", cudaStreamCaptureModeThreadLocal},
      {"global", cudaStreamCaptureModeGlobal}};
  Things things = make();
  for (const auto& [name, mode] : modes) {
    std::printf("\n%-42s %-14s %-14s %-14s\n", name, "elsewhere", "relaxed", "here");
    for (const Call& call : kCalls) {
      std::printf("%-42s", call.name);
      for (const Who who : {Who::kElsewhere, Who::kElsewhereRelaxed, Who::kHere})
        std::printf(" %-14s", attempt(things, call, mode, who).c_str());
      std::printf("\n");
    }
  }
  probeUserObjects(things);
  return 0;
}
