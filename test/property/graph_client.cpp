#include "graph_client.hpp"

#include <algorithm>
#include <limits>
#include <sstream>

#include "../support/simulator.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kMostConfigurations = 64;

template <typename Note>
bool hasNote(const Descriptor& configuration,
             cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type,
             Note wanted) {
  constexpr std::size_t kMostNotes = 32;
  const auto engines =
      configuration.getDescriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  const auto notes = engines.at(0).getAll<Note>(name, type, kMostNotes);
  return std::find(notes.begin(), notes.end(), wanted) != notes.end();
}

Descriptor makePack(const Api& api, const GraphTensors& tensors, void* workspace) {
  const auto ids = tensors.ids();
  const auto pointers = tensors.pointers();
  Descriptor pack(api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
           CUDNN_TYPE_VOID_PTR,
           static_cast<std::int64_t>(pointers.size()),
           pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  return pack.finalize();
}

std::vector<Descriptor> proposed(const Api& api,
                                 const Descriptor& graph,
                                 const std::vector<cudnnBackendHeurMode_t>& modes) {
  std::vector<Descriptor> all;
  for (const cudnnBackendHeurMode_t mode : modes) {
    Descriptor heuristics(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (heuristics.tryFinalize() != CUDNN_STATUS_SUCCESS) continue;
    for (Descriptor& each : heuristics.getDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                      CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                                      kMostConfigurations))
      all.push_back(std::move(each));
  }
  return all;
}

}  // namespace

std::string Habits::text() const {
  static constexpr const char* kWays[] = {"PyTorch", "PyTorch's benchmark", "frontend", "XLA"};
  static constexpr const char* kPasses[] = {"told", "bound", "configured"};
  std::ostringstream text;
  text << kWays[static_cast<int>(way)] << (modes.size() > 1 ? " with fallback" : "");
  if (boundBytes != static_cast<std::size_t>(-1)) text << " bound " << boundBytes;
  if (way == Way::kFrontend) text << " passes " << kPasses[static_cast<int>(passes)];
  if (boundsConfigurations) text << " bounds configurations";
  if (asksAllFirst) text << " asks all";
  if (barsTensorCores) text << " no tensor cores";
  if (barsNondeterministic) text << " deterministic";
  if (barsCompiled) text << " none compiled";
  if (!ownsStream) text << " legacy stream";
  if (allocatesEachTime) text << " allocates each time";
  if (!remakesPacks) text << " keeps its pack";
  text << ' ' << executions << " calls";
  return text.str();
}

GraphClient::GraphClient(const Api& api,
                         cudnnHandle_t handle,
                         cudaStream_t stream,
                         const GraphProblem& problem,
                         const Habits& habits,
                         GraphTensors& tensors)
    : api_(api),
      handle_(handle),
      stream_(stream),
      problem_(problem),
      habits_(habits),
      tensors_(tensors),
      graph_(makeGraph(api, handle, problem)),
      configurations_(proposed(api, graph_, habits.modes)) {
  result_.tried.resize(configurations_.size());
}

bool GraphClient::isBarred(int place) const {
  const Descriptor& configuration = configurations_[static_cast<std::size_t>(place)];
  const auto numerical = [&](cudnnBackendNumericalNote_t note) {
    return hasNote(
        configuration, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, note);
  };
  if (habits_.barsTensorCores && numerical(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return true;
  if (habits_.barsNondeterministic && numerical(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return true;
  return habits_.barsCompiled && hasNote(configuration,
                                         CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                         CUDNN_TYPE_BEHAVIOR_NOTE,
                                         CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
}

Descriptor GraphClient::planOf(const Descriptor& configuration) const {
  Descriptor plan(api_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_);
  return plan;
}

/// Empty: the client doesn't want it, or cuDNN refuses.
std::optional<GraphClient::Built> GraphClient::build(int place) {
  Tried& tried = result_.tried[static_cast<std::size_t>(place)];
  tried.isBarred = isBarred(place);
  if (tried.isBarred) return std::nullopt;
  Descriptor plan = planOf(configurations_[static_cast<std::size_t>(place)]);
  tried.finalized = plan.tryFinalize();
  if (tried.finalized != CUDNN_STATUS_SUCCESS) return std::nullopt;
  return Built{place, std::move(plan)};
}

/// As build, from the numbers of the engine and its knobs.
std::optional<GraphClient::Built> GraphClient::buildByIndex(int place) {
  Tried& tried = result_.tried[static_cast<std::size_t>(place)];
  tried.isBarred = isBarred(place);
  if (tried.isBarred) return std::nullopt;
  const Descriptor& from = configurations_[static_cast<std::size_t>(place)];
  const auto engines =
      from.getDescriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  Descriptor engine(api_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
             CUDNN_TYPE_INT64,
             engines.at(0).number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  tried.finalized = engine.tryFinalize();
  if (tried.finalized != CUDNN_STATUS_SUCCESS) return std::nullopt;
  std::vector<Descriptor> knobs;
  for (const Descriptor& knob : from.getDescriptors(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 32)) {
    const auto types = knob.getAll<cudnnBackendKnobType_t>(
        CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1);
    Descriptor& made = knobs.emplace_back(api_, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    made.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, types.at(0));
    made.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
             CUDNN_TYPE_INT64,
             knob.number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
    made.finalize();
  }
  Descriptor configuration(api_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty()) configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs);
  tried.finalized = configuration.tryFinalize();
  if (tried.finalized != CUDNN_STATUS_SUCCESS) return std::nullopt;
  Descriptor plan = planOf(configuration);
  tried.finalized = plan.tryFinalize();
  if (tried.finalized != CUDNN_STATUS_SUCCESS) return std::nullopt;
  return Built{place, std::move(plan)};
}

std::size_t GraphClient::ask(Built& built) {
  Tried& tried = result_.tried[static_cast<std::size_t>(built.place)];
  built.toldBytes =
      static_cast<std::size_t>(built.plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  if (!tried.toldBytes) {
    tried.toldBytes = built.toldBytes;
    tried.askedBefore = asked_++;
  }
  return built.toldBytes;
}

std::size_t GraphClient::askConfiguration(int place) {
  const auto bytes = static_cast<std::size_t>(
      configurations_[static_cast<std::size_t>(place)].number(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE));
  result_.tried[static_cast<std::size_t>(place)].configurationBytes = bytes;
  return bytes;
}

cudnnStatus_t GraphClient::execute(const Built& built, void* workspace) {
  if (habits_.remakesPacks || !pack_ || packsWorkspace_ != workspace) {
    pack_ = makePack(api_, tensors_, workspace);
    packsWorkspace_ = workspace;
  }
  const cudnnStatus_t status = api_.execute(handle_, built.plan.get(), pack_->get());
  auto& executed = result_.tried[static_cast<std::size_t>(built.place)].executed;
  if (!executed) executed = status;
  return status;
}

/// Runs it once to warm up, and then for its time: the least of so many. False: it fails.
bool GraphClient::timed(Built& built, void* workspace, int samples) {
  built.ms = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= samples; ++i) {
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    const double before = clockMs(stream_);
    if (execute(built, workspace) != CUDNN_STATUS_SUCCESS) return false;
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    if (i > 0) built.ms = std::min(built.ms, clockMs(stream_) - before);
  }
  result_.tried[static_cast<std::size_t>(built.place)].timedMs = built.ms;
  return true;
}

void GraphClient::run(const Built& built) {
  DeviceMemory workspace(result_.passedBytes);
  if (!workspace.isThere()) {
    result_.failure = "its workspace can't be allocated";
    return;
  }
  result_.chosen = built.place;
  for (int i = 0; i < habits_.executions; ++i) {
    if (habits_.allocatesEachTime && i > 0) {
      check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
      workspace = DeviceMemory();
      workspace = DeviceMemory(result_.passedBytes);
      if (!workspace.isThere()) {
        result_.failure = "its workspace can't be allocated a second time";
        return;
      }
    }
    tensors_.restore();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const double before = clockMs(stream_);
    const cudnnStatus_t status = execute(built, workspace.get());
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    result_.callMs.push_back(clockMs(stream_) - before);
    if (habits_.keepsOutputs) result_.outputs.push_back(tensors_.output());
    if (status == CUDNN_STATUS_SUCCESS) continue;
    result_.failure = "call " + std::to_string(i) + " says " + std::to_string(status);
    return;
  }
  result_.output = tensors_.output();
}

ClientResult GraphClient::act() {
  std::optional<Built> chosen;
  switch (habits_.way) {
    case Way::kPyTorch:
      chosen = chooseAsPyTorch();
      break;
    case Way::kPyTorchBenchmark:
      chosen = chooseAsPyTorchBenchmark();
      break;
    case Way::kFrontend:
      chosen = chooseAsFrontend();
      break;
    case Way::kXla:
      chosen = chooseAsXla();
      break;
  }
  if (chosen && result_.failure.empty()) run(*chosen);
  return std::move(result_);
}

ClientResult GraphClient::runConfiguration(int place, int executions) {
  Habits habits = habits_;
  habits.executions = executions;
  const auto need = needOf(place);
  Descriptor plan = planOf(configurations_[static_cast<std::size_t>(place)]);
  if (!need || plan.tryFinalize() != CUDNN_STATUS_SUCCESS) return std::move(result_);
  GraphClient client(api_, handle_, stream_, problem_, habits, tensors_);
  client.result_.passedBytes = *need;
  client.run({place, std::move(plan), *need});
  return std::move(client.result_);
}

std::optional<std::size_t> GraphClient::needOf(int place) const {
  Descriptor plan = planOf(configurations_[static_cast<std::size_t>(place)]);
  if (plan.tryFinalize() != CUDNN_STATUS_SUCCESS) return std::nullopt;
  return static_cast<std::size_t>(plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
}

}  // namespace ucudnn::test
