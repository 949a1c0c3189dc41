// Graphs that few programs have: what μ-cuDNN can't divide, and what only cuDNN's graph API has.
#pragma once

#include <cmath>
#include <limits>

#include "graph_layer.hpp"

namespace plain {

/// A tensor that spans more than 2^31 elements, as those of a batch of large images do: here
/// because its samples lie far apart, so that it takes no real memory. x, w and y of each operation
/// in turn.
class HugeLayer : GraphLayer {
 public:
  explicit HugeLayer(Shape shape) : GraphLayer(std::move(shape)) {}

  void run(cudnnHandle_t handle, std::vector<float>& results) {
    for (const auto operation :
         {GraphOperation::kForward, GraphOperation::kBackwardData, GraphOperation::kBackwardFilter})
      runOne(handle, operation, results);
  }

 private:
  /// Elements from one sample of x to the next.
  static constexpr std::int64_t kApart = std::int64_t{1} << 30;

  Shape::Sizes xStrides() const override {
    Shape::Sizes strides = GraphLayer::xStrides();
    strides[0] = kApart;
    return strides;
  }
  char* sample(const Memory& x, std::int64_t i) const {
    return static_cast<char*>(x.get()) + static_cast<std::size_t>(i * kApart) * sizeof(float);
  }

  void runOne(cudnnHandle_t handle, GraphOperation operation, std::vector<float>& results) {
    const auto samples = static_cast<std::size_t>(shape_.batch);
    const std::size_t sampleCount = xCount_ / samples, sampleBytes = sampleCount * sizeof(float);
    const Memory x(static_cast<std::size_t>((shape_.batch - 1) * kApart) * sizeof(float) +
                   sampleBytes);
    const Memory w(wCount_ * sizeof(float)), y(yCount_ * sizeof(float));
    fill(w, wCount_, 2);
    fill(y, yCount_, 3);
    for (std::int64_t i = 0; i < shape_.batch; ++i)
      CHECK(cudaMemcpy(sample(x, i),
                       static_cast<char*>(x_.get()) + static_cast<std::size_t>(i) * sampleBytes,
                       sampleBytes,
                       cudaMemcpyDeviceToDevice));
    const Backend built = graph(handle, operation);
    for (const auto& [plan, bytes, needsMore] : plansOf(handle, built, GraphUse::kAll)) {
      noteWorkspace(bytes);
      const Memory space(bytes);
      for (int i = 0; i < 3; ++i) {
        const Backend pack = packOf({kX, kW, kY}, {x.get(), w.get(), y.get()}, space.get());
        CHECK(cudnnBackendExecute(handle, plan.get(), pack.get()));
        CHECK(cudaDeviceSynchronize());
      }
    }
    if (operation == GraphOperation::kForward) read(y, yCount_, results);
    if (operation == GraphOperation::kBackwardFilter) read(w, wCount_, results);
    if (operation == GraphOperation::kBackwardData)
      for (std::int64_t i = 0; i < shape_.batch; ++i) {
        results.resize(results.size() + sampleCount);
        CHECK(cudaMemcpy(
            &*results.end() - sampleCount, sample(x, i), sampleBytes, cudaMemcpyDeviceToHost));
      }
  }
};

/// The fused one as cudnn-frontend describes it, with a NaN among its inputs: where it reaches,
/// RELU lets it through.
class FrontendLayer : GraphLayer {
 public:
  static constexpr float kNan = 3.5F;  ///< stands for one in the results, where it can be compared

  FrontendLayer() {
    relu.isPlain = false;
    forbidsTf32 = false;  // other engines need no workspace
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(cudaMemcpy(x_.get(), &nan, sizeof nan, cudaMemcpyHostToDevice));
  }

  void run(cudnnHandle_t handle, GraphUse use, std::vector<float>& results) {
    runFused(handle, use, results);
    for (float& value : results)
      if (std::isnan(value)) value = kNan;
  }
};

/// What XLA fuses: RELU6, a leaky RELU, ELU, by all engines.
inline void runXlaGraphs(cudnnHandle_t handle, std::vector<float>& results) {
  for (const Relu& activation :
       {Relu{false, 6}, Relu{false, double{FLT_MAX}, 0.25}, Relu{true, 0, 0, true}}) {
    GraphLayer layer;
    layer.relu = activation;
    layer.forbidsTf32 = false;
    layer.runFused(handle, GraphUse::kAll, results);
  }
}

/// A convolution that is scaled before the bias is added.
inline void runScaledGraph(cudnnHandle_t handle, std::vector<float>& results) {
  GraphLayer layer;
  layer.scale = 0.5F;
  layer.forbidsTf32 = false;
  layer.runFused(handle, GraphUse::kAll, results);
}

/// All that is left alone.
inline void runOddGraphs(cudnnHandle_t handle, std::vector<float>& results) {
  Shape uneven, one, volume;
  uneven.behind = 1;
  one.batch = 1;
  volume.image = {6, 6, 6}, volume.channels = 16, volume.filter = 3, volume.behind = 2;
  for (const Shape& shape : {uneven, one, volume})
    for (const GraphUse use : {GraphUse::kFirst, GraphUse::kAll, GraphUse::kUnasked})
      GraphLayer(shape).run(handle, use, results);
  GraphLayer clipped;
  clipped.relu = {false, 6, 0.1};
  for (const GraphUse use : {GraphUse::kFirst, GraphUse::kAll}) clipped.run(handle, use, results);
}

}  // namespace plain
