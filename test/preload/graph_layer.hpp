// One convolution of a plain cuDNN program that uses the graph API, as PyTorch and cudnn-frontend
// do: plans of the engines that cuDNN's heuristics name, a variant pack for each call.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "layer.hpp"

namespace plain {

class Backend {
 public:
  explicit Backend(cudnnBackendDescriptorType_t type) {
    CHECK(cudnnBackendCreateDescriptor(type, &descriptor_));
  }
  ~Backend() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  Backend(Backend&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Backend& operator=(Backend&&) = delete;

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  void set(cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type,
           std::int64_t count,
           const void* values) {
    CHECK(cudnnBackendSetAttribute(descriptor_, name, type, count, values));
  }
  template <typename Value>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Value value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const Backend& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
  }
  Backend&& finalize() {
    CHECK(cudnnBackendFinalize(descriptor_));
    return std::move(*this);
  }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// What is done with the plans of an operation.
enum class GraphUse {
  kFirst,    ///< the first one runs
  kAll,      ///< all run, as a program that tunes itself times them
  kUnasked,  ///< the first one runs, in the workspace that its configuration names
};

/// Of x, w and y, in this order; which of them is the output, the operation says.
enum class GraphOperation {
  kForward,
  kBackwardData,
  kBackwardFilter,
  kFused,  ///< the first, and a bias and RELU behind it
};

class GraphLayer {
 public:
  GraphLayer() {
    fill(x_, kXCount, 1);
    fill(w_, kWCount, 2);
    fill(y_, kYCount, 3);
    fill(bias_, kFilters, 4);
  }

  void run(cudnnHandle_t handle, GraphUse use, std::vector<float>& results) {
    runOperation(handle, GraphOperation::kForward, use, y_, kYCount, results);
    runOperation(handle, GraphOperation::kBackwardData, use, x_, kXCount, results);
    runOperation(handle, GraphOperation::kBackwardFilter, use, w_, kWCount, results);
    runOperation(handle, GraphOperation::kFused, use, y_, kYCount, results);
  }

 protected:
  static constexpr std::int64_t kX = 11, kW = 22, kY = 33, kBias = 44, kVirtual = 55;

  static Backend tensor(std::int64_t id,
                        const std::vector<std::int64_t>& sizes,
                        const std::vector<std::int64_t>& strides) {
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

  static Backend convolution() {
    Backend made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    made.set(
        CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
    made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {kPad, kPad});
    made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {kPad, kPad});
    made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, 1});
    made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1});
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

  static Backend graph(cudnnHandle_t handle, GraphOperation operation) {
    constexpr std::int64_t n = kBatch, c = kChannels, k = kFilters, s = kSize, f = kFilter;
    const Names names = namesOf(operation);
    const bool isFused = operation == GraphOperation::kFused;
    const auto y = [](std::int64_t id) {
      return tensor(id, {n, k, s, s}, {k * s * s, s * s, s, 1});
    };
    std::vector<Backend> made;
    Backend& first = made.emplace_back(names.type);
    first.set(names.convolution, convolution());
    first.set(names.x, tensor(kX, {n, c, s, s}, {c * s * s, s * s, s, 1}));
    first.set(names.w, tensor(kW, {k, c, f, f}, {c * f * f, f * f, f, 1}));
    first.set(names.y, y(isFused ? kVirtual : kY));
    first.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
    first.set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
    first.finalize();
    if (isFused) {
      const Backend bias = tensor(kBias, {1, k, 1, 1}, {k, 1, 1, 1});
      made.push_back(pointwise(CUDNN_POINTWISE_ADD, y(kVirtual), &bias, y(kVirtual + 1)));
      made.push_back(pointwise(CUDNN_POINTWISE_RELU_FWD, y(kVirtual + 1), nullptr, y(kY)));
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

  static Backend pointwise(cudnnPointwiseMode_t mode,
                           const Backend& x,
                           const Backend* b,
                           const Backend& y) {
    Backend what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    what.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    what.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    what.finalize();
    Backend made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
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

  struct Planned {
    Backend plan;
    std::size_t bytes;
  };
  static std::vector<Planned> plansOf(cudnnHandle_t handle, const Backend& graph, GraphUse use) {
    std::vector<Planned> plans;
    for (const Backend& configuration : configurations(graph)) {
      // As a program that forbids TF32.
      if (hasNote(configuration, CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) continue;
      Backend plan = planOf(handle, configuration);
      if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) continue;
      const std::size_t bytes = use == GraphUse::kUnasked
                                    ? bytesOf(configuration, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE)
                                    : bytesOf(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      plans.push_back({std::move(plan), bytes});
      if (use == GraphUse::kFirst || use == GraphUse::kUnasked) break;
    }
    if (plans.empty()) throw std::runtime_error("no plan");
    return plans;
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
    for (const auto& [plan, bytes] : plansOf(handle, built, use)) {
      for (std::size_t most = mostWorkspace; bytes > most;)
        if (mostWorkspace.compare_exchange_weak(most, bytes)) break;
      const Memory space(bytes);
      for (int i = 0; i < (use == GraphUse::kAll ? 1 : 3); ++i) {
        CHECK(cudaMemset(output.get(), 0xFF, outputCount * sizeof(float)));
        const Backend pack = packOf({kX, kW, kY, kBias}, data, space.get());
        CHECK(cudnnBackendExecute(handle, plan.get(), pack.get()));
        CHECK(cudaDeviceSynchronize());
      }
    }
    read(output, outputCount, results);
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

  const Memory x_{kXCount * sizeof(float)}, w_{kWCount * sizeof(float)};
  const Memory y_{kYCount * sizeof(float)}, bias_{kFilters * sizeof(float)};
};

}  // namespace plain
