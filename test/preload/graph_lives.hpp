// Plans of the graph API that run again and again: on one handle, on another, behind a changed cap,
// and where a former plan was.
#pragma once

#include <cmath>

#include "graph_threads.hpp"

namespace plain {

class GraphLives : GraphLayer {
 public:
  using GraphLayer::GraphLayer;

  /// Calls with one handle; with another or of other plans.
  static constexpr int kCalls = 100, kOthers = 32;

  /// Prints how many calls were left to cuDNN, and how many were planned. `isMeasured`: after half
  /// of the calls.
  static void run(std::vector<float>& results, bool isMeasured) {
    const Statistics before = statistics();
    withHandle([&](cudnnHandle_t handle) {
      GraphLives(small(kFilters)).use(handle, isMeasured, results);
    });
    const Statistics after = statistics();
    std::printf(
        "left %lld\nplanned %lld\n", after.left - before.left, after.planned() - before.planned());
  }

  /// The first engine, on tensor cores, again and again.
  static void runFirst(std::vector<float>& results, int calls) {
    Shape shape;
    shape.batch = 64, shape.channels = 64, shape.filters = 32;
    shape.image = {14, 14}, shape.filter = 3;
    withHandle([&](cudnnHandle_t handle) {
      GraphLives layer(shape);
      layer.forbidsTf32 = false;
      const Backend graph = layer.graph(handle, GraphOperation::kForward);
      layer.execute(handle, layer.plansOf(handle, graph, GraphUse::kFirst).front(), calls, results);
    });
  }

 private:
  struct Statistics {
    long long split = 0, undivided = 0, left = 0;
    long long planned() const { return split + undivided; }
  };
  /// Zeros where there is no μ-cuDNN.
  static Statistics statistics() {
    Statistics all;
    void* const library = dlopen(UCUDNN_SONAME, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return all;
    const auto get = reinterpret_cast<cudnnStatus_t (*)(const char*, double*)>(
        dlsym(library, "ucudnnGetStatistic"));
    for (const auto& [name, number] : {std::pair("splitCalls", &all.split),
                                       {"undividedCalls", &all.undivided},
                                       {"bypassedCalls", &all.left}}) {
      double value = 0;
      CHECK(get(name, &value));
      *number = static_cast<long long>(value);
    }
    return all;
  }

  template <typename Use>
  static void withHandle(Use use) {
    cudnnHandle_t handle = nullptr;
    CHECK(cudnnCreate(&handle));
    use(handle);
    CHECK(cudnnDestroy(handle));
  }

  /// Nothing happens where there is no μ-cuDNN.
  static void measureAlways(cudnnHandle_t handle) {
    if (void* const library = dlopen(UCUDNN_SONAME, RTLD_LAZY | RTLD_NOLOAD))
      CHECK(reinterpret_cast<cudnnStatus_t (*)(cudnnHandle_t, double)>(
          dlsym(library, "ucudnnSetBenchmarkShare"))(handle, HUGE_VAL));
  }

  static Shape small(std::int64_t filters) {
    Shape shape;
    shape.channels = 48;
    shape.filters = filters;
    return shape;
  }

  void use(cudnnHandle_t handle, bool isMeasured, std::vector<float>& results) {
    {
      const Planned slow = slowest(handle);
      execute(handle, slow, kCalls / 2, results);
      if (isMeasured) measureAlways(handle);
      execute(handle, slow, kCalls / 2, results);
      withHandle([&](cudnnHandle_t other) { execute(other, slow, kOthers / 2, results); });
      CHECK(GraphThreads::limit()(std::size_t{1} << 30));
      execute(handle, slow, kOthers / 4, results);
    }
    // Other problems, perhaps at the same address.
    for (int i = 0; i < kOthers / 4; ++i) {
      GraphLives other(small(2 + i % 4));
      other.execute(handle, other.slowest(handle), 1, results);
    }
  }

  /// The last that cuDNN names; no other is asked about.
  Planned slowest(cudnnHandle_t handle) const {
    std::vector<Backend> all = configurations(graph(handle, GraphOperation::kForward));
    for (; !all.empty(); all.pop_back()) {
      if (hasNote(all.back(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) continue;
      Backend plan = planOf(handle, all.back());
      if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) continue;
      const std::size_t bytes = bytesOf(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      return {std::move(plan), bytes};
    }
    throw std::runtime_error("no plan");
  }

  /// The results are the last call's.
  void execute(cudnnHandle_t handle,
               const Planned& planned,
               int calls,
               std::vector<float>& results) {
    const Memory output(yCount_ * sizeof(float)), space(planned.bytes);
    const Backend pack = packOf({kX, kW, kY}, {x_.get(), w_.get(), output.get()}, space.get());
    for (int i = 0; i < calls; ++i) {
      CHECK(cudaMemset(output.get(), 0xFF, yCount_ * sizeof(float)));
      CHECK(cudnnBackendExecute(handle, planned.plan.get(), pack.get()));
      CHECK(cudaDeviceSynchronize());
    }
    read(output, yCount_, results);
  }
};

}  // namespace plain
