// The simulated machine: the streams, events, captures and graphs of all its devices, and their
// virtual time.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "simulator/runtime.hpp"
#include "simulator/runtime/handle_table.hpp"
#include "simulator/runtime/ordering.hpp"
#include "simulator/runtime/thread_state.hpp"

namespace ucudnn::simulator {

/// A moment in the virtual life of a stream.
struct Moment {
  Ticks time = 0;
  VectorClock order;

  void join(const Moment& other);
};

/// A node of a graph, in the order of capture.
struct GraphNode {
  Work work;
  std::vector<std::size_t> dependencies;
};
using GraphNodes = std::vector<GraphNode>;

/// An object of the program's that ends with its last reference (cudaUserObjectCreate).
struct UserObject {
  void* pointer;
  cudaHostFn_t destroy;
  std::size_t references;
};
/// References to user objects, and how many to each.
using UserReferences = std::map<cudaUserObject_t, std::size_t>;

struct Graph {
  std::shared_ptr<const GraphNodes> nodes;
  int device;  ///< of the stream that was captured, or the current one when it was created
  std::vector<cudaGraphNode_t> names = {};  ///< of its nodes, once they have been asked for
  UserReferences references = {};
};

/// The object behind a cudaGraphNode_t: one of Graph::names.
struct GraphNodeName {
  cudaGraph_t graph;
};

struct GraphExec {
  std::shared_ptr<const GraphNodes> nodes;
  int device;
  bool uploaded = false;
  Moment finished = {};  ///< the end of its last launch
  UserReferences references = {};
};

/// A capture from cudaStreamBeginCapture to cudaStreamEndCapture.
struct Capture {
  std::uint64_t id;
  StreamId origin;
  cudaStreamCaptureMode mode;
  std::uint64_t thread;
  GraphNodes nodes;
  cudaGraph_t into = nullptr;   ///< the graph that they are added to; null: a new one
  cudaGraph_t graph = nullptr;  ///< the new one; null: nobody has asked for it yet
  AccessLog log;
  bool invalid = false;
  bool ended = false;
};

/// How far a stream has come within a capture; also what an event recorded there stands for.
struct CapturePoint {
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> tips;  ///< the nodes that the next one depends on
  VectorClock order;
};

struct Stream {
  StreamId id;
  int device;
  unsigned int flags;
  int priority;
  bool legacy;
  Moment reached = {};  ///< the end of its last work
  std::optional<CapturePoint> capturing = {};

  bool blocking() const { return !legacy && (flags & cudaStreamNonBlocking) == 0; }
};

struct Event {
  int device;
  unsigned int flags;
  std::optional<Moment> recorded = {};
  std::optional<CapturePoint> captured = {};
};

struct CaptureInfo {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  std::uint64_t id = 0;
  cudaGraph_t graph = nullptr;
};

/// Thread-safe. One lock for each device is held while its works execute, so works execute in the
/// order in which they were enqueued, eagerly; `state_` guards everything else and is never held
/// while a work runs. Order of locks: a device's, `state_`, Memory's, Accounting's.
///
/// Invariants:
/// 1. A stream's clock never goes back; a work starts when its stream, and the host that enqueues
/// it, are there.
/// 2. The legacy stream of a device and its blocking streams wait for each other, as CUDA promises.
/// 3. Nothing that is captured executes or takes time before its graph is launched.
/// 4. Launches of one executable graph never overlap, whatever their streams.
///
/// All functions return what the CUDA function of that name would.
class Machine {
 public:
  static Machine& instance();

  // Devices.
  cudaError_t deviceSynchronize();
  /// Waits as cudaFree does: for all works that are under way on the current device. Captures hold
  /// none, and stay valid.
  void waitForDevice();
  cudaError_t deviceReset();
  cudaError_t enablePeer(int peer);
  cudaError_t disablePeer(int peer);
  bool reachesPeer(int device, int peer);

  // Streams.
  cudaStream_t createStream(unsigned int flags, int priority);
  cudaError_t destroyStream(cudaStream_t stream);
  /// A work may only be put on a stream of the current device; a copy on any.
  enum class From { kCurrentDevice, kAnyDevice };
  cudaError_t enqueue(cudaStream_t stream, Work work, From from);
  cudaError_t synchronizeStream(cudaStream_t stream);
  cudaError_t queryStream(cudaStream_t stream);
  cudaError_t streamId(cudaStream_t handle, unsigned long long* id);
  cudaError_t waitEvent(cudaStream_t stream, cudaEvent_t event);
  /// Calls `read` with the stream; for its properties.
  template <typename Reader>
  cudaError_t inspectStream(cudaStream_t handle, Reader read) {
    const std::lock_guard<std::mutex> lock(state_);
    const Stream* stream = findStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    read(*stream);
    return cudaSuccess;
  }

  // Events.
  cudaEvent_t createEvent(unsigned int flags);
  cudaError_t destroyEvent(cudaEvent_t event);
  cudaError_t recordEvent(cudaEvent_t event, cudaStream_t stream);
  cudaError_t synchronizeEvent(cudaEvent_t event);
  cudaError_t queryEvent(cudaEvent_t event);
  cudaError_t elapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end);

  // Captures and graphs.
  cudaError_t beginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
  cudaError_t endCapture(cudaStream_t stream, cudaGraph_t* graph);
  enum class With { kStatus, kGraph };
  cudaError_t captureInfo(cudaStream_t stream, CaptureInfo* info, With with = With::kStatus);
  /// For calls that CUDA forbids while a capture is under way that they could disturb: invalidates
  /// those captures and returns the error.
  cudaError_t checkUnsafeCall();
  cudaError_t createGraph(cudaGraph_t* graph);
  cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph);
  cudaError_t launch(cudaGraphExec_t exec, cudaStream_t stream);
  cudaError_t destroyGraph(cudaGraph_t graph);
  cudaError_t destroyGraphExec(cudaGraphExec_t exec);
  cudaError_t nodeCount(cudaGraph_t graph, std::size_t* count);
  cudaError_t upload(cudaGraphExec_t exec);

  // Objects of the program's that graphs hold. A graph that is instantiated gives a copy of its
  // references. Those of a graph that is destroyed while it runs go when the host has waited for
  // that. Destructors run in a later call of some thread's.
  cudaUserObject_t createUserObject(UserObject object);
  cudaError_t retain(cudaUserObject_t object, std::size_t count);
  cudaError_t release(cudaUserObject_t object, std::size_t count);
  /// `moves`: the references are the caller's own, and no new ones.
  cudaError_t retainIn(cudaGraph_t graph, cudaUserObject_t object, std::size_t count, bool moves);
  cudaError_t releaseIn(cudaGraph_t graph, cudaUserObject_t object, std::size_t count);
  /// Runs the destructors of all objects without a reference. Costs nothing if there is none.
  void runDestructors();

  // Graphs that are edited.
  using NodeNames = std::vector<cudaGraphNode_t>;
  cudaError_t nodes(cudaGraph_t graph, NodeNames* names);
  cudaError_t dependencies(cudaGraphNode_t node, NodeNames* names);
  cudaError_t dependents(cudaGraphNode_t node, NodeNames* names);
  cudaError_t workOf(cudaGraphNode_t node, Work* work);
  cudaError_t beginCaptureToGraph(cudaStream_t stream,
                                  cudaGraph_t graph,
                                  const NodeNames& dependencies,
                                  cudaStreamCaptureMode mode);
  cudaError_t addDependency(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to);
  cudaError_t destroyNode(cudaGraphNode_t node);

 private:
  struct DeviceState {
    std::mutex execution;
    Stream legacy;
    Moment departed;                         ///< of streams that were destroyed with work under way
    Ticks copied[2] = {0, 0};                ///< the end of each copy engine's last copy
    std::pair<Ticks, Ticks> computed{0, 0};  ///< the begin and the end of the last kernel
  };

  /// A stream with its device's lock and `state_` held; `stream` is null when there is no such
  /// stream.
  struct Turn {
    Turn(Machine& machine, cudaStream_t handle);
    std::unique_lock<std::mutex> execution;
    std::unique_lock<std::mutex> state;
    Stream* stream = nullptr;
  };

  Machine();
  /// Around a fork: a child uses the simulator, though no GPU allows it, so that what it meets of
  /// other libraries' locks can be tested.
  void lockAll();
  void unlockAll();
  StreamId nextStreamId() { return ++lastStreamId_; }

  // All of these need state_.
  Stream* findStream(cudaStream_t handle);
  Stream& perThreadStream();
  DeviceState& device(int number) { return *devices_[static_cast<std::size_t>(number)]; }
  template <typename Visitor>
  void forEachStream(int number, Visitor visit);
  void startWork(Stream& stream);
  void run(Stream& stream, const Work& work);
  void hostWaits(const Moment& moment);
  void forgetDestroyedStreams();
  cudaError_t checkImplicit(const Stream& stream);
  cudaError_t checkUnsafeCallLocked();
  cudaError_t pollMoment(const Moment& moment);
  cudaError_t record(Stream& stream, Work work);
  cudaError_t waitCaptured(Stream& stream, const CapturePoint& point);
  void finishCapture(Capture& capture);
  void nameNodes(cudaGraph_t handle, Graph& graph);
  /// Null: there is no such node.
  Graph* graphOf(cudaGraphNode_t node, std::size_t* index);
  void eraseGraph(cudaGraph_t handle);
  UserReferences copyOf(const UserReferences& references);
  void drop(UserReferences references, const Moment& when = {});

  std::vector<std::unique_ptr<DeviceState>> devices_;
  std::mutex state_;
  HandleTable<cudaStream_t, Stream> streams_;
  std::map<std::pair<std::uint64_t, int>, Stream> perThread_;  ///< by thread and device
  HandleTable<cudaEvent_t, Event> events_;
  HandleTable<cudaGraph_t, Graph> graphs_;
  HandleTable<cudaGraphNode_t, GraphNodeName> graphNodes_;
  HandleTable<cudaGraphExec_t, GraphExec> graphExecs_;
  HandleTable<cudaUserObject_t, UserObject> userObjects_;
  std::vector<std::pair<Moment, UserReferences>> dropped_;  ///< which go at that moment
  std::atomic<bool> anyDropped_{false};
  std::vector<std::shared_ptr<Capture>> captures_;
  std::set<std::pair<int, int>> peers_;
  VectorClock hostOrder_;  ///< what some thread of the host has waited for
  AccessLog log_;
  std::vector<StreamId> destroyed_;  ///< whose numbers are still in clocks
  StreamId lastStreamId_ = 0;
  std::uint64_t lastCaptureId_ = 0;
};

template <typename Visitor>
void Machine::forEachStream(int number, Visitor visit) {
  visit(device(number).legacy);
  for (auto& [key, stream] : perThread_) {
    if (stream.device == number) visit(stream);
  }
  streams_.forEach([&](Stream& stream) {
    if (stream.device == number) visit(stream);
  });
}

/// Runs a work's arithmetic, in which CUDA calls are refused.
void execute(const Work& work);

}  // namespace ucudnn::simulator
