// Habits that some programs have with the graph API, and most don't.
#pragma once

#include <dlfcn.h>

#include "graph_layer.hpp"

namespace plain {

class GraphHabits : GraphLayer {
 public:
  using GraphLayer::GraphLayer;

  /// All engines that compute a shape, the first time in two calls, then in a captured one.
  void everyEngine(cudnnHandle_t handle, std::vector<float>& results) {
    for (const auto operation : {GraphOperation::kForward,
                                 GraphOperation::kBackwardData,
                                 GraphOperation::kBackwardFilter,
                                 GraphOperation::kFused})
      for (const Backend& configuration : configurations(graph(handle, operation))) {
        const Backend plan = planOf(handle, configuration);
        if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) continue;
        for (int i = 0; i < 2; ++i) execute(handle, plan, 4, results);
        whileCapturing(handle, [&] { execute(handle, plan, 4, results); });
      }
  }

  /// Reads a plan's configuration into a descriptor that has held another graph's, and makes a plan
  /// of it again.
  void refill(cudnnHandle_t handle, std::vector<float>& results) {
    const Backend other = graph(handle, GraphOperation::kForward);
    const std::vector<Backend> reused = configurations(other);
    const Backend wanted = graph(handle, GraphOperation::kFused);
    const Backend first = planOf(handle, configurations(wanted).front()).finalize();
    fillFrom(first, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, reused.front());
    const Backend again = planOf(handle, reused.front()).finalize();
    execute(handle, again, 4, results);
  }

  /// Destroys the handle of a plan before it asks for the workspace.
  void outlive(std::vector<float>& results) {
    cudnnHandle_t handle = nullptr;
    CHECK(cudnnCreate(&handle));
    const Backend plan =
        planOf(handle, configurations(graph(handle, GraphOperation::kForward)).front()).finalize();
    CHECK(cudnnDestroy(handle));
    const std::size_t bytes = bytesOf(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    CHECK(cudnnCreate(&handle));
    execute(handle, plan, 4, results, bytes);
    CHECK(cudnnDestroy(handle));
  }

  /// Brings more tensors than the graph has.
  void crowd(cudnnHandle_t handle, std::vector<float>& results) {
    const Backend plan =
        planOf(handle, configurations(graph(handle, GraphOperation::kForward)).front()).finalize();
    execute(handle, plan, 40, results);
  }

  static bool needsNoWorkspace(cudnnHandle_t handle, const Backend& configuration) {
    const std::size_t bytes = configurationsTellWorkspace()
                                  ? bytesOf(configuration, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE)
                                  : bytesOf(planOf(handle, configuration).finalize(),
                                            CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    return bytes == 0;
  }

  /// Filter gradients by each deterministic engine that needs no workspace.
  void exact(cudnnHandle_t handle, std::vector<float>& results) {
    const Backend built = graph(handle, GraphOperation::kBackwardFilter);
    const auto engines =
        static_cast<std::int64_t>(bytesOf(built, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT));
    for (std::int64_t i = 0; i < engines; ++i) {
      Backend engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR),
          configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, built);
      engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, i);
      if (cudnnBackendFinalize(engine.get()) != CUDNN_STATUS_SUCCESS) continue;
      configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
      if (cudnnBackendFinalize(configuration.get()) == CUDNN_STATUS_SUCCESS &&
          needsNoWorkspace(handle, configuration) &&
          !hasNote(configuration, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC))
        execute(handle, planOf(handle, configuration).finalize(), 4, results);
    }
  }

  /// Filter gradients by each engine that has tensor cores, as a program that allows TF32.
  void fast(cudnnHandle_t handle, std::vector<float>& results) {
    for (const Backend& configuration :
         configurations(graph(handle, GraphOperation::kBackwardFilter)))
      if (hasNote(configuration, CUDNN_NUMERICAL_NOTE_TENSOR_CORE))
        execute(handle, planOf(handle, configuration).finalize(), 4, results);
  }

  /// The same, where the first thing that the program does is to capture them.
  void capture(cudnnHandle_t handle, std::vector<float>& results) {
    whileCapturing(handle, [&] { fast(handle, results); });
  }

  /// Asks each of them for its workspace before and after a cap is raised, as misc/python does.
  void askTwice(cudnnHandle_t handle, std::vector<float>& results) {
    std::vector<std::pair<Backend, std::size_t>> plans;
    for (const Backend& configuration :
         configurations(graph(handle, GraphOperation::kBackwardFilter))) {
      Backend plan = planOf(handle, configuration).finalize();
      const std::size_t bytes = bytesOf(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      plans.emplace_back(std::move(plan), bytes);
    }
    if (void* const library = dlopen(UCUDNN_SONAME, RTLD_LAZY | RTLD_NOLOAD)) {
      const auto limit =
          reinterpret_cast<int (*)(std::size_t)>(dlsym(library, "ucudnnSetProcessWorkspaceLimit"));
      CHECK(limit(std::size_t{64} << 20));
    }
    execute(handle, plans.front().first, 4, results, plans.front().second);  // the cap has come
    for (const auto& [plan, bytes] : plans) {
      check(bytesOf(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) == bytes ? 0 : 1,
            "another answer");
      execute(handle, plan, 4, results, bytes);
    }
  }

 private:
  template <typename Use>
  void whileCapturing(cudnnHandle_t handle, Use use) {
    CHECK(cudaStreamCreateWithFlags(&captured_, cudaStreamNonBlocking));
    CHECK(cudnnSetStream(handle, captured_));
    use();
    CHECK(cudnnSetStream(handle, nullptr));
    CHECK(cudaStreamDestroy(std::exchange(captured_, nullptr)));
  }

  void execute(cudnnHandle_t handle,
               const Backend& plan,
               std::size_t tensors,
               std::vector<float>& results) {
    execute(
        handle, plan, tensors, results, bytesOf(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  }

  /// Whichever is the output: all are read.
  void execute(cudnnHandle_t handle,
               const Backend& plan,
               std::size_t tensors,
               std::vector<float>& results,
               std::size_t bytes) {
    const Memory x(xCount_ * sizeof(float)), w(wCount_ * sizeof(float));
    const Memory y(yCount_ * sizeof(float)), space(bytes);
    fill(x, xCount_, 1);
    fill(w, wCount_, 2);
    fill(y, yCount_, 3);
    std::vector<void*> data = {x.get(), w.get(), y.get(), bias_.get()};
    std::vector<std::int64_t> ids = {kX, kW, kY, kBias};
    while (ids.size() < tensors) {
      ids.push_back(1000 + static_cast<std::int64_t>(ids.size()));
      data.push_back(x.get());
    }
    const Backend pack = packOf(ids, data, space.get());
    if (captured_ != nullptr)
      CHECK(cudaStreamBeginCapture(captured_, cudaStreamCaptureModeRelaxed));
    CHECK(cudnnBackendExecute(handle, plan.get(), pack.get()));
    if (captured_ != nullptr) launch();
    CHECK(cudaDeviceSynchronize());
    read(x, xCount_, results);
    read(w, wCount_, results);
    read(y, yCount_, results);
  }

  /// Launches the captured work.
  void launch() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    CHECK(cudaStreamEndCapture(captured_, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, captured_));
    CHECK(cudaStreamSynchronize(captured_));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
  }

  cudaStream_t captured_ = nullptr;  ///< null: calls are not captured
};

}  // namespace plain
