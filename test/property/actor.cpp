#include "actor.hpp"

#include <stdexcept>

namespace ucudnn::test {
namespace {

/// The client's own allocations while captures are under way, as frameworks make them.
class RelaxedCaptureMode {
 public:
  RelaxedCaptureMode() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCaptureMode() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

Granted::Granted(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const RelaxedCaptureMode relaxed;
  if (cudaMalloc(&memory_, bytes) != cudaSuccess) {
    cudaGetLastError();  // short memory is part of the test
    memory_ = nullptr;
  }
}

Granted::~Granted() {
  const RelaxedCaptureMode relaxed;
  cudaFree(memory_);
}

void Actor::fail(const Site& site, const std::string& what) {
  report_.fail(site.text(), what);
}

void Actor::trace(const Site& site, const std::string& step) {
  report_.trace(step + ": " + site.text());
}

void Actor::enter() {
  if (cudaSetDevice(part_.runner->device) != cudaSuccess) throw std::runtime_error("cudaSetDevice");
  for (ClientHandle* handle : {part_.asker, part_.runner})
    if (cudnnSetStream(handle->handle, part_.stream) != CUDNN_STATUS_SUCCESS)
      throw std::runtime_error("cudnnSetStream");
}

void Actor::prepare() {
  if (part_.captures) return;
  enter();
  for (Site* site : part_.sites) {
    prepared_[site] = choose(*site);
    if (random_.chance(0.7)) call(*site, prepared_[site]);
  }
  called_.clear();
}

void Actor::act() {
  enter();
  if (part_.captures) return capture();
  for (Site* site : part_.sites) {
    const auto prepared = prepared_.find(site);
    call(*site, prepared != prepared_.end() ? prepared->second : choose(*site));
  }
  if (part_.ownsStream && cudaStreamDestroy(part_.stream) != cudaSuccess)
    report_.fail("", "a stream can't be destroyed");
}

void Actor::capture() {
  const cudaError_t begun = cudaStreamBeginCapture(part_.stream, *part_.captures);
  if (begun != cudaSuccess)
    return report_.fail("", std::string("begin capture: ") + cudaGetErrorString(begun));
  report_.trace("capture, mode " + std::to_string(*part_.captures));
  for (Site* site : part_.sites) {
    const Choice choice = choose(*site);
    if (isVoided(*site, "asking")) break;
    call(*site, choice);
    if (isVoided(*site, "a call")) break;
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(part_.stream, &graph);
  if (ended != cudaSuccess) {
    report_.fail("", std::string("a capture can't be ended: ") + cudaGetErrorString(ended));
    called_.clear();
    return;
  }
  // The graph's launches are what is looked at.
  graph_.sites = std::move(called_);
  called_.clear();
  graph_.device = part_.runner->device;
  graph_.memory = std::move(memory_);
  const RelaxedCaptureMode relaxed;  // another thread may still capture
  if (!graph_.sites.empty()) {
    const cudaError_t made = cudaGraphInstantiate(&graph_.exec, graph, 0);
    // Where memory is short there may be none for the graph either.
    const bool outOfMemory = made == cudaErrorMemoryAllocation && scenario_.limitsMemory;
    if (made != cudaSuccess && !outOfMemory) report_.fail("", "a graph can't be instantiated");
  }
  cudaGraphDestroy(graph);
}

/// Says what voided the capture, if it is.
bool Actor::isVoided(const Site& site, const std::string& by) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(part_.stream, &status) == cudaSuccess &&
      status == cudaStreamCaptureStatusActive)
    return false;
  fail(site, by + " voided a capture of mode " + std::to_string(*part_.captures));
  return true;
}

/// Whether the library's error would be one that plain cuDNN does not give.
bool Actor::mustRun(const Site& site, const Choice& choice, const Workspace& granted) const {
  const Site::Algorithm& plain = site.algorithms()[static_cast<std::size_t>(choice.algorithm)];
  if (plain.status != CUDNN_STATUS_SUCCESS) return false;
  if (choice.followed || granted.bytes >= plain.bytes) return true;
  if (!site.mayBePlanned()) return false;  // a batch of one is cuDNN's own, its errors too
  const bool deterministic = scenario_.deterministic ||
                             (plain.deterministic && (site.operation() == UCUDNN_BACKWARD_DATA ||
                                                      site.operation() == UCUDNN_BACKWARD_FILTER));
  return site.runsWithin(granted.bytes, deterministic);
}

void Actor::call(Site& site, const Choice& choice) {
  auto memory = std::make_unique<Granted>(choice.nullMemory ? 0 : choice.bytes);
  Choice made = choice;
  made.followed = choice.followed && memory->isWhole() && !choice.nullMemory;
  Workspace workspace = memory->workspace();
  memory_.push_back(std::move(memory));
  const std::size_t usable = workspace.bytes;
  if (choice.nullMemory) workspace.bytes = choice.bytes;
  trace(site,
        "call algorithm " + std::to_string(made.algorithm) + " in " +
            std::to_string(workspace.bytes) + " bytes" +
            (workspace.memory == nullptr ? " at null" : "") + (made.followed ? ", as told" : "") +
            (part_.runner != part_.asker ? ", on another handle" : ""));
  const cudnnStatus_t status = site.run(part_.runner->handle, made.algorithm, workspace);
  if (status == CUDNN_STATUS_SUCCESS) {
    called_.push_back(&site);
  } else if (part_.captures && isVoided(site, "a call")) {
    return;
  } else if (mustRun(site, made, {workspace.memory, usable})) {
    fail(site,
         std::string(made.followed ? "an answer that was followed" : "a call") + " failed with " +
             cudnnGetErrorString(status) + ", algorithm " + std::to_string(made.algorithm) +
             " in " + std::to_string(usable) + " bytes");
  }
}

}  // namespace ucudnn::test
