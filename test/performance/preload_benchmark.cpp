// Host time that libucudnn_preload.so adds to a plain program's calls. Run, on a GPU or under
// misc/with-simulator:
//   LD_PRELOAD=libucudnn_preload.so UCUDNN_DISABLE=1 ucudnn_preload_benchmark       what passes
//   LD_PRELOAD=libucudnn_preload.so UCUDNN_BENCHMARK_SHARE=always UCUDNN_KERNELS=engines
//     ucudnn_preload_benchmark                                                      what is planned
// bare_ns is cuDNN's own function, as dlsym finds it in cuDNN itself, of the same plan; planned_ns
// the function that the loader has bound. execute/I is cuDNN's I-th plan without tensor cores,
// whose engine is named; the report says what runs in its place, which only the row of the same
// engine can be compared with.
// leftAlone/* are calls that are left to cuDNN for a reason that each program may have; others
// depend on the settings: UCUDNN_BENCHMARK_SHARE=0 makes execute/* "not measured yet".
#include <dlfcn.h>

#include <stdexcept>

#include "comparison.hpp"
#include "preload/graph_layer.hpp"
#include "support/past_preload.hpp"

namespace plain {
namespace {

constexpr int kBlocks = 301;
constexpr int kCalls = 50;

#define OWN(function) ownFunction<decltype(&function)>(#function)

/// cuDNN's own, whatever stands in front of it.
template <typename Function>
Function ownFunction(const char* name) {
  static void* const library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  void* const found = library != nullptr ? ucudnn::test::lookUpPastPreload(library, name) : nullptr;
  if (found == nullptr) throw std::runtime_error(std::string("no ") + name);
  return reinterpret_cast<Function>(found);
}

class Handle {
 public:
  Handle() { CHECK(cudnnCreate(&handle_)); }
  ~Handle() { cudnnDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

class Timed : GraphLayer {
 public:
  explicit Timed(const Shape& shape = {}, GraphUse use = GraphUse::kAll)
      : GraphLayer(shape), use_(use) {}

  void execute(benchmark::State& state) {
    executePlan(state, static_cast<std::size_t>(state.range(0)));
  }
  void executeFirst(benchmark::State& state) { executePlan(state, 0); }

  void executePlan(benchmark::State& state, std::size_t index) {
    if (index >= plans_.size()) return state.SkipWithError("there are fewer plans");
    state.SetLabel("eng" + std::to_string(engineOf(plans_[index].plan)));
    compareCalls(state, OWN(cudnnBackendExecute), cudnnBackendExecute, [&](auto function) {
      CHECK(function(handle_.get(), plans_[index].plan.get(), pack_.get()));
    });
  }

  void askWorkspace(benchmark::State& state) {
    compareCalls(
        state, OWN(cudnnBackendGetAttribute), cudnnBackendGetAttribute, [&](auto function) {
          std::int64_t bytes = 0, count = 0;
          CHECK(function(plans_.front().plan.get(),
                         CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                         CUDNN_TYPE_INT64,
                         1,
                         &count,
                         &bytes));
        });
  }

  void setPointers(benchmark::State& state) {
    Backend pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    compareCalls(
        state, OWN(cudnnBackendSetAttribute), cudnnBackendSetAttribute, [&](auto function) {
          CHECK(function(pack.get(),
                         CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                         CUDNN_TYPE_VOID_PTR,
                         static_cast<std::int64_t>(data_.size()),
                         data_.data()));
        });
  }

  void createDescriptor(benchmark::State& state) {
    const auto pass = [](auto create, auto destroy) {
      cudnnBackendDescriptor_t made = nullptr;
      CHECK(create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &made));
      CHECK(destroy(made));
    };
    const auto create = OWN(cudnnBackendCreateDescriptor);
    const auto destroy = OWN(cudnnBackendDestroyDescriptor);
    ucudnn::test::compare(
        state,
        kCalls,
        1,
        [&] { pass(create, destroy); },
        [&] { pass(cudnnBackendCreateDescriptor, cudnnBackendDestroyDescriptor); });
  }

 private:
  static std::int64_t engineOf(const Backend& plan) {
    const Backend configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    const Backend engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    fillFrom(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    fillFrom(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    return static_cast<std::int64_t>(bytesOf(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  }

  template <typename Function, typename Call>
  static void compareCalls(benchmark::State& state, Function bare, Function bound, Call call) {
    ucudnn::test::compare(
        state, kCalls, 1, [&] { call(bare); }, [&] { call(bound); });
  }

  const GraphUse use_;
  const Handle handle_;
  const Backend graph_ = graph(handle_.get(), GraphOperation::kForward);
  const std::vector<Planned> plans_ = plansOf(handle_.get(), graph_, use_);
  const std::vector<void*> data_{x_.get(), w_.get(), y_.get()};
  // Enough for both: cuDNN's own plan needs what its configuration says.
  const Memory space_{std::size_t{256} << 20};
  const Backend pack_ = packOf({kX, kW, kY}, data_, space_.get());
};

template <auto Compare>
void run(benchmark::State& state) {
  (Timed().*Compare)(state);
}

void runLeftAlone(benchmark::State& state, const Shape& shape, GraphUse use) {
  Timed(shape, use).executeFirst(state);
}
Shape ofOneSample() {
  Shape shape;
  shape.batch = 1;
  return shape;
}
Shape unequallyPadded() {
  Shape shape;
  shape.behind = 1;
  return shape;
}
BENCHMARK_CAPTURE(runLeftAlone, one_sample, ofOneSample(), GraphUse::kAll)
    ->Name("leftAlone/one_sample")
    ->UseManualTime()
    ->Iterations(kBlocks);
BENCHMARK_CAPTURE(runLeftAlone, unknown_graph, unequallyPadded(), GraphUse::kAll)
    ->Name("leftAlone/unknown_graph")
    ->UseManualTime()
    ->Iterations(kBlocks);
BENCHMARK_CAPTURE(runLeftAlone, not_asked, Shape(), GraphUse::kUnasked)
    ->Name("leftAlone/not_asked")
    ->UseManualTime()
    ->Iterations(kBlocks);

BENCHMARK(run<&Timed::execute>)
    ->Name("execute")
    ->DenseRange(0, 3)
    ->UseManualTime()
    ->Iterations(kBlocks);
BENCHMARK(run<&Timed::askWorkspace>)->Name("askWorkspace")->UseManualTime()->Iterations(kBlocks);
BENCHMARK(run<&Timed::setPointers>)->Name("setPointers")->UseManualTime()->Iterations(kBlocks);
BENCHMARK(run<&Timed::createDescriptor>)
    ->Name("createDescriptor")
    ->UseManualTime()
    ->Iterations(kBlocks);

}  // namespace
}  // namespace plain

int main(int argc, char** argv) {
  return ucudnn::test::runBenchmarks(argc, argv);
}
