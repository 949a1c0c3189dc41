// One convolution of a plain cuDNN program that uses the graph API, as PyTorch and cudnn-frontend
// do: plans of the engines that cuDNN's heuristics name, a variant pack for each call.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <utility>

#include "backend.hpp"
#include "graph_shape.hpp"

namespace plain {

/// The use of an operation's plans.
enum class GraphUse {
  kFirst,    ///< the first one runs
  kAll,      ///< all run, as a program that tunes itself times them
  kUnasked,  ///< the first one runs, in workspace that it was not asked for
  kTwins,    ///< a second one like the first runs in what the first was asked for
};

/// The operation on x, w and y, in this order; it says which of them is the output.
enum class GraphOperation {
  kForward,
  kBackwardData,
  kBackwardFilter,
  kFused,  ///< the first, and a bias and RELU behind it
};

class GraphLayer {
 public:
  virtual ~GraphLayer() = default;
  explicit GraphLayer(Shape shape = {}) : shape_(std::move(shape)) {
    fill(x_, xCount_, 1);
    fill(w_, wCount_, 2);
    fill(y_, yCount_, 3);
    fill(bias_, Shape::count(shape_.bias()), 4);
  }

  Relu relu;        ///< of the fused one
  float scale = 1;  ///< of what its convolution gives
  bool forbidsTf32 = true;

  void runFused(cudnnHandle_t handle, GraphUse use, std::vector<float>& results) {
    runOperation(handle, GraphOperation::kFused, use, y_, yCount_, results);
  }
  void run(cudnnHandle_t handle, GraphUse use, std::vector<float>& results) {
    runOperation(handle, GraphOperation::kForward, use, y_, yCount_, results);
    runOperation(handle, GraphOperation::kBackwardData, use, x_, xCount_, results);
    runOperation(handle, GraphOperation::kBackwardFilter, use, w_, wCount_, results);
    runOperation(handle, GraphOperation::kFused, use, y_, yCount_, results);
  }

 protected:
  static constexpr std::int64_t kX = 11, kW = 22, kY = 33, kBias = 44, kVirtual = 55;

  static Backend tensor(std::int64_t id, const Shape::Sizes& sizes) {
    return tensor(id, sizes, Shape::strides(sizes));
  }
  static Backend tensor(std::int64_t id, const Shape::Sizes& sizes, const Shape::Sizes& strides) {
    const bool isVirtual = id >= kVirtual;
    Backend made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
    made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, isVirtual);
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
    made.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
    return made.finalize();
  }

  virtual Shape::Sizes xStrides() const { return Shape::strides(shape_.x()); }

  Backend convolution() const {
    Backend made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    made.set(
        CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
             CUDNN_TYPE_INT64,
             static_cast<std::int64_t>(shape_.image.size()));
    made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape_.ofEach(shape_.filter / 2));
    made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
             shape_.ofEach(shape_.filter / 2 + shape_.behind));
    made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape_.ofEach(1));
    made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape_.ofEach(1));
    return made.finalize();
  }

  struct Names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
  };
  static Names namesOf(GraphOperation operation) {
    switch (operation) {
      case GraphOperation::kForward:
      case GraphOperation::kFused:
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
      case GraphOperation::kBackwardData:
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
      default:
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    }
  }

  Backend graph(cudnnHandle_t handle, GraphOperation operation) const {
    const Names names = namesOf(operation);
    const bool isFused = operation == GraphOperation::kFused;
    const auto y = [&](std::int64_t id) { return tensor(id, shape_.y()); };
    std::vector<Backend> made;
    Backend& first = made.emplace_back(names.type);
    first.set(names.convolution, convolution());
    first.set(names.x, tensor(kX, shape_.x(), xStrides()));
    first.set(names.w, tensor(kW, shape_.w()));
    first.set(names.y, y(isFused ? kVirtual : kY));
    first.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
    first.set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
    first.finalize();
    if (isFused) {
      const Backend bias = tensor(kBias, shape_.bias());
      made.push_back(pointwise(CUDNN_POINTWISE_ADD, y(kVirtual), &bias, y(kVirtual + 1)));
      made.push_back(pointwise(relu.isElu ? CUDNN_POINTWISE_ELU_FWD : CUDNN_POINTWISE_RELU_FWD,
                               y(kVirtual + 1),
                               nullptr,
                               y(kY)));
    }
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const Backend& each : made) operations.push_back(each.get());
    Backend graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS,
              CUDNN_TYPE_BACKEND_DESCRIPTOR,
              static_cast<std::int64_t>(operations.size()),
              operations.data());
    return graph.finalize();
  }

  void setRelu(Backend& what) const {
    what.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
    what.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, 0.0);
    what.set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, relu.upperClip);
    what.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, relu.slope);
  }

  Backend pointwise(cudnnPointwiseMode_t mode,
                    const Backend& x,
                    const Backend* b,
                    const Backend& y) const {
    Backend what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    what.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    what.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (mode == CUDNN_POINTWISE_RELU_FWD && !relu.isPlain) setRelu(what);
    what.finalize();
    Backend made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    if (b != nullptr) made.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, scale);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    return made.finalize();
  }

  static std::vector<Backend> configurations(const Backend& graph) {
    Backend heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_INSTANT);
    heuristics.finalize();
    std::int64_t count = 0;
    const auto get = [&](std::int64_t most, void* values) {
      CHECK(cudnnBackendGetAttribute(heuristics.get(),
                                     CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                     most,
                                     &count,
                                     values));
    };
    get(0, nullptr);
    std::vector<Backend> made;
    std::vector<cudnnBackendDescriptor_t> filled;
    for (std::int64_t i = 0; i < count; ++i) {
      made.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      filled.push_back(made.back().get());
    }
    get(count, filled.data());
    while (made.size() > static_cast<std::size_t>(count)) made.pop_back();
    return made;
  }

  /// Has cuDNN fill a descriptor from another's attribute.
  static void fillFrom(const Backend& from, cudnnBackendAttributeName_t name, const Backend& to) {
    cudnnBackendDescriptor_t filled = to.get();
    std::int64_t count = 0;
    CHECK(cudnnBackendGetAttribute(
        from.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &filled));
  }

  static bool hasNote(const Backend& configuration, cudnnBackendNumericalNote_t note) {
    const Backend engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    fillFrom(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    std::int64_t count = 0;
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    CHECK(cudnnBackendGetAttribute(engine.get(),
                                   CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                   CUDNN_TYPE_NUMERICAL_NOTE,
                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                                   &count,
                                   notes));
    for (std::int64_t i = 0; i < count; ++i)
      if (notes[i] == note) return true;
    return false;
  }

  static std::size_t bytesOf(const Backend& descriptor, cudnnBackendAttributeName_t name) {
    std::int64_t bytes = -1, count = 0;
    CHECK(cudnnBackendGetAttribute(descriptor.get(), name, CUDNN_TYPE_INT64, 1, &count, &bytes));
    return static_cast<std::size_t>(bytes);
  }

  /// Not finalized.
  static Backend planOf(cudnnHandle_t handle, const Backend& configuration) {
    Backend plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
    return plan;
  }

  /// Whether a configuration tells its workspace. Before cuDNN 9.2 only plans do.
  static bool configurationsTellWorkspace() { return cudnnGetVersion() >= 90200; }

  /// Workspace for a plan of the configuration that is not asked: plenty where nothing else tells.
  static std::size_t workspaceUnasked(const Backend& configuration) {
    constexpr std::size_t kPlenty = std::size_t{32} << 20;
    return configurationsTellWorkspace()
               ? bytesOf(configuration, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE)
               : kPlenty;
  }

  struct Planned {
    Backend plan;
    std::size_t bytes;
    bool needsMore = false;  ///< the engine by itself
  };
  std::vector<Planned> plansOf(cudnnHandle_t handle, const Backend& graph, GraphUse use) const {
    std::vector<Planned> plans;
    for (const Backend& configuration : configurations(graph)) {
      if (forbidsTf32 && hasNote(configuration, CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) continue;
      Backend plan = planOf(handle, configuration);
      if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) continue;
      const std::size_t bytes = use == GraphUse::kUnasked
                                    ? workspaceUnasked(configuration)
                                    : bytesOf(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      if (use == GraphUse::kTwins)
        plans.push_back({planOf(handle, configuration).finalize(),
                         bytes,
                         configurationsTellWorkspace() && bytes < workspaceUnasked(configuration)});
      else
        plans.push_back({std::move(plan), bytes});
      if (use != GraphUse::kAll) break;
    }
    if (plans.empty()) throw std::runtime_error("no plan");
    return plans;
  }

  static void noteWorkspace(std::size_t bytes) {
    for (std::size_t most = mostWorkspace; bytes > most;)
      if (mostWorkspace.compare_exchange_weak(most, bytes)) break;
  }

  void runOperation(cudnnHandle_t handle,
                    GraphOperation operation,
                    GraphUse use,
                    const Memory& like,
                    std::size_t outputCount,
                    std::vector<float>& results) {
    const Memory output(outputCount * sizeof(float));
    const auto pointer = [&](const Memory& memory) {
      return &memory == &like ? output.get() : memory.get();
    };
    const std::vector<void*> data = {pointer(x_), pointer(w_), pointer(y_), bias_.get()};
    const Backend built = graph(handle, operation);
    for (const auto& [plan, bytes, needsMore] : plansOf(handle, built, use)) {
      noteWorkspace(bytes);
      const Memory space(bytes);
      if (needsMore)
        stayOutOfCudaGraphs(handle, plan, packOf({kX, kW, kY, kBias}, data, space.get()));
      for (int i = 0; i < (use == GraphUse::kAll ? 1 : 3); ++i) {
        CHECK(cudaMemset(output.get(), 0xFF, outputCount * sizeof(float)));
        const Backend pack = packOf({kX, kW, kY, kBias}, data, space.get());
        CHECK(cudnnBackendExecute(handle, plan.get(), pack.get()));
        CHECK(cudaDeviceSynchronize());
      }
    }
    read(output, outputCount, results);
  }

  /// A plan whose engine needs more than there is may not be put into a CUDA graph, where it can
  /// be.
  static void stayOutOfCudaGraphs(cudnnHandle_t handle, const Backend& plan, const Backend& pack) {
    using Populate =
        int (*)(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t, cudaGraph_t);
    constexpr int kNotSupportedCudaGraphNativeApi = 3013;  // a status since cuDNN 9.5
    const auto populate =
        reinterpret_cast<Populate>(dlsym(RTLD_DEFAULT, "cudnnBackendPopulateCudaGraph"));
    if (populate != nullptr &&
        populate(handle, plan.get(), pack.get(), nullptr) != kNotSupportedCudaGraphNativeApi)
      throw std::runtime_error("a plan that needs more is put into a CUDA graph");
  }

  static void read(const Memory& memory, std::size_t count, std::vector<float>& results) {
    const std::size_t begin = results.size();
    results.resize(begin + count);
    CHECK(cudaMemcpy(&results[begin], memory.get(), count * sizeof(float), cudaMemcpyDeviceToHost));
  }

  static Backend packOf(const std::vector<std::int64_t>& ids,
                        const std::vector<void*>& data,
                        void* workspace) {
    const auto count = static_cast<std::int64_t>(data.size());
    Backend pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, data.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    return pack.finalize();
  }

  const Shape shape_;
  const std::size_t xCount_ = Shape::count(shape_.x()), wCount_ = Shape::count(shape_.w());
  const std::size_t yCount_ = Shape::count(shape_.y());
  const Memory x_{xCount_ * sizeof(float)}, w_{wCount_ * sizeof(float)};
  const Memory y_{yCount_ * sizeof(float)}, bias_{Shape::count(shape_.bias()) * sizeof(float)};
};

}  // namespace plain
